"""What it means when a child ends without an answer: its exit code and Python's last report, in words."""

import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from planner.trace.child.frames import HEADING, last_own, read_report
from planner.trace.child.messages import CHANNEL_LOST, Failure

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
