"""Short time series of one quantity, their summary statistics, and the detection of work phases."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_RECENT_SECONDS: Final = 30.0
# With a reading every ten seconds, two minutes hold about a dozen values.
_PART_COUNT: Final = 6
_MAX_STEP_FRACTION: Final = 0.5
_LOW_FRACTION: Final = 0.3
_HIGH_FRACTION: Final = 0.7


class Episode(NamedTuple):
    """Period during which a value stayed at or above a level (or below), until the next period begins."""

    is_above: bool
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return the duration of the period."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Values of one quantity in order of time (monotonic seconds); at least one value."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, times: Iterable[float], values: Iterable[float]) -> "TimeSeries":
        """Return a series of these times and values."""
        # CPython keeps up to 2,000 freed tuples of each short length, but `tuple` of an iterator takes none of them:
        # with it, a monitor that runs for hours would grow.
        return cls((*times,), (*values,))

    @classmethod
    def single_value(cls, value: float) -> "TimeSeries":
        """Return a series of one value at time 0, for quantities without a time."""
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
        """Return by how much the values rose steadily; 0 if the values fell in between or rose in one large step.

        **Formula** the difference between the means of the last and the first of six equal parts; 0 unless each mean is
        above the previous mean and none of the five steps is more than half of the total growth.
        """
        means = [part.mean for part in self._equal_parts()]
        if len(means) < _PART_COUNT:
            return 0.0
        steps = [after - before for before, after in pairwise(means)]
        whole = means[-1] - means[0]
        return whole if min(steps) > 0 and max(steps) <= _MAX_STEP_FRACTION * whole else 0.0

    @property
    def lately(self) -> float:
        """Return the mean of the last half minute."""
        return (self.since(self.times[-1] - _RECENT_SECONDS) or self).mean

    @property
    def unending_growth(self) -> float:
        """Return `growth`; 0 if it levelled off: the last of the five steps is less than half of their mean."""
        growth = self.growth
        if not growth:
            return 0.0
        *_, before, last = (part.mean for part in self._equal_parts())
        return growth if last - before >= _MAX_STEP_FRACTION * growth / (_PART_COUNT - 1) else 0.0

    @property
    def swings(self) -> float:
        """Return how often the series fell from 0.7 or more to 0.3 or less."""
        is_high, falls = False, 0
        for value in self.values:
            if value >= _HIGH_FRACTION:
                is_high = True
            elif value <= _LOW_FRACTION and is_high:
                is_high, falls = False, falls + 1
        return float(falls)

    def quantile(self, share: float) -> float:
        """Return a quantile, interpolated linearly between the two nearest values."""
        ordered = sorted(self.values)
        position = share * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (position - below) * (ordered[above] - ordered[below])

    def since(self, start: float) -> "TimeSeries | None":
        """Return the part of the series from time `start` on, None if that part is empty."""
        first = bisect_left(self.times, start)
        return TimeSeries(self.times[first:], self.values[first:]) if first < len(self.times) else None

    def until(self, end: float) -> "TimeSeries | None":
        """Return the part of the series before time `end`, None if that part is empty."""
        count = bisect_left(self.times, end)
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
        """Return the value that holds at each of `times`: the last value up to that time, None before the first."""
        if times == self.times:  # quantities that are read in every sample
            return self.values
        indices = [bisect_right(self.times, time) for time in times]
        return [self.values[index - 1] if index else None for index in indices]

    def combine(self, compute: Callable[..., float | None], *others: "TimeSeries") -> "TimeSeries | None":
        """Return the series of `compute` applied to each value and the simultaneous values of `others`.

        Times at which a series has no value yet, or `compute` returns None, are left out.
        """
        start = bisect_left(self.times, max((other.times[0] for other in others), default=self.times[0]))
        times = self.times[start:]
        results = map(compute, self.values[start:], *(other.at_times(times) for other in others))
        known = [(time, result) for time, result in zip(times, results, strict=True) if result is not None]
        return TimeSeries(*zip(*known, strict=True)) if known else None

    def episodes(self, level: float) -> Iterator[Episode]:
        """Yield the alternating periods at or above `level` and below `level`, in order."""
        start, is_above = self.times[0], self.values[0] >= level
        for time, value in zip(self.times, self.values, strict=True):
            if (value >= level) is not is_above:
                yield Episode(is_above, start, time)
                start, is_above = time, value >= level
        yield Episode(is_above, start, self.times[-1])

    def _equal_parts(self) -> list["TimeSeries"]:
        """Split the series into six parts of equal duration; empty parts are left out."""
        first, length = self.times[0], self.seconds / _PART_COUNT
        if not length:
            return [self]
        inner = [
            bisect_left(self.times, number, key=lambda time: int((time - first) / length))
            for number in range(1, _PART_COUNT)
        ]
        borders = pairwise((0, *inner, len(self.times)))
        return [TimeSeries(self.times[start:stop], self.values[start:stop]) for start, stop in borders if start < stop]


STATISTICS: Final[Mapping[str, Callable[[TimeSeries], float]]] = {
    "mean": lambda series: series.mean,
    "p5": lambda series: series.quantile(0.05),
    "p25": lambda series: series.quantile(0.25),
    "median": lambda series: series.quantile(0.5),
    "p95": lambda series: series.quantile(0.95),
    "most": lambda series: max(series.values),
    "last": lambda series: series.values[-1],
    "share": lambda series: series.mean,
    "lately": lambda series: series.lately,
    "growth": lambda series: series.growth,
    "unending growth": lambda series: series.unending_growth,
    "swings": lambda series: series.swings,
}
"""Statistics that a criterion can use, by name.

