"""What is drawn of a series: the extremes of columns of one width, kept from one look to the next."""

from math import ceil, log2
from typing import Final, NamedTuple

import numpy as np

from planner.monitor.history.pyramid import Floats, Places, Pyramid

# So many widths there are from one to its double: while more and more is shown, columns seldom change.
_WIDTHS_AN_OCTAVE: Final = 8


class Columns(NamedTuple):
    """What is drawn of a series: at ascending times the lowest and the highest value until the next."""

    times: Floats
    low: Floats
    high: Floats


def column_width(seconds: float) -> float:
    """Return the next of the widths that columns have: at most a tenth more."""
    return float(2.0 ** (ceil(log2(seconds) * _WIDTHS_AN_OCTAVE) / _WIDTHS_AN_OCTAVE))


class ColumnStore:
    """The columns of a series that were asked for last; readings that have come since are added to them.

    A column begins at a whole multiple of the width, so that it stays in place while the span moves. What the store was
    told must not change, unless it is told to `forget`.
    """

    def __init__(self) -> None:
        self._pyramid = Pyramid()
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self._pyramid.forget()
        self._width = 0.0
        self._stop = 0
        self._cuts: Places = np.empty(0, dtype=np.intp)
        self._low: Floats = np.empty(0)
        self._high: Floats = np.empty(0)

    def between(self, times: Floats, values: Floats, first: int, stop: int, width: float) -> Columns:
        """Return the columns that hold the readings from the place `first` up to `stop`, of which there is one."""
        is_kept = width == self._width and self._cuts[0] <= first <= self._cuts[-1]
        if not is_kept:
            self._width, self._stop = width, stop
            self._cuts, self._low, self._high = self._made(times, values, first, stop)
        elif stop > self._stop:
            self._extend(times, values, first, stop)
        # Of the column that `first` is in to the one that holds the last.
        seen = slice(int(self._cuts.searchsorted(first, side="right")) - 1, int(self._cuts.searchsorted(stop)))
        return Columns(times[self._cuts[seen]], self._low[seen], self._high[seen])

    def _extend(self, times: Floats, values: Floats, first: int, stop: int) -> None:
        """Take in what has come; when a column begins, let go of those before `first`."""
        last, come = int(self._cuts[-1]), values[self._stop : stop]
        self._stop = stop
        if times[last] // self._width == times[stop - 1] // self._width:
            self._low[-1] = min(self._low[-1], come.min())
            self._high[-1] = max(self._high[-1], come.max())
            return
        # The last column may have grown too.
        old = slice(int(self._cuts.searchsorted(first, side="right")) - 1, -1)
        cuts, low, high = self._made(times, values, last, stop)
        self._cuts = np.concatenate((self._cuts[old], cuts))
        self._low = np.concatenate((self._low[old], low))
        self._high = np.concatenate((self._high[old], high))

    def _made(self, times: Floats, values: Floats, first: int, stop: int) -> tuple[Places, Floats, Floats]:
        width = self._width
        borders = np.arange(times[first] // width + 1, times[stop - 1] // width + 1) * width
        ends = np.concatenate(([first], first + times[first:stop].searchsorted(borders), [stop]))
        cuts = ends[:-1][ends[1:] > ends[:-1]]
        return self._pyramid.extremes(values, cuts, stop)
