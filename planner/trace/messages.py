"""Messages of the trace worker, and explanations of its exit with the user's part of the traceback."""

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
from planner.trace.recording import TraceRecording

FAULT: Final = re.compile(rb"Fatal Python error: |Windows fatal exception: |Timeout \(")
"""First words of a crash report by Python's faulthandler."""

TRACEBACK_HEADING: Final = "Traceback (most recent call last):\n"

_PLANNER_FOLDER: Final = os.path.join(os.path.dirname(planner.__file__), "")
_STAND_INS: Final = os.path.join(_PLANNER_FOLDER, "trace", "worker", "script", "")
"""Folder of what is called in place of functions such as `open` while a script runs."""
_TORCH_PATH: Final = re.compile(r"[/\\]torch[/\\]")
_FAKE_EXECUTION_PATH: Final = re.compile(
    r"[/\\]torch[/\\](_compile|_decomp|_dynamo|_meta_registrations|_ops|_prims|_prims_common|_refs|_subclasses)(\.py$|[/\\])"
)
_REPORT_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_MAX_FRAMES: Final = 40


def user_traceback(frames: Sequence[FrameSummary], files: Iterable[Path]) -> StackSummary:
    """Return the user's part of `frames` (outermost first), without GPU Planner's own frames.

    The part begins with the first frame in `files`, or if there is none, with the first frame not in GPU Planner.
    It ends where PyTorch begins to simulate operators, which a real run would not show. If GPU Planner itself failed,
    its frames stay. The middle of a deep recursion is left out.
    """
    names = _path_spellings(files)
    while frames and frames[-1].filename.startswith(_STAND_INS):
        frames = frames[:-1]
    is_bug = bool(frames) and frames[-1].filename.startswith(_PLANNER_FOLDER)
    visible = (
        list(frames)
        if is_bug
        else [frame for frame in _without_fake_execution(frames) if not _is_planner_or_frozen_frame(frame)]
    )
    start = next((index for index, frame in enumerate(visible) if frame.filename in names), 0)
    visible = visible[start:]
    half = _MAX_FRAMES // 2
    return StackSummary.from_list(visible if len(visible) <= _MAX_FRAMES else [*visible[:half], *visible[-half:]])


def _without_fake_execution(frames: Sequence[FrameSummary]) -> Sequence[FrameSummary]:
    """Return `frames` without the innermost frames, in which PyTorch runs fake tensors for the user's code."""
    user_indices = (
        index
        for index, frame in enumerate(frames)
        if not (_TORCH_PATH.search(frame.filename) or _is_planner_or_frozen_frame(frame))
    )
    last = max(user_indices, default=0)
    end = next(
        (index for index in range(last, len(frames)) if _FAKE_EXECUTION_PATH.search(frames[index].filename)),
        len(frames),
    )
    return frames[:end]


