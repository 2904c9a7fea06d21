"""Memory over one number of the plan: data, plot, and panel with the choice of the x axis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, inf, log2, nan
from typing import Final, Literal

from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QResizeEvent

from planner.gui.plot.chart import LIMIT, DataChart, ItemStyle, pg
from planner.gui.plot.panel import DataPanel
from planner.gui.plot.ticks import Ticks, round_ticks
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.plan.memory_curve import Axis, MemoryPoint
from planner.present import format as fmt
from planner.present.columns import Column, number_column
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


_CORNERS: Final[dict[Corner, tuple[int, int]]] = {
    "above left": (0, 1),
    "above right": (1, 1),
    "below left": (0, 0),
    "below right": (1, 0),
}
"""Anchor of the card's label at the end of its line: fractions of the label's width and height."""


_LARGEST_LABEL_SHARE: Final = 0.5
"""Share of the plot's width and height that the card's label may take."""


class CurvePlot(DataChart[CurveData]):
    """Plot of memory with its uncertainty, the usable memory of the card, and the plan's point."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory curve; the table shows the same figures")
        self._low, self._high = self._add_band(ItemStyle(fill="accent", alpha=56))
        self._fitting = self._add_curve(ItemStyle("accent", 2))
        self._exceeding = self._add_curve(ItemStyle("bad", 2, Qt.PenStyle.DashLine))
        self._card = self._add_item(pg.InfiniteLine(angle=0), LIMIT)
        self._card_label = self._add_item(pg.TextItem(), ItemStyle("text"))
        self._current_point = self._add_item(pg.ScatterPlotItem(size=10), ItemStyle("text", 1.5, fill="accent"), z=10)
        self._under = self._add_item(pg.ScatterPlotItem(size=8), ItemStyle("text", 1.5, fill="surface"))
        self._set_axis_titles(left="GiB")

    def _draw(self, data: CurveData) -> None:
        xs = [data.x_position(point.value) for point in data.points]
        self._low.setData(xs, [point.low_bytes / GIB for point in data.points])
        self._high.setData(xs, [point.high_bytes / GIB for point in data.points])
        for line, points in zip((self._fitting, self._exceeding), data.split_at_card(), strict=True):
            line.setData([x for x, _ in points], [y for _, y in points], connect="finite")
        self._current_point.setData([data.x_position(data.current.value)], [data.current.total_bytes / GIB])
        self._set_axis_titles(bottom=data.title)
        self._fit_size()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the ranges and the card's label to the new size."""
        super().resizeEvent(event)
        self._fit_size()

    def _fit_size(self) -> None:
        """Keep the card's label inside the plot: with a shorter text, and with room above its line."""
        data = self._data
        if data is None:
            return
        self._place_card_line(data)
        low, high = data.memory_range
        if data.capacity_bytes is not None and data.label_corner.startswith("above"):
            label_height = 2 * QFontMetrics(self._theme.font("small")).height()
            share = min(_LARGEST_LABEL_SHARE, label_height / max(1, self._item.getViewBox().height()))
            high = max(high, low + (data.capacity_bytes - low) / (1 - share))
        self._set_axis_ranges(
            (data.x_position(data.points[0].value), data.x_position(data.points[-1].value)),
            (low / GIB, high / GIB),
            padding=0.02,
        )
        self._place_ticks()

    def _card_text(self, data: CurveData, capacity_bytes: int) -> str:
        """Return the card's label, without its name if that leaves too little of the curve free."""
        usable = f"{fmt.size(capacity_bytes)} usable"
        named = f"{data.card or 'GPU'}: {usable}"
        width = QFontMetrics(self._theme.font("small")).horizontalAdvance(named)
        return named if width <= self.width() * _LARGEST_LABEL_SHARE else usable

    def _place_card_line(self, data: CurveData) -> None:
        known = data.capacity_bytes is not None
        self._card.setVisible(known)
        self._card_label.setVisible(known)
        if data.capacity_bytes is not None:
            self._card.setPos(data.capacity_bytes / GIB)
            self._card_label.setAnchor(_CORNERS[data.label_corner])
            end = data.points[0 if data.label_corner.endswith("left") else -1]
            self._card_label.setPos(data.x_position(end.value), data.capacity_bytes / GIB)
            self._card_label.setText(self._card_text(data, data.capacity_bytes))

    def _ticks_of(self, data: CurveData, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks]:
        return value_ticks(data, x_tick_count), curve_memory_ticks(data, y_tick_count)

    def _nearest_point(self, data: CurveData, place: QPointF) -> MemoryPoint:
        return data.nearest_point(place.x())

    def _x_of(self, data: CurveData, point: MemoryPoint) -> float:
        return data.x_position(point.value)

    def _mark_hovered(self, point: MemoryPoint | None) -> None:
        super()._mark_hovered(point)
        self._under.setVisible(point is not None)
        if point is not None and self._data is not None:
            self._under.setData([self._x_of(self._data, point)], [point.total_bytes / GIB])


