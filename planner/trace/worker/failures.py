"""Explanation of exceptions from the user's code, with the user's part of the traceback."""

import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Final

import planner
from planner.errors import TRACE_STAGES, PlannerError, TraceError
from planner.installation import package_command
from planner.trace.child.messages import (
    TRACEBACK_HEADING,
    TraceFailure,
    innermost_user_frame,
    outermost_user_frame,
    user_traceback,
)
from planner.trace.worker.refusals import refusal_of

_MAX_TRACEBACK_CHARACTERS: Final = 1 << 16
_MAX_LINE_CHARACTERS: Final = 500
_MEMORY_EXCEEDED: Final = "the module took more of this machine's memory than allowed"
_MEMORY_HINT: Final = "Traced tensors use no memory; check what else the module allocates, or raise the limit."
_SCRIPT_HINT: Final = 'Move code that only a script needs below: if __name__ == "__main__":'
_NO_INPUT_HINT: Final = "A trace cannot read input: pass the value as an argument."
_NO_NETWORK_HINT: Final = "A trace has no network: build the module from its configuration, without weights."
_KNOWN_ERROR_HINTS: Final = (
    ("couldn't connect to", _NO_NETWORK_HINT),
    ("outgoing traffic has been disabled", _NO_NETWORK_HINT),
    ("offline mode is enabled", _NO_NETWORK_HINT),
)
_KERNEL_PACKAGES: Final = frozenset(
    ("triton", "flash_attn", "xformers", "bitsandbytes", "apex", "deepspeed", "transformer_engine", "mamba_ssm")
)
"""Packages of kernels for cards, which a trace cannot run even if they are installed."""
_KERNEL_HINT: Final = (
    "Its kernels need a card, which a trace does not have: let the code run PyTorch's own operators where the package "
    "is missing, such as scaled_dot_product_attention."
)
# Packages that are imported by another name than the one they are installed by.
_PACKAGE_NAMES: Final = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def explain_failure(error: BaseException, stage: str, files: Iterable[Path]) -> TraceFailure:
    """Return the failure for `error`, raised in `stage`; `files` are the user's files."""
    files = tuple(files)
    report = TracebackException.from_exception(error, compact=True)
    if stage == "build" and _was_raised_on_import(error, report.stack, files):
        stage = "import"
    refusal = refusal_of(error, report.stack)
    if refusal is not None:
        reason = f"{_place(report.stack, files)}{refusal.what}"
        return _shortened_failure(stage, reason, refusal.instead, _frames_text(report.stack, files), environment=False)
    if not isinstance(error, PlannerError):
        # Before PyTorch is loaded, none of the user's code runs.
        is_environment = stage == "start" and isinstance(error, ImportError | OSError)
        return _shortened_failure(stage, *_reason_and_hint(error), _traceback_text(report, files), is_environment)
    traceback_text = _traceback_text(report, files) if outermost_user_frame(report.stack, files) else ""
    if not isinstance(error, TraceError):
        return _shortened_failure(stage, error.message, error.hint, traceback_text, error.environment)
    stage = error.stage if error.stage in TRACE_STAGES else stage
    return _shortened_failure(stage, error.reason, error.hint, error.traceback or traceback_text, error.environment)


def _place(frames: StackSummary, files: tuple[Path, ...]) -> str:
    """Return the line of the user's files that was running, as the beginning of a sentence."""
    frame = innermost_user_frame(frames, files)
    return "" if frame is None else f"{Path(frame.filename).name}, line {frame.lineno}: "


def _frames_text(frames: StackSummary, files: tuple[Path, ...]) -> str:
    """Return the user's part of the traceback as text, without the error itself."""
    ours = str(Path(planner.__file__).parent)
    while frames and frames[-1].filename.startswith(ours):
        frames = StackSummary.from_list(frames[:-1])
    return "".join([TRACEBACK_HEADING, *user_traceback(frames, files).format()])


def _was_raised_on_import(error: BaseException, frames: StackSummary, files: tuple[Path, ...]) -> bool:
    """Return whether `error` was raised while the user's file was imported."""
    user_frame = outermost_user_frame(frames, files)
    return isinstance(error, SyntaxError) if user_frame is None else user_frame.name == "<module>"


def _shortened_failure(stage: str, reason: str, hint: str, traceback_text: str, environment: bool) -> TraceFailure:
    """Return the failure with reason, hint and traceback cut to their maximum lengths."""
    return TraceFailure(
        stage=stage,
        reason=_shortened_text(reason, _MAX_LINE_CHARACTERS),
        hint=_shortened_text(hint, _MAX_LINE_CHARACTERS),
        traceback=_shortened_text(traceback_text, _MAX_TRACEBACK_CHARACTERS),
        environment=environment,
    )


def _reason_and_hint(error: BaseException) -> tuple[str, str]:
    """Return the reason why `error` was raised, and a hint."""
    text = _error_text(error)
    match error:
        case SyntaxError(filename=str(file), lineno=int(line), msg=message):
            return f"{Path(file).name}, line {line}: {message}", ""
        case ModuleNotFoundError(name=str(name)) if name and not _is_installed(name):
            top = name.partition(".")[0]
            return f"{top} is not installed", _package_hint(top)
        case FileNotFoundError(filename=str(file)):
            return f"there is no file {file}", f"Relative paths start in the working folder, {os.getcwd()}."
        # The RuntimeError is PyTorch's when the system refuses memory for a real tensor.
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or "can't allocate memory" in text:
            return _MEMORY_EXCEEDED, _MEMORY_HINT
        case RecursionError():
            return f"the module recurses infinitely: {text}", ""
        case SystemExit(code=code):
            return f"the module's code called sys.exit({'' if code is None else repr(code)})", _SCRIPT_HINT
        case KeyboardInterrupt():
            return "the module's code raised KeyboardInterrupt", ""
        case EOFError() if "reading a line" in text:
            return "the module's code asked for input", _NO_INPUT_HINT
    return text, next((hint for part, hint in _KNOWN_ERROR_HINTS if part in text), "")


def _package_hint(name: str) -> str:
    """Return what to do where the package `name` is missing."""
    if name in _KERNEL_PACKAGES:
        return _KERNEL_HINT
    if name in _PACKAGE_NAMES:
        return f"Install it: {package_command(_PACKAGE_NAMES[name])}"
    return f"Install the package that has it, for {sys.executable}."


def _error_text(error: BaseException) -> str:
    """Return the type and message of `error` on one line."""
    text = " ".join(str(error).split()).replace("'FakeTensor' object", "'Tensor' object")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_installed(name: str) -> bool:
    top = name.partition(".")[0]
    # A module that a program created at run time has no file.
    return sys.modules.get(top) is not None or find_spec(top) is not None


def _traceback_text(report: TracebackException, files: Iterable[Path]) -> str:
    """Return the user's part of the traceback as text."""
    _keep_user_frames(report, tuple(files))
    return "".join(report.format())


def _keep_user_frames(report: TracebackException | None, files: tuple[Path, ...]) -> None:
    """Reduce the tracebacks of `report` and its causes to the user's part."""
    if report is not None:
        report.stack = user_traceback(report.stack, files)
        for related in (report.__cause__, report.__context__, *(report.exceptions or ())):
            _keep_user_frames(related, files)


def _shortened_text(text: str, limit: int) -> str:
    # A lone surrogate, as in some file names, cannot be encoded.
    text = text.encode("utf-8", "backslashreplace").decode()
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