def outermost_user_frame(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the outermost frame in `frames` from a file in `files`."""
    names = _path_spellings(files)
    return next((frame for frame in frames if frame.filename in names), None)


def innermost_user_frame(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the innermost frame in `frames` from a file in `files`."""
    return outermost_user_frame(reversed(list(frames)), files)


def read_report(report: str, files: Iterable[Path]) -> StackSummary:
    """Return the user's frames from a faulthandler report, for the thread that ran the user's code."""
    files = tuple(files)
    threads = [_thread_frames(text) for text in re.split(r"^(?:Current thread|Thread) .*$", report, flags=re.MULTILINE)]
    running = [frames for frames in threads if frames]
    user_frames = next(
        (frames for frames in running if innermost_user_frame(frames, files)), running[-1] if running else []
    )
    return user_traceback(user_frames, files)


def _thread_frames(text: str) -> list[FrameSummary]:
    """Return the frames of one thread in a faulthandler report, outermost first."""
    matches = [match for match in map(_REPORT_FRAME.match, text.splitlines()) if match]
    for match in matches:
        # The file may have changed since an earlier trace showed lines of it.
        linecache.checkcache(match["file"])
    # The report has the innermost frame first, a traceback has it last.
    return [FrameSummary(match["file"], int(match["line"]), match["name"]) for match in matches][::-1]


def _path_spellings(files: Iterable[Path]) -> frozenset[str]:
    """Return the spellings of `files` in tracebacks: the faulthandler writes ASCII only."""
    paths = {spelling for file in files for spelling in (str(file), os.path.realpath(file))}
    return frozenset(paths | {path.encode("ascii", "backslashreplace").decode() for path in paths})


def _is_planner_or_frozen_frame(frame: FrameSummary) -> bool:
    """Return whether the frame is GPU Planner's own or from Python's import system."""
    return frame.filename.startswith((_PLANNER_FOLDER, "<frozen "))


MAX_LINE_BYTES: Final = 1 << 30
"""Maximum length of a message in bytes, 20 times that of a recording with a million allocations."""

CHANNEL_LOST: Final = 74
"""Exit code of a worker that cannot send messages: an input or output error (EX_IOERR)."""

_MAX_REPORT_BYTES: Final = 1 << 16
_BEFORE_STEPS: Final = ("start", "load", "import", "build")
_STAGE_TITLES: Final = {
    "start": "loading PyTorch",
    "load": "running the script up to its first step",
    "import": "importing the module",
    "build": "building the module",
    "loss": "loss",
    "step": "optimizer step",
    "decode": "decoding",
    "finish": "assembling the recording",
}

_NonNegativeInt = Annotated[int, Field(ge=0)]


class TraceProgress(NamedTuple):
    """Progress of a trace: its stage, the current step (from 0), the number of steps, and the events so far."""

    stage: str
    step: int
    steps: int
    events: int
    text: str


class TraceFailure(Spec):
    """Failure of the worker: the stage, reason, hint and traceback shown to the user."""

    stage: str
    reason: str
    hint: str = ""
    traceback: str = ""
    environment: bool = False


class WorkerMessage(Spec):
    """One line from the worker, with exactly one field set; `progress` holds stage, step, steps and events."""

    progress: tuple[Annotated[str, Field(max_length=40)], _NonNegativeInt, _NonNegativeInt, _NonNegativeInt] | None = (
        None
    )
    result: TraceRecording | None = None
    failure: TraceFailure | None = None

    @property
    def line(self) -> bytes:
        """Return the message as one line of JSON to send."""
        return self.model_dump_json().encode() + b"\n"

    @model_validator(mode="after")
    def _check_single_field(self) -> Self:
        if sum(value is not None for value in (self.progress, self.result, self.failure)) != 1:
            raise ValueError("a message has exactly one field")
        return self


class WorkerOutcome(NamedTuple):
    """Outcome of a worker: a recording, failure, crash report or protocol error, or nothing if it exited silently."""

    recording: TraceRecording | None = None
    failure: TraceFailure | None = None
    report: str = ""
    protocol_error: str = ""

    @property
    def is_complete(self) -> bool:
        """Return whether the worker sent its final message."""
        return self.recording is not None or self.failure is not None


def read_messages(
    stream: BinaryIO, on_progress: Callable[[TraceProgress], None], max_line_bytes: int = MAX_LINE_BYTES
) -> WorkerOutcome:
    """Read messages up to the last one, and call `on_progress` for each progress message; all input is validated."""
    while line := stream.readline(max_line_bytes):
        try:
            message = WorkerMessage.model_validate_json(line)
        except ValidationError as error:
            return _outcome_of_invalid_line(line, stream, max_line_bytes, error)
        if message.progress is None:
            return WorkerOutcome(message.result, message.failure)
        stage, step, steps, events = message.progress
        on_progress(TraceProgress(stage, step, steps, events, _progress_text(stage, step, steps, events)))
    return WorkerOutcome()


def _outcome_of_invalid_line(
    line: bytes, stream: BinaryIO, max_line_bytes: int, error: ValidationError
) -> WorkerOutcome:
    """Return the outcome of a line that is no message: a crash report, a protocol error or a half-written line."""
    fault_match = FAULT.search(line)
    if fault_match:
        report = line[fault_match.start() :] + stream.read(_MAX_REPORT_BYTES)
        return WorkerOutcome(report=report.decode("utf-8", "replace"))
    if line.endswith(b"\n"):
        return WorkerOutcome(protocol_error=error.errors(include_url=False)[0]["msg"])
    # A child that died while it wrote leaves half a line.
    return (
        WorkerOutcome(protocol_error=f"a line of more than {max_line_bytes} bytes")
        if len(line) >= max_line_bytes
        else WorkerOutcome()
    )


def _progress_text(stage: str, step: int, steps: int, events: int) -> str:
    """Return the progress of a trace as text: stage, step, and the allocations and frees so far."""
    stage_title = _STAGE_TITLES.get(stage, stage)
    step_text = f"step {step + 1} of {steps}: " if step < steps > 1 and stage not in _BEFORE_STEPS else ""
    events_text = f" · {events:,} allocations and frees" if events else ""
    return f"{step_text}{stage_title}{events_text}"


_TIMEOUT_HINT: Final = "Look for an infinite loop, or raise the time limit."

_CLOSED_PIPE_HINT: Final = "The module's code closes files that it did not open."

_CRASH_HINT: Final = "The module's code at this line crashes the process."

_KILLED_HINT: Final = "The system does this when memory runs out; close other programs, or check what the module loads."


def explain_exit(stage: str, code: int | None, report: str, seconds: float, files: Iterable[Path]) -> TraceFailure:
    """Return the failure that explains why a worker exited, or closed its pipe, before its final message.

    `code` is the worker's exit code, negative for a signal and None if it still ran; `report` is the output of Python's
    faulthandler, and `files` are the user's files.
    """
    files = tuple(files)
    frames = read_report(report, files)
    user_frame = innermost_user_frame(frames, files)
    place_text = (
        f"; it was at {Path(user_frame.filename).name}, line {user_frame.lineno}, in {user_frame.name}"
        if user_frame
        else ""
    )
    traceback_text = "".join([TRACEBACK_HEADING, *frames.format()]) if frames else ""
    if report.startswith("Timeout"):
        reason, hint = f"the module did not finish within {seconds:g} seconds", _TIMEOUT_HINT
    else:
        reason, hint = _exit_reason_and_hint(code, report.partition("\n")[0])
    return TraceFailure(stage=stage, reason=f"{reason}{place_text}", hint=hint, traceback=traceback_text)


def _exit_reason_and_hint(exit_code: int | None, fault_line: str) -> tuple[str, str]:
    """Return why the worker exited, and a hint, from its exit code and the fault in its report."""
    if fault_line:
        return f"the process crashed: {fault_line.partition(': ')[2] or fault_line}", _CRASH_HINT
    if exit_code is None or exit_code == CHANNEL_LOST:
        return "the process closed its connection to GPU Planner", _CLOSED_PIPE_HINT
    if exit_code >= 0:
        # Windows gives the codes of its exceptions here: they are known in hexadecimal.
        code_text = str(exit_code) if exit_code < 256 else f"{exit_code:#x}"
        return f"the process exited with code {code_text}", "Look for os._exit in the module's code."
    name = _signal_name(-exit_code)
    return f"the process was killed by {name}", _KILLED_HINT if name == "SIGKILL" else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
