"""Time series of one quantity of one owner: bounded memory, and minimum and maximum of each pixel column for plots."""

from bisect import bisect_left
from math import ceil, log2
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.monitor.readings.sample import TypicalInterval

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

BLOCK_SIZE: Final = 8
_STEPS: Final = 2
# Inner borders move to the next block border, by at most a quarter of the narrowest column.
_MIN_BLOCKS_PER_COLUMN: Final = 4


class MinMaxPyramid:
    """Minima and maxima of whole blocks of `BLOCK` values, and of `BLOCK` such blocks.

    It is updated on demand, so that a series that is not plotted costs nothing. Values of complete blocks must not
    change unless `forget` is called.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Discard all minima and maxima, because old values were removed."""
        self._low: list[Floats] = [np.empty(0) for _ in range(_STEPS)]
        self._high: list[Floats] = [np.empty(0) for _ in range(_STEPS)]
        self._built = [0] * _STEPS

    def column_extremes(self, values: Floats, cuts: Indices, stop: int) -> tuple[Indices, Floats, Floats]:
        """Return start indices, minima and maxima of the columns that begin at the indices `cuts`.

        A column reaches from one of `cuts` to the next, the last to `stop`. Inner borders may move a little so that
        whole blocks are used, but every value from the first cut to `stop` is in some column.
        """
        ends = np.append(cuts, stop)
        narrowest = int((ends[1:] - ends[:-1]).min())
        for step in reversed(range(_STEPS)):
            size = BLOCK_SIZE ** (step + 1)
            if narrowest >= _MIN_BLOCKS_PER_COLUMN * size:
                self._add_complete_blocks(values, step)
                return self._extremes_from_blocks(values, cuts, stop, step)
        return cuts, np.minimum.reduceat(values[:stop], cuts), np.maximum.reduceat(values[:stop], cuts)

    def _add_complete_blocks(self, values: Floats, step: int) -> None:
        if step:
            self._add_complete_blocks(values, step - 1)
        size = BLOCK_SIZE ** (step + 1)
        built, whole = self._built[step], len(values) // size
        if whole == built:
            return
        below = [self._low[step - 1], self._high[step - 1]] if step else [values, values]
        for blocks, source, reduce in zip((self._low, self._high), below, (np.min, np.max), strict=True):
            fresh = source[built * BLOCK_SIZE : whole * BLOCK_SIZE].reshape(-1, BLOCK_SIZE)
            blocks[step] = _with_capacity(blocks[step], built, whole)
            reduce(fresh, axis=1, out=blocks[step][built:whole])
        self._built[step] = whole

    def _extremes_from_blocks(
        self, values: Floats, cuts: Indices, stop: int, step: int
    ) -> tuple[Indices, Floats, Floats]:
        size = BLOCK_SIZE ** (step + 1)
        borders = -(-cuts // size)
        end = stop // size
        low = np.minimum.reduceat(self._low[step][:end], borders)
        high = np.maximum.reduceat(self._high[step][:end], borders)
        for column, loose in ((0, values[cuts[0] : borders[0] * size]), (-1, values[end * size : stop])):
            if len(loose):
                low[column] = min(low[column], loose.min())
                high[column] = max(high[column], loose.max())
        return np.concatenate((cuts[:1], borders[1:] * size)), low, high


def _with_capacity(blocks: Floats, built: int, capacity: int) -> Floats:
    """Return an array with capacity for `capacity` blocks that begins with the first `built` of `blocks`."""
    return blocks if len(blocks) >= capacity else enlarged_array(blocks, built, max(capacity, 2 * len(blocks)))


def enlarged_array(array: npt.NDArray[Any], count: int, length: int) -> npt.NDArray[Any]:
    """Return an array of `length` elements that begins with the first `count` elements of `array`."""
    larger = np.empty(length, dtype=array.dtype)
    larger[:count] = array[:count]
    return larger


# Number of column widths per doubling: while the plotted span grows, columns seldom change.
_WIDTHS_PER_DOUBLING: Final = 8


class PlotColumns(NamedTuple):
    """Plot data of a series: minimum and maximum of each column, with the ascending start times of the columns."""

    times: Floats
    low: Floats
    high: Floats


def column_width(seconds: float) -> float:
    """Return the column width in seconds, rounded up to one of a fixed set of widths (at most a tenth larger)."""
    return float(2.0 ** (ceil(log2(seconds) * _WIDTHS_PER_DOUBLING) / _WIDTHS_PER_DOUBLING))


class ColumnCache:
    """Cache of the plot columns that were last requested from a series; new readings are added incrementally.

    A column begins at a whole multiple of the width, so that it stays in place while the plotted span scrolls. Cached
    values must not change unless `forget` is called.
    """

    def __init__(self) -> None:
        self._pyramid = MinMaxPyramid()
        self.forget()

    def forget(self) -> None:
        """Discard all cached columns."""
        self._pyramid.forget()
        self._width = 0.0
        self._stop = 0
        self._cuts: Indices = np.empty(0, dtype=np.intp)
        self._low: Floats = np.empty(0)
        self._high: Floats = np.empty(0)

    def between(self, times: Floats, values: Floats, first: int, stop: int, width: float) -> PlotColumns:
        """Return the columns of the readings from index `first` up to `stop` (exclusive); at least one reading."""
        is_cached = width == self._width and self._cuts[0] <= first <= self._cuts[-1]
        if not is_cached:
            self._width, self._stop = width, stop
            self._cuts, self._low, self._high = self._compute_columns(times, values, first, stop)
        elif stop > self._stop:
            self._add_readings(times, values, first, stop)
        # From the column of the first reading to the column of the last.
        view = slice(int(self._cuts.searchsorted(first, side="right")) - 1, int(self._cuts.searchsorted(stop)))
        return PlotColumns(times[self._cuts[view]], self._low[view], self._high[view])

    def _add_readings(self, times: Floats, values: Floats, first: int, stop: int) -> None:
        """Add new readings; when a new column begins, drop the columns before `first`."""
        last, new_values = int(self._cuts[-1]), values[self._stop : stop]
        self._stop = stop
        if times[last] // self._width == times[stop - 1] // self._width:
            self._low[-1] = min(self._low[-1], new_values.min())
            self._high[-1] = max(self._high[-1], new_values.max())
            return
        # The last column may have grown too.
        old = slice(int(self._cuts.searchsorted(first, side="right")) - 1, -1)
        cuts, low, high = self._compute_columns(times, values, last, stop)
        self._cuts = np.concatenate((self._cuts[old], cuts))
        self._low = np.concatenate((self._low[old], low))
        self._high = np.concatenate((self._high[old], high))

    def _compute_columns(self, times: Floats, values: Floats, first: int, stop: int) -> tuple[Indices, Floats, Floats]:
        width = self._width
        borders = np.arange(times[first] // width + 1, times[stop - 1] // width + 1) * width
        ends = np.concatenate(([first], first + times[first:stop].searchsorted(borders), [stop]))
        cuts = ends[:-1][ends[1:] > ends[:-1]]
        return self._pyramid.column_extremes(values, cuts, stop)


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
