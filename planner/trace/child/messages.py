"""What the child says to its parent: one JSON object a line, or how it ended, with the person's own frames."""

import linecache
import os
import re
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary
from typing import Annotated, BinaryIO, Final, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

import planner
from planner.base import Spec
from planner.trace.recording import Recording

FAULT: Final = re.compile(rb"Fatal Python error: |Windows fatal exception: |Timeout \(")
"""How a report of Python's faulthandler begins."""

HEADING: Final = "Traceback (most recent call last):\n"

_PLANNER: Final = os.path.join(os.path.dirname(planner.__file__), "")
_TORCH: Final = re.compile(r"[/\\]torch[/\\]")
_PRETENDING: Final = re.compile(
    r"[/\\]torch[/\\](_compile|_decomp|_dynamo|_meta_registrations|_ops|_prims|_prims_common|_refs|_subclasses)(\.py$|[/\\])"
)
_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_MOST_FRAMES: Final = 40


def own_part(frames: Sequence[FrameSummary], files: Iterable[Path]) -> StackSummary:
    """Return `frames`, the outermost first, from the first one in `files` on and without this program's own.

    Where none is in `files`, they begin with the first that is not this program's. They end where PyTorch begins to
    work out what it would do, which no run on real tensors would show. Where this program itself failed, all of that
    stays. The middle of a deep recursion is left out.
    """
    names = _spellings(files)
    is_bug = bool(frames) and frames[-1].filename.startswith(_PLANNER)
    kept = list(frames) if is_bug else [frame for frame in _without_pretending(frames) if not _is_hidden(frame)]
    start = next((at for at, frame in enumerate(kept) if frame.filename in names), 0)
    kept = kept[start:]
    half = _MOST_FRAMES // 2
    return StackSummary.from_list(kept if len(kept) <= _MOST_FRAMES else [*kept[:half], *kept[-half:]])


def _without_pretending(frames: Sequence[FrameSummary]) -> Sequence[FrameSummary]:
    others = (at for at, frame in enumerate(frames) if not (_TORCH.search(frame.filename) or _is_hidden(frame)))
    last = max(others, default=0)
    end = next((at for at in range(last, len(frames)) if _PRETENDING.search(frames[at].filename)), len(frames))
    return frames[:end]


def first_own(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the outermost of `frames` that is in `files`."""
    names = _spellings(files)
    return next((frame for frame in frames if frame.filename in names), None)


def last_own(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the innermost of `frames` that is in `files`."""
    return first_own(reversed(list(frames)), files)


def read_report(report: str, files: Iterable[Path]) -> StackSummary:
    """Return the person's part of what Python's faulthandler wrote, of the thread that ran their code."""
    files = tuple(files)
    threads = [_read_thread(text) for text in re.split(r"^(?:Current thread|Thread) .*$", report, flags=re.MULTILINE)]
    running = [frames for frames in threads if frames]
    own = next((frames for frames in running if last_own(frames, files)), running[-1] if running else [])
    return own_part(own, files)


def _read_thread(text: str) -> list[FrameSummary]:
    matches = [found for found in map(_FRAME.match, text.splitlines()) if found]
    for found in matches:
        # The file may have changed since an earlier trace showed lines of it.
        linecache.checkcache(found["file"])
    # The report has the innermost frame first, a traceback has it last.
    return [FrameSummary(found["file"], int(found["line"]), found["name"]) for found in matches][::-1]


def _spellings(files: Iterable[Path]) -> frozenset[str]:
    """Return how tracebacks may name `files`: the faulthandler writes ASCII only."""
    paths = {spelling for file in files for spelling in (str(file), os.path.realpath(file))}
    return frozenset(paths | {path.encode("ascii", "backslashreplace").decode() for path in paths})


def _is_hidden(frame: FrameSummary) -> bool:
    return frame.filename.startswith((_PLANNER, "<frozen "))


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


_HUNG: Final = "Look for a loop without an end, or allow more time."

_CLOSED: Final = "The module's own code closes files that it did not open."

_LOOK_THERE: Final = "What the module's own code does there ends the process."

_OUT_OF_MEMORY: Final = "The system does so when memory runs out; close other programs, or see what the module loads."


def explain_ending(stage: str, code: int | None, report: str, seconds: float, files: Iterable[Path]) -> Failure:
    """Return why a child ended, or was found without a channel, before it answered.

    `code` is its exit code, negative for a signal and None if it still ran; `report` is what Python's faulthandler
    wrote, and `files` are the person's own.
    """
    files = tuple(files)
    frames = read_report(report, files)
    own = last_own(frames, files)
    place = f"; it was at {Path(own.filename).name}, line {own.lineno}, in {own.name}" if own else ""
    trace = "".join([HEADING, *frames.format()]) if frames else ""
    if report.startswith("Timeout"):
        reason, hint = f"the module did not end within {seconds:g} seconds", _HUNG
    else:
        reason, hint = _explain_exit(code, report.partition("\n")[0])
    return Failure(stage=stage, reason=f"{reason}{place}", hint=hint, traceback=trace)


def _explain_exit(code: int | None, fault: str) -> tuple[str, str]:
    if fault:
        return f"the process crashed: {fault.partition(': ')[2] or fault}", _LOOK_THERE
    if code is None or code == CHANNEL_LOST:
        return "the process closed its connection to GPU Planner", _CLOSED
    if code >= 0:
        # Windows gives the codes of its exceptions here: they are known in hexadecimal.
        shown = str(code) if code < 256 else f"{code:#x}"
        return f"the process ended itself with exit code {shown}", "Look for os._exit in the module's own code."
    name = _signal_name(-code)
    return f"the process was ended from outside by {name}", _OUT_OF_MEMORY if name == "SIGKILL" else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
