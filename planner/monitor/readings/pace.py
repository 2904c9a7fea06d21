"""Which readings come so late that others lack before them: one rule for events, gaps, plots and sums."""

from math import inf
from typing import Final

LATE: Final = 2.5
"""A reading may come late by so much of the usual interval."""
# Looks ten times a second are jittery: what comes sooner is never late.
_NEVER_LATE_SECONDS: Final = 1.0


def late_seconds(usual_seconds: float) -> float:
    """Return how far apart two readings are between which others lack, where they usually are `usual_seconds` apart."""
    return max(LATE * usual_seconds, _NEVER_LATE_SECONDS)


class Pace:
    """The usual interval: the longer of the last two, so that one early reading makes no gap of the next."""

    __slots__ = ("_before", "_last")

    def __init__(self) -> None:
        self._last = self._before = 0.0

    @property
    def late_seconds(self) -> float:
        """Return how far apart two readings are between which others lack; infinite before there are two."""
        usual = max(self._last, self._before)
        return late_seconds(usual) if usual else inf

    def is_late(self, seconds: float) -> bool:
        """Return whether others lack between two readings that are so far apart; not before there are two."""
        usual = self._last if self._last > self._before else self._before
        # Asked for each reading: the whole rule only where it may hold.
        return seconds > LATE * usual > 0 and seconds > late_seconds(usual)

    def note(self, seconds: float) -> None:
        """Take down how far apart the last two readings were."""
        self._before, self._last = self._last, seconds