`share` is the mean of an indicator (1 where a condition holds, else 0). `lately` is the mean of the last half minute: a
slow-down that has ended is no problem any more.
"""

ACTIVE_UTILIZATION: Final = 0.1
"""Utilization from which a GPU counts as active. **Source** gpu-usage-audit: 10 % or more is active."""

# A GPU that was idle for this long has stopped, unless it waits repeatedly.
_REST_SECONDS: Final = 30.0
# The same quantile as in the rules for idle GPUs.
_BRIEF_ACTIVITY_QUANTILE: Final = 0.95


class WorkPhase(NamedTuple):
    """Current period of a GPU, since `start`: work, which may include waits, or a rest.

    `wait_start` is the start of a wait at the end of work, after which work may continue; None without such a wait.
    """

    start: float
    wait_start: float | None = None


def current_phase(utilization: TimeSeries) -> WorkPhase:
    """Return the period of work or rest in which a GPU is at the end of its utilization series.

    A phase begins with the first work, with a rest, or with the work after a rest. A rest is a wait of at least 30
    seconds that is longer than all other waits together. Brief activity on an idle GPU does not count as work.
    """
    episodes = list(utilization.episodes(ACTIVE_UTILIZATION))
    if utilization.quantile(_BRIEF_ACTIVITY_QUANTILE) >= ACTIVE_UTILIZATION:
        return _last_phase(episodes)
    # Current activity of an idle GPU may be the beginning of work.
    return WorkPhase(episodes[-1].start if episodes[-1].is_above else utilization.times[0])


def _last_phase(episodes: list[Episode]) -> WorkPhase:
    first, last = 0 if episodes[0].is_above else 1, len(episodes) - 1
    rest = _rest_index(episodes, first)
    if rest is None:
        return WorkPhase(episodes[first].start, None if episodes[last].is_above else episodes[last].start)
    return WorkPhase(episodes[last].start) if rest == last else _last_phase(episodes[rest:])


def _rest_index(episodes: list[Episode], first: int) -> int | None:
    """Return the index of the wait, from `first` on, that is long enough to separate work phases; None without one."""
    waits = {index: episodes[index].seconds for index in range(first, len(episodes)) if not episodes[index].is_above}
    longest = max(waits, key=lambda index: waits[index], default=None)
    if longest is None or waits[longest] < _REST_SECONDS:
        return None
    return longest if 2 * waits[longest] > sum(waits.values()) else None
