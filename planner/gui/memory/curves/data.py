"""Data and axis ticks of the memory curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, inf, log2, nan
from typing import Final, Literal

from planner.gui.plot.ticks import Ticks, round_ticks
from planner.plan.memory_curve import Axis, MemoryPoint
from planner.present import format as fmt
from planner.units import GIB

_WIDE: Final = 16
_ROOM: Final = 1.1
_FARTHEST: Final = 2
_LINEAR_POINTS: Final = 32
_WIDE_POINTS: Final = 40

XY = tuple[float, float]
"""A point of the plot: x and GiB."""
_GAP: Final[XY] = (nan, nan)
Corner = Literal["above left", "above right", "below left", "below right"]
"""Corner of the plot area at a horizontal line: above or below it, at its left or right end."""


@dataclass(frozen=True, slots=True)
class CurveData:
    """Memory at ascending values of `axis`; `current` is the plan's point, `title` the axis title."""

    axis: Axis
    title: str
    points: tuple[MemoryPoint, ...]
    current: MemoryPoint
    capacity_bytes: int | None
    card: str | None

    @property
    def is_wide(self) -> bool:
        """Return whether the values span so much that the x axis is logarithmic."""
        return self.points[-1].value >= _WIDE * self.points[0].value > 0

    @property
    def memory_range(self) -> tuple[float, float]:
        """Return the range of the memory axis: the plan's point and the card's line with a margin.

        Points far above both are cut off. The axis starts at 0 unless everything lies in its upper half.
        """
        seen = max(self.current.high_bytes, self.capacity_bytes or 0)
        highest = max(point.high_bytes for point in self.points)
        top = min(max(highest, seen) * _ROOM, seen * _FARTHEST)
        lowest = min(min(point.low_bytes for point in self.points), self.capacity_bytes or top)
        return (lowest - (top - lowest) * (_ROOM - 1) if lowest > top / 2 else 0), top

    @property
    def label_corner(self) -> Corner:
        """Return the corner for the label of the card's line that is farthest from the curve."""
        limit = inf if self.capacity_bytes is None else self.capacity_bytes
        first, last = self.points[0], self.points[-1]
        middle = self.nearest((self.x(first.value) + self.x(last.value)) / 2)
        rises = last.total_bytes >= first.total_bytes
        if middle.total_bytes > limit:
            return "below right" if rises else "below left"
        return "above left" if rises else "above right"

    def x(self, value: float) -> float:
        """Return the x of `value`: its base-2 logarithm on a logarithmic axis."""
        return log2(value) if self.is_wide else value

    def split(self) -> tuple[tuple[XY, ...], tuple[XY, ...]]:
        """Split the curve at the card's line into the parts below and above it, in GiB.

        Both parts include the crossings. Disconnected stretches are separated by a NaN point.
        """
        places = [(self.x(point.value), point.total_bytes / GIB) for point in self.points]
        limit = inf if self.capacity_bytes is None else self.capacity_bytes / GIB
        cut = places[:1]
        for before, after in pairwise(places):
            if (before[1] <= limit) != (after[1] <= limit):
                cut.append(_crossing(before, after, limit))
            cut.append(after)
        return _parts(cut, [y <= limit for _, y in cut]), _parts(cut, [y >= limit for _, y in cut])

    def nearest(self, x: float) -> MemoryPoint:
        """Return the point nearest to `x` on the axis."""
        return min(self.points, key=lambda point: abs(self.x(point.value) - x))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return a header and one row per point, with exact bytes."""
        header = (self.axis, "bytes", "low_bytes", "high_bytes", "host_bytes", "gib")
        rows = (
            (
                *(str(p.value), str(p.total_bytes), str(p.low_bytes), str(p.high_bytes)),
                *("" if p.host_bytes is None else str(p.host_bytes), f"{p.total_bytes / GIB:.6f}"),
            )
            for p in self.points
        )
        return (header, *rows)


def _crossing(before: XY, after: XY, limit: float) -> XY:
    (x0, y0), (x1, y1) = before, after
    return x0 + (x1 - x0) * (limit - y0) / (y1 - y0), limit


def _parts(places: Sequence[XY], belongs: Sequence[bool]) -> tuple[XY, ...]:
    """Return the points that belong, with a NaN gap between disconnected runs."""
    runs = groupby(zip(belongs, places, strict=True), key=lambda pair: pair[0])
    parts = [[place for _, place in run] for inside, run in runs if inside]
    return tuple(place for number, part in enumerate(parts) for place in ([_GAP, *part] if number else part))


def curve_values(current: int, largest: int | None, lowest: int, limit: int | None) -> tuple[int, ...]:
    """Return the x values of the curve: from `lowest` to beyond the current value and the `largest` that fits.

    `limit` is the highest allowed value; it is exceeded only if the plan exceeds it.
    """
    wanted = max(4 * current, (largest or 0) * 3 // 2, 8 * lowest)
    top = wanted if limit is None else min(wanted, max(limit, current))
    bottom = min(lowest, current)
    if top - bottom <= _LINEAR_POINTS:
        values = set(range(bottom, top + 1))
    elif top / bottom < _WIDE:
        values = {bottom + (top - bottom) * step // _LINEAR_POINTS for step in range(_LINEAR_POINTS + 1)}
    else:
        values = {round(bottom * (top / bottom) ** (step / _WIDE_POINTS)) for step in range(_WIDE_POINTS + 1)}
    marks = {value for value in (current, largest) if value is not None and value <= top}
    return tuple(sorted(values | marks))


def value_ticks(data: CurveData, wanted: int) -> Ticks:
    """Return about `wanted` ticks of the x axis: powers of two if it is logarithmic, else round numbers."""
    first, last = data.points[0].value, data.points[-1].value
    if not data.is_wide:
        return round_ticks(first, last, wanted, lambda value: fmt.integer(round(value)), whole=True)
    exponents = range(ceil(log2(first)), floor(log2(last)) + 1)
    stride = max(1, ceil(len(exponents) / max(1, wanted)))
    return [(float(exponent), fmt.integer(2**exponent)) for exponent in exponents[::stride]]


def curve_memory_ticks(data: CurveData, wanted: int) -> Ticks:
    """Return about `wanted` ticks of the memory axis in GiB."""
    low, high = (end / GIB for end in data.memory_range)
    return round_ticks(low, high, wanted)
