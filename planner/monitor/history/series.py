"""Time series of one quantity of one owner, with bounded memory."""

from bisect import bisect_left
from typing import Final, NamedTuple

import numpy as np

from planner.monitor.history.downsampling import ColumnCache, Floats, Indices, PlotColumns, column_width, enlarged_array
from planner.monitor.readings.intervals import TypicalInterval

BUCKET_SECONDS: Final = 2.0
"""Length of the time buckets of which thinning keeps two readings each: one per second on average."""


def thinned_indices(times: Floats, values: Floats) -> Indices:
    """Return the ascending indices of the readings to keep: the minimum and maximum in each two-second bucket.

    Readings that were already thinned are all kept.
    """
    bucket = np.floor(times / BUCKET_SECONDS)
    order = np.lexsort((values, bucket))
    firsts = np.flatnonzero(np.diff(bucket, prepend=-np.inf))
    lasts = np.append(firsts[1:], len(times)) - 1
    is_kept = np.zeros(len(times), dtype=bool)
    is_kept[order[firsts]] = is_kept[order[lasts]] = True
    return np.flatnonzero(is_kept)


_INITIAL_CAPACITY: Final = 256
# A series of an hour or less is allocated at once, so that a command that runs for days does not grow.
_MOST_ALLOCATED_AT_ONCE: Final = 4_500
# Readings per second of the span. Readings once a second are all kept, and so are the latest at any rate.
_MAX_PER_SECOND: Final = 1.25
_THINNED_ABOVE_PER_SECOND: Final = 1.125
_UNTHINNED_PER_SECOND: Final = 0.125
# Up to this many readings per pixel column, every reading is drawn.
_MAX_RAW_PER_COLUMN: Final = 2


class Gap(NamedTuple):
    """Period without readings, from the last reading before it to the first reading after it."""

    began: float
    ended: float


class Series:
    """Readings of one quantity in order of time (monotonic seconds); readings older than `seconds` are dropped.

    A series holds at most 1.25 readings per second of the span. If readings arrive faster, older readings are thinned
    to the minimum and maximum in every two seconds. `stagger` spreads the times at which different series
    reallocate, since each reallocation takes some milliseconds.
    """

    def __init__(self, seconds: float, stagger: int = 0) -> None:
        self._seconds = seconds
        self._capacity = int(seconds * _MAX_PER_SECOND) + stagger + 4
        is_short = self._capacity - stagger <= _MOST_ALLOCATED_AT_ONCE + 4
        # Pages that are not written to count only later.
        self._times: Floats = np.full(self._capacity if is_short else _INITIAL_CAPACITY + stagger, -np.inf)
        self._values: Floats = self._times.copy()
        self._count = self._thinned = 0
        self._last = -np.inf
        self._gaps: list[Gap] = []
        self._is_interrupted = False
        self._interval = TypicalInterval()
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
        """Return the latest value, None if there is no reading or the series is interrupted."""
        return float(self._values[self._count - 1]) if self._count and not self._is_interrupted else None

    @property
    def nbytes(self) -> int:
        """Return the memory allocated for readings, in bytes."""
        return self._times.nbytes + self._values.nbytes

    def append(self, time: float, value: float) -> None:
        """Add a reading; a reading that is not later than the last reading is ignored."""
        if time <= self._last:
            return
        if self._count:
            self._note_interval_until(time)
        if self._count == len(self._times):
            self._ensure_capacity()
        self._times[self._count] = self._last = time
        self._values[self._count] = value
        self._count += 1

    def note_missing(self) -> None:
        """Record that the quantity was sampled without a value: a gap until the next reading."""
        self._is_interrupted = True

    def value_at(self, time: float) -> float | None:
        """Return the value that holds at `time`, None before the first reading, after the last reading and in gaps."""
        if time >= self._last:
            return float(self._values[self._count - 1]) if self._count and not self._has_ended(time) else None
        index = int(self.times.searchsorted(time, side="right")) - 1
        return None if index < 0 or self._is_in_gap(time) else float(self._values[index])

    def gaps(self, start: float, end: float) -> tuple[Gap, ...]:
        """Return the gaps that overlap a time range, in order."""
        first = bisect_left(self._gaps, start, key=lambda gap: gap.ended)
        last = bisect_left(self._gaps, end, key=lambda gap: gap.began)
        return tuple(self._gaps[first:last])

    def between(self, start: float, end: float, pixels: int) -> PlotColumns:
        """Return plot data from `start` to `end` for a plot `pixels` wide, with one more reading on either side.

        Few readings are returned unchanged; many are reduced to about one column per pixel. Column borders do
        not move while the span scrolls. No minimum or maximum is lost.
        """
        times = self.times
        width = column_width((end - start) / pixels)
        first, stop = times.searchsorted((start // width * width, np.nextafter(end, np.inf))).tolist()
        if stop - first > _MAX_RAW_PER_COLUMN * pixels:
            return self._columns.between(times, self.values, first, stop, width)
        view = slice(max(0, first - 1), stop + 1)
        values = self.values[view]
        return PlotColumns(times[view], values, values)

    def _note_interval_until(self, time: float) -> None:
        """Record the interval from the last reading to `time`, as a gap if readings are missing in between."""
        step = time - self._last
        if self._is_interrupted or self._interval.is_late(step):
            self._gaps.append(Gap(float(self._last), time))
            self._is_interrupted = False
        self._interval.note(step)

    def _is_in_gap(self, time: float) -> bool:
        index = bisect_left(self._gaps, time, key=lambda gap: gap.ended)
        after = self._gaps[index] if index < len(self._gaps) else None
        return after is not None and after.began < time < after.ended

    def _has_ended(self, time: float) -> bool:
        """Return whether the series has no value at `time`: a later time, after an interruption or a long pause."""
        pause = time - self._last
        return pause > 0 and (self._is_interrupted or self._interval.is_late(pause))

    def _ensure_capacity(self) -> None:
        if self._count < self._capacity:
            length = min(2 * self._count, self._capacity)
            self._times = enlarged_array(self._times, self._count, length)
            self._values = enlarged_array(self._values, self._count, length)
            return
        expired = int(np.searchsorted(self.times, self._last - self._seconds))
        self._thinned = max(0, self._thinned - expired)
        self._keep_indices(np.arange(expired, self._count))
        if self._count > _THINNED_ABOVE_PER_SECOND * self._seconds:
            self._thin()
        oldest = float(self._times[0])
        self._gaps = self._gaps[bisect_left(self._gaps, oldest, key=lambda gap: gap.ended) :]

    def _thin(self) -> None:
        """Thin all but the latest readings, and drop gaps that are too short to be visible afterwards."""
        border = (
            self._times[self._count - int(_UNTHINNED_PER_SECOND * self._seconds)] // BUCKET_SECONDS * BUCKET_SECONDS
        )
        thinned, whole = self._thinned, int(np.searchsorted(self.times, border))
        chosen = thinned + thinned_indices(self._times[thinned:whole], self._values[thinned:whole])
        self._thinned = thinned + len(chosen)
        self._keep_indices(np.concatenate((np.arange(thinned), chosen, np.arange(whole, self._count))))
        self._gaps = [gap for gap in self._gaps if gap.ended > border or gap.ended - gap.began > BUCKET_SECONDS]

    def _keep_indices(self, indices: Indices) -> None:
        count = len(indices)
        self._times[:count] = self._times[indices]
        self._values[:count] = self._values[indices]
        self._count = count
        self._columns.forget()
