"""Detection of missing readings from the typical sampling interval: one rule for events, gaps, plots and totals."""

from math import inf
from typing import Final

LATE: Final = 2.5
"""Pause, in typical sampling intervals, after which readings count as missing."""
# Sampling ten times a second is jittery: a reading within this time is never late.
_MIN_PAUSE_SECONDS: Final = 1.0


def late_seconds(interval_seconds: float) -> float:
    """Return the pause in seconds beyond which readings are missing, for a typical sampling interval."""
    return max(LATE * interval_seconds, _MIN_PAUSE_SECONDS)


class TypicalInterval:
    """Typical interval between readings: the longer of the last two, so that one early reading makes no gap."""

    __slots__ = ("_before", "_last")

    def __init__(self) -> None:
        self._last = self._before = 0.0

    @property
    def late_seconds(self) -> float:
        """Return the pause in seconds beyond which readings are missing; infinite before the second reading."""
        typical = max(self._last, self._before)
        return late_seconds(typical) if typical else inf

    def is_late(self, seconds: float) -> bool:
        """Return whether a pause of `seconds` means missing readings; never before the second reading."""
        typical = self._last if self._last > self._before else self._before
        # Called for each reading: the cheap comparison comes first.
        return seconds > LATE * typical > 0 and seconds > late_seconds(typical)

    def note(self, seconds: float) -> None:
        """Record the interval in seconds between the last two readings."""
        self._before, self._last = self._last, seconds
