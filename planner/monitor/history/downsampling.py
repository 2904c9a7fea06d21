"""Downsampling of long time series for plots: the minimum and maximum of each pixel column."""

from math import ceil, log2
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

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
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._built = [0] * _STEPS
        self.forget()

    def forget(self) -> None:
        """Discard all minima and maxima, because old values were removed."""
        self._low = [np.empty(0) for _ in range(_STEPS)]
        self._high = [np.empty(0) for _ in range(_STEPS)]
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
        """Add the blocks that have become complete."""
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
