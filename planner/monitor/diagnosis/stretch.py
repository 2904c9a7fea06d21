"""One quantity over a while, what can be said of it in one number, and since when a card does what it does."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_LATELY_SECONDS: Final = 30.0
# Who looks every ten seconds has some dozen values in two minutes.
_PARTS: Final = 6
_LONGEST_STEP: Final = 0.5
_LOW: Final = 0.3
_HIGH: Final = 0.7


class Episode(NamedTuple):
    """A while during which a value stayed on one side of a level; it lasts until the next one begins."""

    is_above: bool
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return how long it lasted."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values in the order of their times, in monotonic seconds; at least one."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, value: float) -> "Stretch":
        """Return one value, whatever its time."""
        return cls((0.0,), (value,))

    @property
    def seconds(self) -> float:
        """Return how long it is from the first to the last value."""
        return self.times[-1] - self.times[0]

    @property
    def mean(self) -> float:
        """Return the mean of the values."""
        return sum(self.values) / len(self.values)

    @property
    def growth(self) -> float:
        """Return by how much the value grew, if it grew all the time and in no one great step; else 0.

        **Formula** the difference between the means of the last and the first of six equal parts; 0 unless each mean
        is above the one before and none of the five steps is more than half of the whole.
        """
        means = [part.mean for part in self._parts()]
        if len(means) < _PARTS:
            return 0.0
        steps = [after - before for before, after in pairwise(means)]
        whole = means[-1] - means[0]
        return whole if min(steps) > 0 and max(steps) <= _LONGEST_STEP * whole else 0.0

    @property
    def swings(self) -> float:
        """Return how often a share fell from 0.7 or more to 0.3 or less."""
        is_high, falls = False, 0
        for value in self.values:
            if value >= _HIGH:
                is_high = True
            elif value <= _LOW and is_high:
                is_high, falls = False, falls + 1
        return float(falls)

    def quantile(self, share: float) -> float:
        """Return the value that `share` of all values lie below, between the two nearest."""
        ordered = sorted(self.values)
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    def since(self, start: float) -> "Stretch | None":
        """Return what lies at `start` and after it, none where nothing does."""
        first = next((place for place, time in enumerate(self.times) if time >= start), None)
        return None if first is None else Stretch(self.times[first:], self.values[first:])

    def until(self, end: float) -> "Stretch | None":
        """Return what lies before `end`, none where nothing does."""
        count = next((place for place, time in enumerate(self.times) if time >= end), len(self.times))
        return Stretch(self.times[:count], self.values[:count]) if count else None

    @property
    def first(self) -> "Stretch":
        """Return the first value alone."""
        return Stretch(self.times[:1], self.values[:1])

    @property
    def last(self) -> "Stretch":
        """Return the last value alone."""
        return Stretch(self.times[-1:], self.values[-1:])

    def at_times(self, times: tuple[float, ...]) -> Sequence[float | None]:
        """Return the values that were last read at these times, none where there was none yet."""
        if times == self.times:  # what is read at every look
            return self.values
        places = [bisect_right(self.times, time) for time in times]
        return [self.values[place - 1] if place else None for place in places]

    def with_each(self, compute: Callable[..., float | None], *others: "Stretch") -> "Stretch | None":
        """Return what `compute` makes of each value and of those of `others` that stood at its time.

        Times at which one of them did not stand yet, or of which nothing can be made, are left out.
        """
        columns = [other.at_times(self.times) for other in others]
        made = []
        for time, *values in zip(self.times, self.values, *columns, strict=True):
            result = None if None in values else compute(*values)
            if result is not None:
                made.append((time, result))
        return Stretch(tuple(time for time, _ in made), tuple(value for _, value in made)) if made else None

    def runs(self, level: float) -> Iterator[Episode]:
        """Yield the runs of values at or above `level`, and of those below."""
        start, is_above = self.times[0], self.values[0] >= level
        for time, value in zip(self.times, self.values, strict=True):
            if (value >= level) is not is_above:
                yield Episode(is_above, start, time)
                start, is_above = time, value >= level
        yield Episode(is_above, start, self.times[-1])

    def _parts(self) -> list["Stretch"]:
        """Return the parts of the stretch, equal in time, that have values."""
        length = self.seconds / _PARTS
        parts: dict[int, list[tuple[float, float]]] = {}
        for time, value in zip(self.times, self.values, strict=True):
            number = min(_PARTS - 1, int((time - self.times[0]) / length)) if length else 0
            parts.setdefault(number, []).append((time, value))
        return [Stretch(*map(tuple, zip(*part, strict=True))) for part in parts.values()]


STATISTICS: Final[Mapping[str, Callable[[Stretch], float]]] = {
    "mean": lambda stretch: stretch.mean,
    "p5": lambda stretch: stretch.quantile(0.05),
    "p25": lambda stretch: stretch.quantile(0.25),
    "median": lambda stretch: stretch.quantile(0.5),
    "p95": lambda stretch: stretch.quantile(0.95),
    "most": lambda stretch: max(stretch.values),
    "last": lambda stretch: stretch.values[-1],
    "share": lambda stretch: stretch.mean,
    "lately": lambda stretch: (stretch.since(stretch.times[-1] - _LATELY_SECONDS) or stretch).mean,
    "growth": lambda stretch: stretch.growth,
    "swings": lambda stretch: stretch.swings,
}
"""What a rule can ask of a quantity. `share` is the mean of what is 1 where something holds and 0 where it does not.
`lately` is that of the last half minute: what slowed a card and is over is no trouble any more.
"""

ACTIVE: Final = 0.1
"""From here on a card does something. **Source** gpu-usage-audit: a utilisation of 10 % or more is active."""

# A card that did nothing for so long has stopped, unless it waits again and again.
_REST_SECONDS: Final = 30.0
# The same share as in the rules on cards that are idle.
_BUT_FOR_MOMENTS: Final = 0.95


class Phase(NamedTuple):
    """When it began, and since when the card waits, if it does: nobody can tell yet whether the work goes on."""

    start: float
    wait_start: float | None = None


def phase_of(use: Stretch) -> Phase:
    """Return the phase at the end of what was seen of a card's use.

    It begins with the first work, with a rest, or with the work after it. A rest is a wait that is long, and longer
    than all other waits together. Moments of use on an idle card are no work.
    """
    runs = list(use.runs(ACTIVE))
    if use.quantile(_BUT_FOR_MOMENTS) >= ACTIVE:
        return _phase(runs)
    # What an idle card does at this moment may be the beginning of work.
    return Phase(runs[-1].start if runs[-1].is_above else use.times[0])


def _phase(runs: list[Episode]) -> Phase:
    first, last = 0 if runs[0].is_above else 1, len(runs) - 1
    rest = _rest(runs, first)
    if rest is None:
        return Phase(runs[first].start, None if runs[last].is_above else runs[last].start)
    return Phase(runs[last].start) if rest == last else _phase(runs[rest:])


def _rest(runs: list[Episode], first: int) -> int | None:
    """Return the place of the wait from `first` on that ends one work, or parts two; none where there is none."""
    waits = {place: runs[place].seconds for place in range(first, len(runs)) if not runs[place].is_above}
    longest = max(waits, key=lambda place: waits[place], default=None)
    if longest is None or waits[longest] < _REST_SECONDS:
        return None
    return longest if 2 * waits[longest] > sum(waits.values()) else None
