"""History of the last day: a time series per quantity of each GPU and of the host, with events and marks.

Supervisors and recordings feed it with updates; plots and the diagnosis read it.
"""

from planner.monitor.history.history import HOST, History, TimelineMark
from planner.monitor.history.series import Gap, PlotColumns, Series

__all__ = ["HOST", "Gap", "History", "PlotColumns", "Series", "TimelineMark"]
