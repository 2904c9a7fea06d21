"""What the Monitor tab remembers between runs."""

import os
from pathlib import Path
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.monitor.alert_rules import AlertRules
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS
from planner.present import format as fmt


class UnfinishedRecording(Spec):
    """A file that is being written, and the process that writes it; a number alone may be another's by now."""

    path: str
    pid: int
    process_started_seconds: float | None

    @classmethod
    def of_this_process(cls, path: Path) -> "UnfinishedRecording":
        """Return that this process writes `path`."""
        return cls(path=str(path.absolute()), pid=os.getpid(), process_started_seconds=_started(os.getpid()))

    @property
    def left_over(self) -> Path | None:
        """Return the file, if it is there and nobody writes it any more."""
        path = Path(self.path)
        return None if self._is_written or not path.is_file() else path

    @property
    def _is_written(self) -> bool:
        started = _started(self.pid)
        return started is not None and started == self.process_started_seconds


def unfinished_message(path: Path) -> tuple[str, str]:
    """Return what is to be said of a recording that was cut off, and what can be done."""
    size = fmt.size(path.stat().st_size)
    told = f"The recording {path.name} was cut off when the program ended."
    return told, f"All but its last second is kept: {size} in {path.parent}."


def _started(pid: int) -> float | None:
    """Return when a process was started, none where there is none of that number."""
    # Here, since the window's start needs it only where a recording broke off.
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


MOST_COLUMNS: Final = 3


class PlotSettings(Spec):
    """Which plots are shown in which order, by their keys, so that it outlives plots that are added or go away."""

    order: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ("sm_occupancy", "memory_temperature")
    columns: int | None = Field(default=None, ge=1, le=MOST_COLUMNS, description="None: as many as there is room for")


class MonitorSettings(Spec):
    """How often and how far back to look, and what may be done.

    The driver is let go once the tab was hidden for `release_after_minutes`; None keeps it.
    """

    interval_seconds: float = Field(default=1.0, ge=FASTEST_SECONDS, le=SLOWEST_SECONDS)
    span_seconds: float | None = Field(default=600.0, gt=0, description="None: all there is")
    release_after_minutes: float | None = Field(default=10.0, gt=0)
    may_end_others: bool = False
    shows_processes: bool = False
    usd_per_kwh: float | None = Field(default=None, gt=0, description="None: energy has no price")
    unfinished: UnfinishedRecording | None = Field(default=None, description="the recording that is being written")
    alerts: AlertRules = AlertRules()
    plots: PlotSettings = PlotSettings()
