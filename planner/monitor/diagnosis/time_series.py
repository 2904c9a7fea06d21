"""Short time series of one quantity, their summary statistics, and the detection of work phases."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_RECENT_SECONDS: Final = 30.0
# Who looks every ten seconds has some dozen values in two minutes.
_PARTS: Final = 6
_LONGEST_STEP: Final = 0.5
_LOW: Final = 0.3
_HIGH: Final = 0.7


class Episode(NamedTuple):
    """A period during which a value stayed on one side of a level; it lasts until the next one begins."""

    is_above: bool
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return the duration."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Values of one quantity in order of time, in monotonic seconds; at least one."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, value: float) -> "TimeSeries":
        """Return a series of a single value whose time does not matter."""
        return cls((0.0,), (value,))

    @property
    def seconds(self) -> float:
        """Return the time from the first value to the last."""
        return self.times[-1] - self.times[0]

    @property
    def mean(self) -> float:
        """Return the mean of the values."""
        return sum(self.values) / len(self.values)

    @property
    def growth(self) -> float:
        """Return the growth of a value that rose throughout and not in one large step; else 0.

        **Formula** the difference between the means of the last and the first of six equal parts; 0 unless each mean is
        above the one before and none of the five steps is more than half of the whole.
        """
        means = [part.mean for part in self._parts()]
        if len(means) < _PARTS:
            return 0.0
        steps = [after - before for before, after in pairwise(means)]
        whole = means[-1] - means[0]
        return whole if min(steps) > 0 and max(steps) <= _LONGEST_STEP * whole else 0.0

    @property
    def swings(self) -> float:
        """Return how often a fraction fell from 0.7 or more to 0.3 or less."""
        is_high, falls = False, 0
        for value in self.values:
            if value >= _HIGH:
                is_high = True
            elif value <= _LOW and is_high:
                is_high, falls = False, falls + 1
        return float(falls)

    def quantile(self, share: float) -> float:
        """Return a quantile, interpolated linearly between the two nearest values."""
        ordered = sorted(self.values)
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    def since(self, start: float) -> "TimeSeries | None":
        """Return the part from `start` on, None if it is empty."""
        first = next((place for place, time in enumerate(self.times) if time >= start), None)
        return None if first is None else TimeSeries(self.times[first:], self.values[first:])

    def until(self, end: float) -> "TimeSeries | None":
        """Return the part before `end`, None if it is empty."""
        count = next((place for place, time in enumerate(self.times) if time >= end), len(self.times))
        return TimeSeries(self.times[:count], self.values[:count]) if count else None

    @property
    def first(self) -> "TimeSeries":
        """Return the first value as a series of its own."""
        return TimeSeries(self.times[:1], self.values[:1])

    @property
    def last(self) -> "TimeSeries":
        """Return the last value as a series of its own."""
        return TimeSeries(self.times[-1:], self.values[-1:])

    def at_times(self, times: tuple[float, ...]) -> Sequence[float | None]:
        """Return the value last read at each of these times, None before the first reading."""
        if times == self.times:  # what is read at every look
            return self.values
        places = [bisect_right(self.times, time) for time in times]
        return [self.values[place - 1] if place else None for place in places]

    def combine(self, compute: Callable[..., float | None], *others: "TimeSeries") -> "TimeSeries | None":
        """Return `compute` of each value and of the values of `others` at the same time.

        Times at which one of them has no value yet, or for which `compute` returns None, are left out.
        """
        columns = [other.at_times(self.times) for other in others]
        made = []
        for time, *values in zip(self.times, self.values, *columns, strict=True):
            result = None if None in values else compute(*values)
            if result is not None:
                made.append((time, result))
        return TimeSeries(tuple(time for time, _ in made), tuple(value for _, value in made)) if made else None

    def episodes(self, level: float) -> Iterator[Episode]:
        """Yield the periods at or above `level`, and those below it, in order."""
        start, is_above = self.times[0], self.values[0] >= level
        for time, value in zip(self.times, self.values, strict=True):
            if (value >= level) is not is_above:
                yield Episode(is_above, start, time)
                start, is_above = time, value >= level
        yield Episode(is_above, start, self.times[-1])

    def _parts(self) -> list["TimeSeries"]:
        """Return the non-empty parts of equal duration."""
        length = self.seconds / _PARTS
        parts: dict[int, list[tuple[float, float]]] = {}
        for time, value in zip(self.times, self.values, strict=True):
            number = min(_PARTS - 1, int((time - self.times[0]) / length)) if length else 0
            parts.setdefault(number, []).append((time, value))
        return [TimeSeries(*map(tuple, zip(*part, strict=True))) for part in parts.values()]


STATISTICS: Final[Mapping[str, Callable[[TimeSeries], float]]] = {
    "mean": lambda series: series.mean,
    "p5": lambda series: series.quantile(0.05),
    "p25": lambda series: series.quantile(0.25),
    "median": lambda series: series.quantile(0.5),
    "p95": lambda series: series.quantile(0.95),
    "most": lambda series: max(series.values),
    "last": lambda series: series.values[-1],
    "share": lambda series: series.mean,
    "lately": lambda series: (series.since(series.times[-1] - _RECENT_SECONDS) or series).mean,
    "growth": lambda series: series.growth,
    "swings": lambda series: series.swings,
}
"""Statistics that a criterion can use, by name.

`share` is the mean of an indicator (1 where something holds, else 0). `lately` is the mean of the last half minute: a
slow-down that has ended is no problem any more.
"""

ACTIVE: Final = 0.1
"""Utilization from which a card counts as active. **Source** gpu-usage-audit: 10 % or more is active."""

# A card that did nothing for so long has stopped, unless it waits again and again.
_REST_SECONDS: Final = 30.0
# The same share as in the rules on cards that are idle.
_BRIEF_ACTIVITY_QUANTILE: Final = 0.95


class WorkPhase(NamedTuple):
    """Start of the current phase, and of the present wait, if any: whether work continues after it is unknown."""

    start: float
    wait_start: float | None = None


def current_phase(use: TimeSeries) -> WorkPhase:
    """Return the phase at the end of a utilization series.

    A phase begins with the first work, with a rest, or with the work after one. A rest is a wait that is long, and
    longer than all other waits together. Brief activity on an idle card does not count as work.
    """
    episodes = list(use.episodes(ACTIVE))
    if use.quantile(_BRIEF_ACTIVITY_QUANTILE) >= ACTIVE:
        return _phase(episodes)
    # What an idle card does at this moment may be the beginning of work.
    return WorkPhase(episodes[-1].start if episodes[-1].is_above else use.times[0])


def _phase(episodes: list[Episode]) -> WorkPhase:
    first, last = 0 if episodes[0].is_above else 1, len(episodes) - 1
    rest = _rest(episodes, first)
    if rest is None:
        return WorkPhase(episodes[first].start, None if episodes[last].is_above else episodes[last].start)
    return WorkPhase(episodes[last].start) if rest == last else _phase(episodes[rest:])


def _rest(episodes: list[Episode], first: int) -> int | None:
    """Return the index of the wait, from `first` on, that is a rest; None if there is none."""
    waits = {place: episodes[place].seconds for place in range(first, len(episodes)) if not episodes[place].is_above}
    longest = max(waits, key=lambda place: waits[place], default=None)
    if longest is None or waits[longest] < _REST_SECONDS:
        return None
    return longest if 2 * waits[longest] > sum(waits.values()) else None
