"""What was measured in the last day: a series for each quantity of each card and of the machine, and what happened.

It is fed the updates of a supervisor or of a recording, and read by the plots and by the diagnosis.
"""

from planner.monitor.history.columns import Columns
from planner.monitor.history.history import HOST, History, Mark
from planner.monitor.history.series import Gap, Series

__all__ = ["HOST", "Columns", "Gap", "History", "Mark", "Series"]
