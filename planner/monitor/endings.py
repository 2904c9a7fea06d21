"""What it means when the sampler ends: its exit code and what it last said, in words."""

import re
import signal
from typing import Final, NamedTuple

from planner.monitor.faults import FaultKind

RESTART: Final = 75
"""The exit code with which the sampler asks for a new process: a temporary failure (EX_TEMPFAIL)."""

_CRASHES: Final = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")
# Windows ends a process that crashed with its exception's code, an error from 0xC0000000 on.
_FIRST_EXCEPTION: Final = 0xC0000000
_CALL: Final = re.compile(r"\bin (nvml\w+)")


class Ending(NamedTuple):
    """Why the sampler ended; no kind where it asked for a new process."""

    kind: FaultKind | None
    detail: str = ""


def explain_ending(code: int | None, report: str) -> Ending:
    """Return why the sampler ended with `code` (negative: a signal) after it wrote `report`."""
    if code == RESTART:
        return Ending(None)
    call = _CALL.search(report)
    where = f" in {call[1]}" if call else ""
    if code is not None and code >= _FIRST_EXCEPTION:
        return Ending(FaultKind.SAMPLER_CRASHED, f"{code:#x}{where}")
    if code is not None and code < 0:
        name = _signal_name(-code)
        kind = FaultKind.SAMPLER_CRASHED if name in _CRASHES else FaultKind.SAMPLER_FAILED
        return Ending(kind, f"{name}{where}")
    lines = report.strip().splitlines()
    return Ending(FaultKind.SAMPLER_FAILED, lines[-1] if lines else f"exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
