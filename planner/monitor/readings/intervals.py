"""Detection of missing readings from the usual interval: one rule for events, gaps, plots and totals."""

from math import inf
from typing import Final

LATE: Final = 2.5
"""Readings are missing after a pause of this many usual intervals."""
# Looks ten times a second are jittery: what comes sooner is never late.
_NEVER_LATE_SECONDS: Final = 1.0


def late_seconds(usual_seconds: float) -> float:
    """Return the pause beyond which readings are missing, given the usual interval."""
    return max(LATE * usual_seconds, _NEVER_LATE_SECONDS)


class UsualInterval:
    """The usual interval between readings: the longer of the last two, so that one early reading makes no gap."""

    __slots__ = ("_before", "_last")

    def __init__(self) -> None:
        self._last = self._before = 0.0

    @property
    def late_seconds(self) -> float:
        """Return the pause beyond which readings are missing; infinite before there are two readings."""
        usual = max(self._last, self._before)
        return late_seconds(usual) if usual else inf

    def is_late(self, seconds: float) -> bool:
        """Return whether readings are missing after a pause; never before there are two readings."""
        usual = self._last if self._last > self._before else self._before
        # Asked for each reading: the whole rule only where it may hold.
        return seconds > LATE * usual > 0 and seconds > late_seconds(usual)

    def note(self, seconds: float) -> None:
        """Record the interval between the last two readings."""
        self._before, self._last = self._last, seconds
