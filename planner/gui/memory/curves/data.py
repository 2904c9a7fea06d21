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

_LOG_AXIS_RATIO: Final = 16
_MARGIN_FACTOR: Final = 1.1
_CUT_OFF_FACTOR: Final = 2
_LINEAR_POINTS: Final = 32
_LOG_POINTS: Final = 40

XY = tuple[float, float]
"""Point of the memory curve: position on the x axis, and memory in GiB."""
_GAP: Final[XY] = (nan, nan)
Corner = Literal["above left", "above right", "below left", "below right"]
"""Where a label stands at a horizontal line: above or below the line, at its left or right end."""


@dataclass(frozen=True, slots=True)
class CurveData:
    """Points of the memory curve at ascending values of the plan field `axis`; `current` is the plan's own point."""

    axis: Axis
    title: str
    points: tuple[MemoryPoint, ...]
    current: MemoryPoint
    capacity_bytes: int | None
    card: str | None

    @property
    def is_wide(self) -> bool:
        """Return whether the x values span so wide a range that the x axis is logarithmic."""
        return self.points[-1].value >= _LOG_AXIS_RATIO * self.points[0].value > 0

    @property
    def memory_range(self) -> tuple[float, float]:
        """Return both ends of the memory axis in bytes, between which the plan's point and the card's line lie.

        Points far above the plan's point and the card's line are cut off. The axis starts at 0 unless all points and
        the card's line lie in its upper half.
        """
        must_show_bytes = max(self.current.high_bytes, self.capacity_bytes or 0)
        highest = max(point.high_bytes for point in self.points)
        top = min(max(highest, must_show_bytes) * _MARGIN_FACTOR, must_show_bytes * _CUT_OFF_FACTOR)
        lowest = min(min(point.low_bytes for point in self.points), self.capacity_bytes or top)
        return (lowest - (top - lowest) * (_MARGIN_FACTOR - 1) if lowest > top / 2 else 0), top

    @property
    def label_corner(self) -> Corner:
        """Return the position of the card's label that is farthest from the curve."""
        limit = inf if self.capacity_bytes is None else self.capacity_bytes
        first, last = self.points[0], self.points[-1]
        middle = self.nearest_point((self.x_position(first.value) + self.x_position(last.value)) / 2)
        rises = last.total_bytes >= first.total_bytes
        if middle.total_bytes > limit:
            return "below right" if rises else "below left"
        return "above left" if rises else "above right"

    def x_position(self, value: float) -> float:
        """Return the x position of `value`: its base-2 logarithm on a logarithmic axis."""
        return log2(value) if self.is_wide else value

    def split_at_card(self) -> tuple[tuple[XY, ...], tuple[XY, ...]]:
        """Split the curve at the card's line into the parts below and above it, in GiB.

        The two parts share the crossing points. Disconnected stretches are separated by a NaN point.
        """
        points = [(self.x_position(point.value), point.total_bytes / GIB) for point in self.points]
        limit = inf if self.capacity_bytes is None else self.capacity_bytes / GIB
        split_points = points[:1]
        for before, after in pairwise(points):
            if (before[1] <= limit) != (after[1] <= limit):
                split_points.append(_crossing_point(before, after, limit))
            split_points.append(after)
        return _selected_with_gaps(split_points, [y <= limit for _, y in split_points]), _selected_with_gaps(
            split_points, [y >= limit for _, y in split_points]
        )

    def nearest_point(self, x: float) -> MemoryPoint:
        """Return the point nearest to `x` on the axis."""
        return min(self.points, key=lambda point: abs(self.x_position(point.value) - x))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the CSV rows of the curve: a header, and a row per point with exact sizes in bytes."""
        header = (self.axis, "bytes", "low_bytes", "high_bytes", "host_bytes", "gib")
        rows = (
            (
                *(str(p.value), str(p.total_bytes), str(p.low_bytes), str(p.high_bytes)),
                *("" if p.host_bytes is None else str(p.host_bytes), f"{p.total_bytes / GIB:.6f}"),
            )
            for p in self.points
        )
        return (header, *rows)


def _crossing_point(before: XY, after: XY, limit: float) -> XY:
    (x0, y0), (x1, y1) = before, after
    return x0 + (x1 - x0) * (limit - y0) / (y1 - y0), limit


def _selected_with_gaps(points: Sequence[XY], is_selected: Sequence[bool]) -> tuple[XY, ...]:
    """Return the points where `is_selected`, with a NaN point at each gap, so that no line crosses the gap."""
    runs = groupby(zip(is_selected, points, strict=True), key=lambda pair: pair[0])
    parts = [[place for _, place in run] for inside, run in runs if inside]
    return tuple(place for number, part in enumerate(parts) for place in ([_GAP, *part] if number else part))


def curve_values(current: int, largest: int | None, lowest: int, limit: int | None) -> tuple[int, ...]:
    """Return the x values of the curve: from `lowest` to beyond the current value and the `largest` that fits.

    `limit` is the highest allowed value; it is exceeded only if the plan exceeds it.
    """
    target_top = max(4 * current, (largest or 0) * 3 // 2, 8 * lowest)
    top = target_top if limit is None else min(target_top, max(limit, current))
    bottom = min(lowest, current)
    if top - bottom <= _LINEAR_POINTS:
        values = set(range(bottom, top + 1))
    elif top / bottom < _LOG_AXIS_RATIO:
        values = {bottom + (top - bottom) * step // _LINEAR_POINTS for step in range(_LINEAR_POINTS + 1)}
    else:
        values = {round(bottom * (top / bottom) ** (step / _LOG_POINTS)) for step in range(_LOG_POINTS + 1)}
    marks = {value for value in (current, largest) if value is not None and value <= top}
    return tuple(sorted(values | marks))


def value_ticks(data: CurveData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the x axis: powers of two on a logarithmic axis, else round numbers."""
    first, last = data.points[0].value, data.points[-1].value
    if not data.is_wide:
        return round_ticks(first, last, tick_count, lambda value: fmt.integer(round(value)), whole=True)
    exponents = range(ceil(log2(first)), floor(log2(last)) + 1)
    stride = max(1, ceil(len(exponents) / max(1, tick_count)))
    return [(float(exponent), fmt.integer(2**exponent)) for exponent in exponents[::stride]]


def curve_memory_ticks(data: CurveData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the memory axis in GiB."""
    low, high = (end / GIB for end in data.memory_range)
    return round_ticks(low, high, tick_count)
