"""The latencies of a service over the rate of its requests: data, plot, and panel with its table."""

from dataclasses import dataclass
from math import log10
from typing import ClassVar, Final

from PySide6.QtCore import QPointF, Qt, Slot

from planner.gui.plot.chart import LIMIT, LINE_TITLE, DataChart, ItemStyle, pg
from planner.gui.plot.panel import DataPanel
from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.present import format as fmt
from planner.present.serving.simulation import rate_columns
from planner.present.serving.traffic import LATENCY_HEADERS, limit_text, rate_text
from planner.serving.result import RatePoint
from planner.serving.targets import Latency, Targets

LATENCIES: Final[tuple[Latency, ...]] = ("ttft", "tpot", "e2e")
"""Latencies that can be drawn."""
COLUMNS: Final = rate_columns(LATENCIES)
"""Columns of the points as a table."""


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Points of a service over the rate of requests, with the latency that is drawn, its target and the plan's rate."""

    points: tuple[RatePoint, ...]
    latency: Latency
    percent: float
    target_seconds: float | None
    planned_rate: float | None

    def seconds(self, point: RatePoint, percent: float) -> float | None:
        """Return a percentile of the drawn latency at a point."""
        table = point.simulation.latency(self.latency)
        return None if table is None else table.percentile(percent).seconds

    def nearest(self, rate: float) -> RatePoint | None:
        """Return the point with the rate nearest to `rate`."""
        return min(self.points, key=lambda point: abs(point.requests_per_second - rate), default=None)

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each point."""
        return (
            tuple(column.header for column in COLUMNS),
            *(tuple(column.text(point) for column in COLUMNS) for point in self.points),
        )


_ROOM: Final = 0.1
_LEAST_SECONDS: Final = 1e-6


class RatePlot(DataChart[RateCurve]):
    """Plot of the median and a percentile of a latency over the rate of requests, on a logarithmic y axis."""

    PIXELS_PER_TICK: ClassVar = (80, 30)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Latency over the request rate; the table shows the same figures")
        self._median = self._add_curve(ItemStyle("accent", 2, Qt.PenStyle.DashLine))
        self._percentile = self._add_curve(ItemStyle("accent", 2))
        self._marks = self._add_item(pg.ScatterPlotItem(size=6), ItemStyle("surface", 1, fill="accent"))
        self._limit = self._add_item(pg.InfiniteLine(angle=0), LIMIT)
        self._planned = self._add_item(pg.InfiniteLine(angle=90), LIMIT)
        self._titles = {
            name: self._add_item(pg.TextItem(anchor=anchor), LINE_TITLE, z=5)
            for name, anchor in (("limit", (0, 1)), ("planned", (0, 0)), ("median", (1, 0)), ("percentile", (1, 1)))
        }
        self._set_axis_titles(bottom="Requests/s", left="Seconds")
        self._apply_theme()

    def _draw(self, data: RateCurve) -> None:
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

    def _ticks_of(self, data: RateCurve, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        if not data.points:
            return None
        (left, right), (bottom, top) = self._item.getViewBox().viewRange()
        return round_ticks(max(0.0, left), right, x_tick_count), log_ticks(bottom, top, y_tick_count, fmt.plain)

    def _nearest_point(self, data: RateCurve, place: QPointF) -> RatePoint | None:
        return data.nearest(place.x())

    def _x_of(self, _data: RateCurve, point: RatePoint) -> float:
        return point.requests_per_second


_HEIGHT: Final = 240


class RateCurvePanel(DataPanel[RateCurve]):
    """Panel with a latency over the rate of requests: its median and percentile, its target, and the plan's rate."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "curve", "latency-over-rate", RatePlot)
        self.setMinimumHeight(_HEIGHT)
        self.over = ChoiceField(theme, tuple((name, LATENCY_HEADERS[name]) for name in LATENCIES))
        self.over.set_name("Latency")
        self.over.setToolTip("Latency on the y axis")
        self.over.set_value("ttft")
        self._bar.insertWidget(1, self.over)
        self._targets = Targets()
        self._percent = 95.0
        self._planned: float | None = None
        self._points: tuple[RatePoint, ...] = ()
        self.over.edited.connect(self._redraw)

    def show_points(
        self, points: tuple[RatePoint, ...], targets: Targets, percent: float, planned_rate: float | None
    ) -> None:
        """Draw the points so far; `percent` is the percentile of the targets."""
        self._points, self._targets, self._percent, self._planned = points, targets, percent, planned_rate
        self._redraw()

    @Slot()
    def _redraw(self) -> None:
        name = next(latency for latency in LATENCIES if latency == self.over.value)
        limit = next((target.seconds for target in self._targets.limits if target.latency == name), None)
        if self._points:
            self.set_data(RateCurve(self._points, name, self._percent, limit, self._planned))

    def _show_table_of(self, data: RateCurve) -> None:
        self._show_in_table(data.points, COLUMNS, "Latency over the request rate")

    def _row_id(self, point: RatePoint) -> str:
        return f"{point.requests_per_second:.6f}"

    def _read_out_text(self, data: RateCurve, point: RatePoint | None) -> str:
        shown = point or (None if data.planned_rate is None else data.nearest(data.planned_rate))
        if shown is None:
            return ""
        figures = (
            f"{name} {fmt.duration(data.seconds(shown, percent))}"
            for name, percent in (("median", 50.0), (f"p{data.percent:g}", data.percent))
        )
        waits = " (cannot keep up)" if shown.simulation.saturated else ""
        return f"at {rate_text(shown.requests_per_second)}: {', '.join(figures)}{waits}"
