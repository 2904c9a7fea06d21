"""Stored settings of the Monitor tab."""

import os
from pathlib import Path
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.fleet.connection import FleetConnection
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS, AlertRules, AlertTargets
from planner.present import format as fmt


class UnfinishedRecording(Spec):
    """Path of a recording in progress and its process: PID and start time, since PIDs are reused."""

    path: str
    pid: int
    process_started_seconds: float | None

    @classmethod
    def by_this_process(cls, path: Path) -> "UnfinishedRecording":
        """Return the entry for a recording to `path` by this process."""
        return cls(
            path=str(path.absolute()), pid=os.getpid(), process_started_seconds=_process_start_seconds(os.getpid())
        )

    def is_of_same_process(self, other: "UnfinishedRecording") -> bool:
        """Return whether both are recorded by the same process."""
        return (self.pid, self.process_started_seconds) == (other.pid, other.process_started_seconds)

    @property
    def is_interrupted(self) -> bool:
        """Return whether the file exists and the recording process has ended."""
        started = _process_start_seconds(self.pid)
        is_still_recorded = started is not None and started == self.process_started_seconds
        return not is_still_recorded and Path(self.path).is_file()


def unfinished_message(path: Path) -> tuple[str, str]:
    """Return the message that a recording was interrupted, and its size and folder as a second sentence."""
    size = fmt.size(path.stat().st_size)
    message = f"The recording {path.name} was interrupted when the program ended."
    return message, f"All but the last second of the recording is saved: {size} in {path.parent}."


def _process_start_seconds(pid: int) -> float | None:
    """Return the start time of a process in seconds since 1970, None if there is no such process."""
    import psutil  # the start of the window needs it only after an interrupted recording

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


MOST_COLUMNS: Final = 3


class PlotSettings(Spec):
    """Stored order, visibility and columns of the plots; plots are named by their keys."""

    order: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ("sm_occupancy", "memory_temperature")
    columns: int | None = Field(
        default=None, ge=1, le=MOST_COLUMNS, description="plots side by side; None: as many as fit"
    )


class MonitorSettings(Spec):
    """Stored settings; the tab disconnects from the driver once hidden for `release_after_minutes` (None: never)."""

    interval_seconds: float = Field(default=1.0, ge=FASTEST_SECONDS, le=SLOWEST_SECONDS)
    span_seconds: float | None = Field(default=300.0, gt=0, description="displayed time span; None: everything")
    release_after_minutes: float | None = Field(default=10.0, gt=0)
    may_end_others: bool = False
    shows_processes: bool = False
    usd_per_kwh: float | None = Field(default=None, gt=0, description="electricity price; None: energy has no price")
    unfinished: tuple[UnfinishedRecording, ...] = Field(default=(), description="recordings in progress, of any window")
    alerts: AlertRules = AlertRules()
    alert_targets: AlertTargets = AlertTargets()
    machines: tuple[str, ...] = Field(default=(), description="other machines that were watched, the latest first")
    plots: PlotSettings = PlotSettings()
    fleet: FleetConnection | None = Field(default=None, description="the fleet that was shown last, without its secret")

    @property
    def interrupted_recordings(self) -> tuple[Path, ...]:
        """Return the paths of recordings that ended with their process, oldest first."""
        return tuple(Path(recording.path) for recording in self.unfinished if recording.is_interrupted)
