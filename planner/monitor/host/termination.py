"""Termination of a process on a card, guarded against reused PIDs.

Separate from `processes`, which the sampler loads: it must start without error classes and pydantic.
"""

from typing import Final

import psutil

from planner.errors import PlannerError
from planner.monitor.readings.sample import CardProcess

# Two readings of a start time may differ by this much: clock ticks are hundredths of a second.
_START_TIME_TOLERANCE_SECONDS: Final = 0.05


def termination_refusal(process: CardProcess, *, may_end_others: bool = False) -> str:
    """Return a sentence on why the process may not be terminated from here, empty if termination is allowed."""
    if process.host is None:
        return "This process belongs to another machine or PID namespace; its PID is not valid here."
    if not process.is_reliable:
        return "The driver's data on this process are implausible, so another process might be ended."
    if not process.host.is_own and not may_end_others:
        owner = process.host.user or "another user"
        return f"The process belongs to {owner}; the settings only allow ending your own processes."
    return ""


def terminate(process: CardProcess, *, may_end_others: bool = False, by_force: bool = False) -> None:
    """Terminate a process on a card, or kill the process with `by_force`.

    Raises:
        PlannerError: If the process may not be terminated, has ended, or its PID now belongs to another process.
    """
    refusal = termination_refusal(process, may_end_others=may_end_others)
    if refusal or process.host is None:
        raise PlannerError(f"Process {process.pid} was not ended.", refusal)
    try:
        running = psutil.Process(process.pid)
        if abs(running.create_time() - process.host.started_seconds) > _START_TIME_TOLERANCE_SECONDS:
            raise PlannerError(f"Process {process.pid} was not ended.", "Its PID now belongs to another process.")
        # psutil itself checks once more that the PID still belongs to this process.
        running.kill() if by_force else running.terminate()
    except psutil.NoSuchProcess as error:
        raise PlannerError(f"Process {process.pid} has already ended.") from error
    except psutil.AccessDenied as error:
        hint = "Only its owner or an administrator may end it."
        raise PlannerError(f"Process {process.pid} could not be ended.", hint) from error
