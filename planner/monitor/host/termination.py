"""Ends a process of a card, and only the very process that was meant.

Apart from `processes`, which the sampler loads: its process does without errors for people, and so without pydantic.
"""

from typing import Final

import psutil

from planner.errors import PlannerError
from planner.monitor.readings.sample import CardProcess

# What two looks at a process's start may differ by: clock ticks are hundredths of a second.
_SAME_START_SECONDS: Final = 0.05


def why_not(process: CardProcess, *, may_end_others: bool = False) -> str:
    """Return why a process may not be ended from here, as a sentence; empty if it may."""
    if process.host is None:
        return "This process is not one of this machine, or of another process-id space: its number means nothing here."
    if not process.is_reliable:
        return "What the driver tells of this process cannot be true, so it might end another one."
    if not process.host.is_own and not may_end_others:
        return f"It belongs to {process.host.user or 'another user'}; the settings allow to end your own ones only."
    return ""


def terminate(process: CardProcess, *, may_end_others: bool = False, by_force: bool = False) -> None:
    """Ask a process to end, or end it `by_force`.

    Raises:
        PlannerError: If it may not be ended, is not there any more, or another has its number by now.
    """
    refusal = why_not(process, may_end_others=may_end_others)
    if refusal or process.host is None:
        raise PlannerError(f"Process {process.pid} was left alone.", refusal)
    try:
        found = psutil.Process(process.pid)
        if abs(found.create_time() - process.host.started_seconds) > _SAME_START_SECONDS:
            raise PlannerError(f"Process {process.pid} was left alone.", "Another process has its number by now.")
        # psutil itself looks once more whether the number still belongs to the process.
        found.kill() if by_force else found.terminate()
    except psutil.NoSuchProcess as error:
        raise PlannerError(f"Process {process.pid} has already ended.") from error
    except psutil.AccessDenied as error:
        hint = "Only its owner or an administrator may end it."
        raise PlannerError(f"Process {process.pid} could not be ended.", hint) from error
