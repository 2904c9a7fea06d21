"""What the Monitor tab remembers between runs."""

from pydantic import Field

from planner.base import Spec
from planner.gui.monitor.plots.settings import PlotSettings
from planner.gui.monitor.unfinished import Unfinished
from planner.monitor.alert_rules import AlertRules
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS


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
