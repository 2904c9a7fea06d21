"""Explanation of exceptions from the user's code, with the user's part of the traceback."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Final

from planner.errors import TRACE_STAGES, PlannerError, TraceError
from planner.trace.child.messages import TraceFailure, outermost_user_frame, user_traceback

_LONGEST_TEXT: Final = 1 << 16
_LONGEST_LINE: Final = 500
_MEMORY_EXCEEDED: Final = "the module took more of this machine's memory than allowed"
_MEMORY_HINT: Final = "Traced tensors use no memory; check what else the module allocates, or raise the limit."
_IS_A_SCRIPT: Final = 'Move code that only a script needs below: if __name__ == "__main__":'
_NO_INPUT: Final = "A trace cannot read input: pass the value as an argument."
_NO_GPU: Final = "A trace has no GPU: remove .cuda() and .to('cuda'); the assumed device is an option."
_NO_NETWORK: Final = "A trace has no network: build the module from its configuration, without weights."
_KNOWN: Final = (
    ("Torch not compiled with CUDA enabled", _NO_GPU),
    ("No CUDA GPUs are available", _NO_GPU),
    ("Found no NVIDIA driver", _NO_GPU),
    ("not linked with support for cuda", _NO_GPU),
    ("couldn't connect to", _NO_NETWORK),
    ("outgoing traffic has been disabled", _NO_NETWORK),
    ("offline mode is enabled", _NO_NETWORK),
)
# What is imported by another name than it is installed by.
_DISTRIBUTIONS: Final = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def explain_failure(error: BaseException, stage: str, files: Iterable[Path]) -> TraceFailure:
    """Return the failure for `error`, raised in `stage`; `files` are the user's."""
    files = tuple(files)
    report = TracebackException.from_exception(error, compact=True)
    if stage == "build" and _is_of_import(error, report.stack, files):
        stage = "import"
    if not isinstance(error, PlannerError):
        # Before PyTorch is loaded nothing of the person's own runs.
        lacks = stage == "start" and isinstance(error, ImportError | OSError)
        return _failure(stage, *_reason_and_hint(error), _format(report, files), lacks)
    trace = _format(report, files) if outermost_user_frame(report.stack, files) else ""
    if not isinstance(error, TraceError):
        return _failure(stage, error.message, error.hint, trace, error.environment)
    stage = error.stage if error.stage in TRACE_STAGES else stage
    return _failure(stage, error.reason, error.hint, error.traceback or trace, error.environment)


def _is_of_import(error: BaseException, frames: StackSummary, files: tuple[Path, ...]) -> bool:
    own = outermost_user_frame(frames, files)
    return isinstance(error, SyntaxError) if own is None else own.name == "<module>"


def _failure(stage: str, reason: str, hint: str, trace: str, environment: bool) -> TraceFailure:
    return TraceFailure(
        stage=stage,
        reason=_shorten(reason, _LONGEST_LINE),
        hint=_shorten(hint, _LONGEST_LINE),
        traceback=_shorten(trace, _LONGEST_TEXT),
        environment=environment,
    )


def _reason_and_hint(error: BaseException) -> tuple[str, str]:
    """Return the reason and the hint."""
    text = _error_text(error)
    match error:
        case SyntaxError(filename=str(file), lineno=int(line), msg=message):
            return f"{Path(file).name}, line {line}: {message}", ""
        case ModuleNotFoundError(name=str(name)) if name and not _is_installed(name):
            top = name.partition(".")[0]
            return f"{top} is not installed", f"Install it: pip install {_DISTRIBUTIONS.get(top, top)}"
        case MemoryError():
            return _MEMORY_EXCEEDED, _MEMORY_HINT
        case RecursionError():
            return f"the module recurses infinitely: {text}", ""
        case SystemExit(code=code):
            return f"the module's code called sys.exit({'' if code is None else repr(code)})", _IS_A_SCRIPT
        case KeyboardInterrupt():
            return "the module's code raised KeyboardInterrupt", ""
        case EOFError() if "reading a line" in text:
            return "the module's code asked for input", _NO_INPUT
        # What PyTorch says when the system gives it no memory for a tensor of its own.
        case RuntimeError() if "can't allocate memory" in text:
            return _MEMORY_EXCEEDED, _MEMORY_HINT
    return text, next((hint for part, hint in _KNOWN if part in text), "")


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_installed(name: str) -> bool:
    top = name.partition(".")[0]
    # What a program made itself has no place to be found at.
    return sys.modules.get(top) is not None or find_spec(top) is not None


def _format(report: TracebackException, files: Iterable[Path]) -> str:
    _cut(report, tuple(files))
    return "".join(report.format())


def _cut(report: TracebackException | None, files: tuple[Path, ...]) -> None:
    """Reduce `report` and its causes to the user's part of the traceback."""
    if report is not None:
        report.stack = user_traceback(report.stack, files)
        for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
            _cut(other, files)


def _shorten(text: str, limit: int) -> str:
    # A lone half of a character pair, as in the names of odd files, cannot be sent.
    text = text.encode("utf-8", "backslashreplace").decode()
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
