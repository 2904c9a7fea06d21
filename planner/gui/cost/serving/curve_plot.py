"""The plot of latencies over the rate of requests; importing it imports pyqtgraph, which takes half a second."""

from math import log10
from typing import ClassVar, Final

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt

from planner.gui.cost.serving.rate_curve import RateCurve
from planner.gui.plot.chart import LIMIT, LINE_TITLE, POINTER, Chart, ItemStyle
from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.serving.traffic import limit_text
from planner.serving.result import RatePoint

_ROOM: Final = 0.1
_LEAST_SECONDS: Final = 1e-6


class RatePlot(Chart):
    """Plot of the median and a percentile of a latency over the rate of requests, on a logarithmic y axis."""

    PIXELS_PER_TICK: ClassVar = (80, 30)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Latency over the rate of requests; the table shows the same figures")
        self._data: RateCurve | None = None
        self._median = self._add_curve(ItemStyle("accent", 2, Qt.PenStyle.DashLine))
        self._percentile = self._add_curve(ItemStyle("accent", 2))
        self._marks = self._add_item(pg.ScatterPlotItem(size=6), ItemStyle("surface", 1, fill="accent"))
        self._limit = self._add_item(pg.InfiniteLine(angle=0), LIMIT)
        self._planned = self._add_item(pg.InfiniteLine(angle=90), LIMIT)
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), POINTER)
        self._titles = {
            name: self._add_item(pg.TextItem(anchor=anchor), LINE_TITLE, z=5)
            for name, anchor in (("limit", (0, 1)), ("planned", (0, 0)), ("median", (1, 0)), ("percentile", (1, 1)))
        }
        self._set_axis_titles(bottom="Requests/s", left="Seconds")
        self._apply_theme()

    def set_data(self, data: RateCurve) -> None:
        """Show the curve `data` in place of the previous one."""
        self._data = data
        self._titles["median"].setText("median")
        self._titles["percentile"].setText(f"p{data.percent:g}")
        every = []
        for name, item, percent in (("median", self._median, 50.0), ("percentile", self._percentile, data.percent)):
            places = [
                (point.requests_per_second, log10(max(seconds, _LEAST_SECONDS)))
                for point in data.points
                if (seconds := data.seconds(point, percent)) is not None
            ]
            item.setData([x for x, _ in places], [y for _, y in places])
            every += places
            self._titles[name].setVisible(bool(places))
            if places:
                self._titles[name].setPos(*places[-1])
        shown = [place for place in every if place]
        self._marks.setData([x for x, _ in shown], [y for _, y in shown])
        heights = [y for _, y in every] + ([] if data.target_seconds is None else [log10(data.target_seconds)])
        if not every:
            return
        low, high = min(heights), max(heights)
        room = _ROOM * max(high - low, 1.0)
        right = max(x for x, _ in every)
        self._set_axis_ranges((0, right), (low - room, high + 2 * room), padding=0.02)
        self._place_lines(data, high + 2 * room)
        self._place_ticks()
        self._show_hovered(None)

    def _place_lines(self, data: RateCurve, top: float) -> None:
        self._limit.setVisible(data.target_seconds is not None)
        self._titles["limit"].setVisible(data.target_seconds is not None)
        if data.target_seconds is not None:
            self._limit.setPos(log10(data.target_seconds))
            self._titles["limit"].setText(f"target: {limit_text(data.target_seconds)}")
            self._titles["limit"].setPos(0, log10(data.target_seconds))
        self._planned.setVisible(data.planned_rate is not None)
        self._titles["planned"].setVisible(data.planned_rate is not None)
        if data.planned_rate is not None:
            self._planned.setPos(data.planned_rate)
            self._titles["planned"].setText("plan")
            self._titles["planned"].setPos(data.planned_rate, top)

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        if self._data is None or not self._data.points:
            return None
        (left, right), (bottom, top) = self._item.getViewBox().viewRange()
        return round_ticks(max(0.0, left), right, x_tick_count), log_ticks(bottom, top, y_tick_count, fmt.plain)

    def _point_at(self, place: QPointF) -> RatePoint | None:
        return None if self._data is None else self._data.nearest(place.x())

    def _mark_hovered(self, point: RatePoint | None) -> None:
        self._pointer.setVisible(point is not None)
        if point is not None:
            self._pointer.setPos(point.requests_per_second)
