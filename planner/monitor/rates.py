"""From counters that only grow to what happens in a second."""

from collections import deque
from typing import Final, NamedTuple

# The counter moves about every 100 ms (ml.energy, on measuring GPU energy): over a second that is at most a tenth off.
WINDOW_SECONDS: Final = 1.0


class _Point(NamedTuple):
    at_seconds: float
    value: float


class Rates:
    """The growth of counters, by name, since each was last read."""

    def __init__(self) -> None:
        self._last: dict[str, _Point] = {}

    def per_second(self, name: str, at_seconds: float, value: float) -> float | None:
        """Return how much the counter grew in a second; None at first, and where it began anew."""
        last = self._last.get(name)
        self._last[name] = _Point(at_seconds, value)
        if last is None or at_seconds <= last.at_seconds or value < last.value:
            return None
        return (value - last.value) / (at_seconds - last.at_seconds)


class EnergyMeter:
    """The mean power over the last second or more, from a counter of energy."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window = window_seconds
        self._points: deque[_Point] = deque()

    def watts(self, at_seconds: float, joules: float) -> float | None:
        """Take down a reading of the counter, and return the power; None at first, and where the counter began anew."""
        if self._points and joules < self._points[-1].value:
            self._points.clear()
        self._points.append(_Point(at_seconds, joules))
        # The oldest stays the latest point that is a whole window away.
        while len(self._points) > 2 and at_seconds - self._points[1].at_seconds >= self._window:
            self._points.popleft()
        first = self._points[0]
        elapsed = at_seconds - first.at_seconds
        return (joules - first.value) / elapsed if elapsed >= self._window * 0.9 else None
