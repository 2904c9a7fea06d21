"""Time series of one quantity of one owner, with bounded memory."""

from bisect import bisect_left
from typing import Final, NamedTuple

import numpy as np

from planner.monitor.history.downsampling import ColumnCache, Floats, Indices, PlotColumns, column_width, enlarged
from planner.monitor.readings.intervals import UsualInterval

BUCKET_SECONDS: Final = 2.0
"""Bucket in which thinning keeps two readings: on average one per second."""


def thinned_indices(times: Floats, values: Floats) -> Indices:
    """Return the ascending indices of the readings to keep: the minimum and maximum of each two seconds.

    Readings that were already thinned are all kept.
    """
    bucket = np.floor(times / BUCKET_SECONDS)
    order = np.lexsort((values, bucket))
    firsts = np.flatnonzero(np.diff(bucket, prepend=-np.inf))
    lasts = np.append(firsts[1:], len(times)) - 1
    return np.union1d(order[firsts], order[lasts])


_INITIAL_CAPACITY: Final = 256
# Of the span's seconds. Readings are kept whole where they come once a second, and the latest whatever their rate.
_MAX_PER_SECOND: Final = 1.25
_THINNED_ABOVE: Final = 1.125
_UNTHINNED: Final = 0.125
# Below so many readings a column each of them can be drawn.
_RAW_A_COLUMN: Final = 2


class Gap(NamedTuple):
    """A period without readings, from the last before it to the first after it."""

    began: float
    ended: float


class Series:
    """Readings in order of time, in monotonic seconds; those older than `seconds` are dropped.

    It holds at most 1.25 readings per second of the span. If they arrive faster, older ones are thinned to the minimum
    and maximum of every two seconds. `stagger` spreads the times at which different series reallocate, which takes some
    milliseconds each.
    """

    def __init__(self, seconds: float, stagger: int = 0) -> None:
        self._seconds = seconds
        self._capacity = int(seconds * _MAX_PER_SECOND) + stagger + 4
        self._times: Floats = np.empty(min(_INITIAL_CAPACITY + stagger, self._capacity))
        self._values: Floats = np.empty_like(self._times)
        self._count = self._thinned = 0
        self._last = -np.inf
        self._gaps: list[Gap] = []
        self._is_broken = False
        self._pace = UsualInterval()
        self._columns = ColumnCache()

    def __len__(self) -> int:
        return self._count

    @property
    def times(self) -> Floats:
        """Return the times of all readings, as a view that is valid until the next reading."""
        return self._times[: self._count]

    @property
    def values(self) -> Floats:
        """Return the values of all readings, as a view that is valid until the next reading."""
        return self._values[: self._count]

    @property
    def last(self) -> float | None:
        """Return the latest value, None if there is none or the series is interrupted."""
        return float(self._values[self._count - 1]) if self._count and not self._is_broken else None

    @property
    def nbytes(self) -> int:
        """Return the memory allocated for readings, in bytes."""
        return self._times.nbytes + self._values.nbytes

    def append(self, time: float, value: float) -> None:
        """Add a reading; one that is not later than the last is ignored."""
        if time <= self._last:
            return
        if self._count:
            self._note_pace(time)
        if self._count == len(self._times):
            self._make_room()
        self._times[self._count] = self._last = time
        self._values[self._count] = value
        self._count += 1

    def note_missing(self) -> None:
        """Record that the quantity was sampled without a value: a gap until the next reading."""
        self._is_broken = True

    def at(self, time: float) -> float | None:
        """Return the value at a time, None before the first reading, after the last and in gaps."""
        if time >= self._last:
            return float(self._values[self._count - 1]) if self._count and not self._is_over(time) else None
        place = int(self.times.searchsorted(time, side="right")) - 1
        return None if place < 0 or self._is_in_gap(time) else float(self._values[place])

    def gaps(self, start: float, end: float) -> tuple[Gap, ...]:
        """Return the gaps that overlap a time range, in order."""
        first = bisect_left(self._gaps, start, key=lambda gap: gap.ended)
        last = bisect_left(self._gaps, end, key=lambda gap: gap.began)
        return tuple(self._gaps[first:last])

    def between(self, start: float, end: float, pixels: int) -> PlotColumns:
        """Return plot data from `start` to `end` for so many pixels, with the neighboring readings on either side.

        Few readings are returned as they are; more are reduced to about one column per pixel, whose borders stay in
        place while the span scrolls. No minimum or maximum is lost.
        """
        times = self.times
        width = column_width((end - start) / pixels)
        first, stop = times.searchsorted((start // width * width, np.nextafter(end, np.inf))).tolist()
        if stop - first > _RAW_A_COLUMN * pixels:
            return self._columns.between(times, self.values, first, stop, width)
        view = slice(max(0, first - 1), stop + 1)
        seen = self.values[view]
        return PlotColumns(times[view], seen, seen)

    def _note_pace(self, time: float) -> None:
        step = time - self._last
        if self._is_broken or self._pace.is_late(step):
            self._gaps.append(Gap(float(self._last), time))
            self._is_broken = False
        self._pace.note(step)

    def _is_in_gap(self, time: float) -> bool:
        place = bisect_left(self._gaps, time, key=lambda gap: gap.ended)
        after = self._gaps[place] if place < len(self._gaps) else None
        return after is not None and after.began < time < after.ended

    def _is_over(self, time: float) -> bool:
        late = time - self._last
        return late > 0 and (self._is_broken or self._pace.is_late(late))

    def _make_room(self) -> None:
        if self._count < self._capacity:
            length = min(2 * self._count, self._capacity)
            self._times = enlarged(self._times, self._count, length)
            self._values = enlarged(self._values, self._count, length)
            return
        forgotten = int(np.searchsorted(self.times, self._last - self._seconds))
        self._thinned = max(0, self._thinned - forgotten)
        self._keep(np.arange(forgotten, self._count))
        if self._count > _THINNED_ABOVE * self._seconds:
            self._thin()
        oldest = float(self._times[0])
        self._gaps = self._gaps[bisect_left(self._gaps, oldest, key=lambda gap: gap.ended) :]

    def _thin(self) -> None:
        """Thin all but the latest readings, and drop gaps that are too short to be seen afterwards."""
        border = self._times[self._count - int(_UNTHINNED * self._seconds)] // BUCKET_SECONDS * BUCKET_SECONDS
        thinned, whole = self._thinned, int(np.searchsorted(self.times, border))
        chosen = thinned + thinned_indices(self._times[thinned:whole], self._values[thinned:whole])
        self._thinned = thinned + len(chosen)
        self._keep(np.concatenate((np.arange(thinned), chosen, np.arange(whole, self._count))))
        self._gaps = [gap for gap in self._gaps if gap.ended > border or gap.ended - gap.began > BUCKET_SECONDS]

    def _keep(self, places: Indices) -> None:
        count = len(places)
        self._times[:count] = self._times[places]
        self._values[:count] = self._values[places]
        self._count = count
        self._columns.forget()
