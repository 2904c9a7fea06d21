"""What the child says to its parent: one JSON object a line, or Python's own report of a crash."""

from collections.abc import Callable
from typing import Annotated, BinaryIO, Final, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from planner.base import Spec
from planner.trace.child.frames import FAULT
from planner.trace.recording import Recording

LONGEST_LINE: Final = 1 << 30
"""Bytes; the recording of a run with a million allocations takes a twentieth of it."""

CHANNEL_LOST: Final = 74
"""The exit code of a child that cannot send: that of an input or output error (EX_IOERR)."""

_LONGEST_REPORT: Final = 1 << 16
_BEFORE_STEPS: Final = ("start", "import", "build")
_DOING: Final = {
    "start": "loading PyTorch",
    "import": "importing the module",
    "build": "building the module",
    "loss": "loss",
    "step": "optimizer step",
    "decode": "decoding",
    "finish": "putting the recording together",
}

_Count = Annotated[int, Field(ge=0)]


class Progress(NamedTuple):
    """How far a trace is: its stage, the step, from 0 on, of so many steps, and the allocations and frees so far."""

    stage: str
    step: int
    steps: int
    events: int
    text: str


class Failure(Spec):
    """Why the child gave up, in words for people."""

    stage: str
    reason: str
    hint: str = ""
    traceback: str = ""
    environment: bool = False


class Message(Spec):
    """One line: exactly one of these. `progress` is stage, step, steps and events."""

    progress: tuple[Annotated[str, Field(max_length=40)], _Count, _Count, _Count] | None = None
    result: Recording | None = None
    failure: Failure | None = None

    @property
    def line(self) -> bytes:
        """Return it as it is sent."""
        return self.model_dump_json().encode() + b"\n"

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum(value is not None for value in (self.progress, self.result, self.failure)) != 1:
            raise ValueError("a message says exactly one thing")
        return self


class Answer(NamedTuple):
    """How a child's messages ended: with one of these, or with nothing if it just went away."""

    recording: Recording | None = None
    failure: Failure | None = None
    report: str = ""
    broken: str = ""

    @property
    def is_complete(self) -> bool:
        """Return whether the child said all it had to say."""
        return self.recording is not None or self.failure is not None


def listen(stream: BinaryIO, on_progress: Callable[[Progress], None], longest: int = LONGEST_LINE) -> Answer:
    """Read messages up to the last one, and hand on the progress; nothing in them is taken on trust."""
    while line := stream.readline(longest):
        try:
            message = Message.model_validate_json(line)
        except ValidationError as error:
            return _read_rest(line, stream, longest, error)
        if message.progress is None:
            return Answer(message.result, message.failure)
        stage, step, steps, events = message.progress
        on_progress(Progress(stage, step, steps, events, _describe(stage, step, steps, events)))
    return Answer()


def _read_rest(line: bytes, stream: BinaryIO, longest: int, error: ValidationError) -> Answer:
    fault = FAULT.search(line)
    if fault:
        report = line[fault.start() :] + stream.read(_LONGEST_REPORT)
        return Answer(report=report.decode("utf-8", "replace"))
    if line.endswith(b"\n"):
        return Answer(broken=error.errors(include_url=False)[0]["msg"])
    # A child that died while it wrote leaves half a line.
    return Answer(broken=f"a line of more than {longest} bytes") if len(line) >= longest else Answer()


def _describe(stage: str, step: int, steps: int, events: int) -> str:
    doing = _DOING.get(stage, stage)
    of = f"step {step + 1} of {steps}: " if step < steps > 1 and stage not in _BEFORE_STEPS else ""
    after = f" · {events:,} allocations and frees" if events else ""
    return f"{of}{doing}{after}"
