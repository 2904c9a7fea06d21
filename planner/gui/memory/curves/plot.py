"""Plot of memory over one number of the plan. Importing it imports pyqtgraph, which takes half a second."""

from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent

from planner.gui.memory.curves.data import Corner, CurveData, curve_memory_ticks, value_ticks
from planner.gui.plot.chart import LIMIT, POINTER, Chart, ItemStyle
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme
from planner.plan.memory_curve import MemoryPoint
from planner.present import format as fmt
from planner.units import GIB

_CORNERS: Final[dict[Corner, tuple[int, int]]] = {
    "above left": (0, 1),
    "above right": (1, 1),
    "below left": (0, 0),
    "below right": (1, 0),
}
"""Anchor of the card's label at the end of its line: fractions of the label's width and height."""


_LARGEST_LABEL_SHARE: Final = 0.5
"""Share of the plot's width and height that the card's label may take."""


class CurvePlot(Chart):
    """Plot of memory with its uncertainty, the usable memory of the card, and the plan's point."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory curve; the table shows the same figures")
        self._data: CurveData | None = None
        self._low, self._high = self._add_band(ItemStyle(fill="accent", alpha=56))
        self._fitting = self._add_curve(ItemStyle("accent", 2))
        self._exceeding = self._add_curve(ItemStyle("bad", 2, Qt.PenStyle.DashLine))
        self._card = self._add_item(pg.InfiniteLine(angle=0), LIMIT)
        self._card_label = self._add_item(pg.TextItem(), ItemStyle("text"))
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), POINTER)
        self._current_point = self._add_item(pg.ScatterPlotItem(size=10), ItemStyle("text", 1.5, fill="accent"), z=10)
        self._under = self._add_item(pg.ScatterPlotItem(size=8), ItemStyle("text", 1.5, fill="surface"))
        self._set_axis_titles(left="GiB")

    def set_data(self, data: CurveData) -> None:
        """Show a memory curve."""
        self._data = data
        xs = [data.x_position(point.value) for point in data.points]
        self._low.setData(xs, [point.low_bytes / GIB for point in data.points])
        self._high.setData(xs, [point.high_bytes / GIB for point in data.points])
        for line, points in zip((self._fitting, self._exceeding), data.split_at_card(), strict=True):
            line.setData([x for x, _ in points], [y for _, y in points], connect="finite")
        self._current_point.setData([data.x_position(data.current.value)], [data.current.total_bytes / GIB])
        self._set_axis_titles(bottom=data.title)
        self._fit_size()
        self._show_hovered(None)

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
        named = f"{data.card or 'Card'}: {usable}"
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

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        return (
            None
            if self._data is None
            else (value_ticks(self._data, x_tick_count), curve_memory_ticks(self._data, y_tick_count))
        )

    def _point_at(self, position: QPointF) -> MemoryPoint | None:
        return None if self._data is None else self._data.nearest_point(position.x())

    def _mark_hovered(self, point: MemoryPoint | None) -> None:
        self._pointer.setVisible(point is not None)
        self._under.setVisible(point is not None)
        if point is not None and self._data is not None:
            x = self._data.x_position(point.value)
            self._pointer.setPos(x)
            self._under.setData([x], [point.total_bytes / GIB])
