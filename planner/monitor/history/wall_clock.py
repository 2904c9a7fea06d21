"""Which clock time belongs to a monotonic time, also where the clock was set or the machine slept in between."""

from bisect import bisect_right
from typing import Final

# The clock drifts by less than this in a day; what is more is a change.
_CHANGED_SECONDS: Final = 0.5
_MOST_CHANGES: Final = 1000


class WallClock:
    """The differences between the two clocks, each with the time since which it holds."""

    def __init__(self) -> None:
        self._since: list[float] = []
        self._ahead: list[float] = []

    def note(self, monotonic_seconds: float, wall_seconds: float) -> None:
        """Take down what both clocks showed at once."""
        ahead = wall_seconds - monotonic_seconds
        if not self._ahead or abs(ahead - self._ahead[-1]) > _CHANGED_SECONDS:
            self._since = [*self._since[-_MOST_CHANGES:], monotonic_seconds]
            self._ahead = [*self._ahead[-_MOST_CHANGES:], ahead]

    def wall_of(self, monotonic_seconds: float) -> float:
        """Return the seconds since 1970 at a monotonic time; the time itself before anything was noted."""
        if not self._since:
            return monotonic_seconds
        place = max(0, bisect_right(self._since, monotonic_seconds) - 1)
        return monotonic_seconds + self._ahead[place]