_WIDEST_AXIS_TITLE: Final = "Number of GPUs"
_LEAST_HEIGHT: Final = 190
_TALLEST: Final = 420
_WINDOW_PARTS: Final = 5
"""The width of the window divided by the height of the curve."""


def _gib_column(
    key: str, title: str, get_bytes: Callable[[MemoryPoint], int | None], about: str
) -> Column[MemoryPoint]:
    return number_column(
        key, title, get_bytes, unit="GiB", show=lambda value: fmt.gib(round(value)), width=15, about=about
    )


_COLUMNS: Final[tuple[Column[MemoryPoint], ...]] = (
    number_column(
        "value",
        "Value",
        lambda point: point.value,
        show=lambda value: fmt.integer(round(value)),
        width=12,
        about="Value of the setting on the x axis",
    ),
    _gib_column(
        "memory",
        "Memory",
        lambda point: point.total_bytes,
        about="Memory that the plan needs on the fullest GPU with this value",
    ),
    _gib_column("low", "At least", lambda point: point.low_bytes, about="One case in twenty needs less"),
    _gib_column("high", "At most", lambda point: point.high_bytes, about="One case in twenty needs more"),
    _gib_column(
        "host",
        "Host memory",
        lambda point: point.host_bytes,
        about="RAM of the machine that the plan needs with this value",
    ),
)


class CurvePanel(DataPanel[CurveData]):
    """Panel with the memory curve over one number of the plan, such as the batch size.

    `axis_chosen` carries the chosen x axis, `value_chosen` a value that was clicked or confirmed in the table.
    """

    axis_chosen = Signal(object)
    value_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory over", "curve", "memory-curve", CurvePlot)
        self.setMaximumHeight(_TALLEST)
        self.over = ChoiceField(theme, ())
        self.over.set_name("Memory over")
        self.over.setToolTip("Setting on the x axis")
        self.over.setMinimumWidth(
            QFontMetrics(theme.font()).horizontalAdvance(_WIDEST_AXIS_TITLE) + 2 * theme.spacing.huge
        )
        self._bar.insertWidget(1, self.over)
        # The choice leaves it no room in a narrow panel.
        self._bar.insertStretch(self._bar.indexOf(self._read_out), 1)
        self._column.insertWidget(1, self._read_out)
        self.over.edited.connect(self.axis_chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the curve higher in a wider window.

        Not in a wider panel: a higher curve may bring a scroll bar, which makes the panel narrower and the curve lower,
        without end.
        """
        super().resizeEvent(event)
        self.setMinimumHeight(max(_LEAST_HEIGHT, min(_TALLEST, self.window().width() // _WINDOW_PARTS)))

    def offer(self, options: tuple[tuple[Axis, str], ...], current: Axis) -> None:
        """Set the choices for the x axis, and select `current`."""
        self.over.set_options(options)
        self.over.set_value(current)

    def _show_table_of(self, data: CurveData) -> None:
        table = self._show_in_table(data.points, _COLUMNS, f"Memory over {data.title.lower()}")
        table.show_column("host", any(point.host_bytes for point in data.points))
        table.mark(self._row_id(data.current))

    def _row_id(self, point: MemoryPoint) -> str:
        return str(point.value)

    @Slot(object)
    def _on_activated(self, point: MemoryPoint) -> None:
        self.value_chosen.emit(point.value)

    def _read_out_text(self, data: CurveData, point: MemoryPoint | None) -> str:
        described = point or data.current
        size = fmt.size_with_range(described.total_bytes, described.low_bytes, described.high_bytes)
        host = f", {fmt.size(described.host_bytes)} in host memory" if point and described.host_bytes else ""
        return f"{'' if point else f'at {data.title.lower()} '}{fmt.integer(described.value)}: {size}{host}"
