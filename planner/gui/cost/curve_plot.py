"""The plot of cumulative costs; importing it imports pyqtgraph, which takes half a second."""

from typing import ClassVar

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt

from planner.cost.result import CostPoint
from planner.cost.terms import Side
from planner.gui.cost.curve_data import CostCurve
from planner.gui.plot.chart import POINTER, Chart, Item, ItemStyle
from planner.gui.plot.ticks import Ticks, money_label, round_ticks
from planner.gui.theme import Theme
from planner.present.cost.summary import years_phrase

_BAND_ALPHA = 40


class CostPlot(Chart):
    """Plot of the cumulative costs of renting and owning, with uncertainty bands and the break-even point."""

    PIXELS_PER_TICK: ClassVar = (90, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Costs over time; the table shows the same figures")
        self._data: CostCurve | None = None
        self._hidden: frozenset[Side] = frozenset()
        self._rent_edges = self._add_band(ItemStyle(fill="accent", alpha=_BAND_ALPHA))
        self._own_edges = self._add_band(ItemStyle(fill="text", alpha=_BAND_ALPHA))
        self._rent = self._add_curve(ItemStyle("accent", 2, Qt.PenStyle.DashLine))
        self._own = self._add_curve(ItemStyle("text", 2))
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), POINTER)
        self._break_even = self._add_item(pg.ScatterPlotItem(size=10), ItemStyle("text", 1.5, fill="surface"))
        self._label = self._add_item(pg.TextItem(anchor=(0, 1)), ItemStyle("text"))
        self._set_axis_titles(bottom="Years")
        self._apply_theme()

    def set_data(self, data: CostCurve) -> None:
        """Show the cost curve `data` in place of the previous curve."""
        self._data = data
        sides: tuple[tuple[Side, Item, tuple[Item, Item], str], ...] = (
            ("rent", self._rent, self._rent_edges, "rent"),
            ("buy", self._own, self._own_edges, "own"),
        )
        for side, curve, edges, name in sides:
            shown = () if side in self._hidden else data.points
            _draw_points(curve, shown, f"{name}_usd")
            for edge, bound in zip(edges, ("low", "high"), strict=True):
                _draw_points(edge, shown if data.is_drawn else (), f"{name}_{bound}_usd")
        self._set_axis_ranges((0, data.horizon_years), (0, data.highest_usd), padding=0.02)
        self._place_break_even(data)
        self._place_ticks()
        self._show_hovered(None)

    def hide_sides(self, hidden: frozenset[Side]) -> None:
        """Hide the curve and the band of renting, of buying, or of both."""
        self._hidden = hidden
        if self._data is not None:
            self.set_data(self._data)

    def _place_break_even(self, data: CostCurve) -> None:
        crossing = data.crossing
        self._break_even.setVisible(crossing is not None)
        self._label.setVisible(crossing is not None)
        if crossing is not None:
            years, usd = crossing
            self._break_even.setData([years], [usd])
            self._label.setAnchor((1.05, 1.3) if years > data.horizon_years / 2 else (-0.05, 2.4))
            self._label.setText(f"break-even after {years_phrase(years)}")
            self._label.setPos(years, usd)

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        data = self._data
        if data is None:
            return None
        times = round_ticks(0.0, data.horizon_years, max(2, x_tick_count))
        return times, round_ticks(0.0, data.highest_usd, y_tick_count, money_label)

    def _point_at(self, place: QPointF) -> CostPoint | None:
        return None if self._data is None else self._data.nearest(place.x())

    def _mark_hovered(self, point: CostPoint | None) -> None:
        self._pointer.setVisible(point is not None)
        if point is not None:
            self._pointer.setPos(point.years)


def _draw_points(line: Item, points: tuple[CostPoint, ...], name: str) -> None:
    """Draw the cost `name` of the points over time."""
    line.setData([point.years for point in points], [getattr(point, name) for point in points])
