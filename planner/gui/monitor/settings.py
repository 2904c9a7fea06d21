"""What the Monitor tab remembers between runs."""

from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.gui.monitor.unfinished import Unfinished
from planner.monitor.alert_rules import AlertRules
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS

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
    unfinished: Unfinished | None = Field(default=None, description="the recording that is being written")
    alerts: AlertRules = AlertRules()
    plots: PlotSettings = PlotSettings()
