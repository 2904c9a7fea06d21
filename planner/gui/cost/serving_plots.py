"""Plots of a simulated service: its latency over the request rate, and one minute of its requests."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import log10
from typing import ClassVar, Final, Self

from PySide6.QtCore import QPointF, Qt, Slot
from PySide6.QtGui import QResizeEvent

from planner.gui.plot.chart import LIMIT, LINE_TITLE, DataChart, Item, ItemStyle, pg
from planner.gui.plot.legend import LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.serving.simulation import rate_columns
from planner.present.serving.traffic import LATENCY_HEADERS, limit_text, rate_text
from planner.serving.result import MinuteInDetail, MinuteMoment, RatePoint, RequestBar
from planner.serving.targets import Latency, Targets

LATENCIES: Final[tuple[Latency, ...]] = ("ttft", "tpot", "e2e")
"""Latencies that can be drawn."""
RATE_COLUMNS: Final = rate_columns(LATENCIES)
"""Columns of the points as a table."""
_MOST_BARS: Final = 400
"""Requests that are drawn; more would be thinner than a pixel."""


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
            tuple(column.header for column in RATE_COLUMNS),
            *(tuple(column.text(point) for column in RATE_COLUMNS) for point in self.points),
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


_RATE_HEIGHT: Final = 240


class RateCurvePanel(DataPanel[RateCurve]):
    """Panel with a latency over the rate of requests: its median and percentile, its target, and the plan's rate."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "curve", "latency-over-rate", RatePlot)
        self.setMinimumHeight(_RATE_HEIGHT)
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
        self._show_in_table(data.points, RATE_COLUMNS, "Latency over the request rate")

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


def _seconds_column(key: str, title: str, about: str) -> Column[RequestBar]:
    return number_column(
        key, title, lambda bar: getattr(bar, key), unit="s", unknown="–", about=about, lower_is_better=None
    )


MINUTE_COLUMNS: Final[tuple[Column[RequestBar], ...]] = (
    number_column("request", "Request", lambda bar: bar.request, about="Number of the request"),
    number_column("replica", "Replica", lambda bar: bar.replica + 1, about="Replica that answers it"),
    number_column("prompt", "Prompt tokens", lambda bar: bar.prompt_tokens, about="Tokens of its prompt"),
    number_column("output", "Answer tokens", lambda bar: bar.output_tokens, about="Tokens of its answer"),
    _seconds_column("arrival", "Arrives", "When the request arrives"),
    _seconds_column("scheduled", "Scheduled", "When processing of its prompt begins"),
    _seconds_column("first_token", "First token", "When its first token is ready"),
    _seconds_column("end", "Ends", "When its last token is ready"),
    text_column(
        "preempted",
        "Preempted",
        lambda bar: fmt.yes_no(bool(bar.preempted)),
        about="Whether it lost its KV cache and is computed again",
    ),
)


@dataclass(frozen=True, slots=True)
class ServedMinute:
    """One simulated minute, whose times count from its beginning, with its first requests as they arrive."""

    minute: MinuteInDetail

    @classmethod
    def counted_from_zero(cls, minute: MinuteInDetail) -> Self:
        """Return a minute of a longer simulation, with its own beginning as zero."""
        begin = minute.begin_seconds

        def since(seconds: float | None) -> float | None:
            return None if seconds is None else seconds - begin

        bars = (
            replace(
                bar,
                arrival=bar.arrival - begin,
                scheduled=since(bar.scheduled),
                first_token=since(bar.first_token),
                end=since(bar.end),
                preempted=tuple(seconds - begin for seconds in bar.preempted),
            )
            for bar in minute.requests
        )
        moments = (replace(moment, seconds=moment.seconds - begin) for moment in minute.moments)
        return cls(
            minute.evolve(
                begin_seconds=0.0,
                end_seconds=minute.end_seconds - begin,
                requests=tuple(bars),
                moments=tuple(moments),
            )
        )

    @property
    def bars(self) -> tuple[RequestBar, ...]:
        """Return the requests that are drawn."""
        return tuple(sorted(self.minute.requests, key=lambda bar: bar.arrival))[:_MOST_BARS]

    def moments_at(self, seconds: float) -> tuple[MinuteMoment, ...]:
        """Return the state of each replica at a moment: the last that is known of it."""
        found: dict[int, MinuteMoment] = {}
        moments = self.minute.moments
        for moment in moments[: bisect_right(moments, seconds, key=lambda each: each.seconds)]:
            found[moment.replica] = moment
        return tuple(found[replica] for replica in sorted(found))

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the header and a row for each request."""
        return (
            tuple(column.header for column in MINUTE_COLUMNS),
            *(tuple(column.text(bar) for column in MINUTE_COLUMNS) for bar in self.minute.requests),
        )


_ROLES: Final = {"waiting": "border", "reading": "series-2", "answering": "series-1"}
_BAR: Final = 0.8
"""Height of a bar as a share of its row."""
_HIGHEST: Final = 10


class MinutePlot(DataChart[ServedMinute]):
    """Plot with a bar for each request, from its arrival to its end, and the cache in use as a share of the height."""

    PIXELS_PER_TICK: ClassVar = (64, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Requests of one simulated minute; the table shows the same figures")
        # Bars are thick lines: pyqtgraph's bars cannot follow the theme.
        self._parts: dict[str, Item] = {
            name: self._add_item(pg.PlotDataItem(connect="pairs"), ItemStyle(role)) for name, role in _ROLES.items()
        }
        self._preempted = self._add_item(pg.ScatterPlotItem(size=7, symbol="x"), ItemStyle("bad", 1, fill="bad"))
        self._cache = self._add_curve(ItemStyle("text", 1.5, Qt.PenStyle.DotLine))
        self._set_axis_titles(bottom="Seconds", left="Requests")
        self._apply_theme()

    def _draw(self, data: ServedMinute) -> None:
        minute, bars = data.minute, data.bars
        spans: dict[str, list[tuple[float, float, int]]] = {name: [] for name in self._parts}
        for row, bar in enumerate(bars):
            for name, begin, end in _spans(bar, minute.end_seconds):
                spans[name].append((max(begin, minute.begin_seconds), min(end, minute.end_seconds), row))
        for name, item in self._parts.items():
            shown = [] if name in self._hidden else [span for span in spans[name] if span[1] > span[0]]
            item.setData([end for span in shown for end in span[:2]], [span[2] for span in shown for _ in range(2)])
        lost = [(moment, row) for row, bar in enumerate(bars) for moment in bar.preempted]
        self._preempted.setData([moment for moment, _ in lost], [row for _, row in lost])
        moments = () if "cache" in self._hidden else minute.moments
        fullest: dict[float, float] = {}
        for moment in moments:
            fullest[moment.seconds] = max(fullest.get(moment.seconds, 0.0), moment.cache_fraction)
        top = max(len(bars), 1)
        self._cache.setData(list(fullest), [top * fraction for fraction in fullest.values()])
        self._set_axis_ranges((minute.begin_seconds, minute.end_seconds), (-1, top), padding=0.01)
        self._size_bars()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the bars as high as their rows."""
        super().resizeEvent(event)
        self._size_bars()

    def _size_bars(self) -> None:
        rows = 1 if self._data is None else max(1, len(self._data.bars))
        width = min(_HIGHEST, max(1.0, _BAR * self.height() / rows))
        for name, item in self._parts.items():
            self._looks[item] = ItemStyle(_ROLES[name], width)
            self._apply_item_style(item, self._looks[item])

    def _ticks_of(self, data: ServedMinute, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks]:
        rows = round_ticks(0.0, float(max(len(data.bars), 1)), y_tick_count, whole=True)
        return round_ticks(data.minute.begin_seconds, data.minute.end_seconds, x_tick_count), rows

    def _nearest_point(self, _data: ServedMinute, place: QPointF) -> float:
        return place.x()

    def _x_of(self, _data: ServedMinute, point: float) -> float:
        return point


def _spans(bar: RequestBar, until: float) -> list[tuple[str, float, float]]:
    """Return the parts of a request with their begin and end in seconds; what has not ended lasts to the end."""
    scheduled = until if bar.scheduled is None else bar.scheduled
    first = until if bar.first_token is None else bar.first_token
    end = until if bar.end is None else bar.end
    return [("waiting", bar.arrival, scheduled), ("reading", scheduled, first), ("answering", first, end)]


_MINUTE_HEIGHT: Final = 260
_LEGEND: Final = (
    LegendEntry("waiting", "Waiting", "border"),
    LegendEntry("reading", "Prompt", "series-2"),
    LegendEntry("answering", "Answer", "series-1"),
    LegendEntry("cache", "KV cache in use (full height: 100 %)", "text"),
)


class MinutePanel(DataPanel[ServedMinute]):
    """Panel with the requests of one simulated minute as bars; the read-out has the state of all replicas."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", "minute", "served-minute", MinutePlot)
        self.setMinimumHeight(_MINUTE_HEIGHT)
        self.legend.set_entries(_LEGEND)
        self._column.insertWidget(1, self.legend)

    def _show_table_of(self, data: ServedMinute) -> None:
        self._show_in_table(data.minute.requests, MINUTE_COLUMNS, "Requests of the minute")

    def _row_id(self, bar: RequestBar) -> str:
        return str(bar.request)

    def _read_out_text(self, data: ServedMinute, point: float | None) -> str:
        if point is None:
            hidden = len(data.minute.requests) - len(data.bars)
            more = f", the first {fmt.integer(len(data.bars))} are drawn" if hidden else ""
            return f"{fmt.plural(len(data.minute.requests), 'request')}{more}"
        moments = data.moments_at(point)
        waiting, reading = (sum(getattr(each, name) for each in moments) for name in ("waiting", "reading"))
        decoding = sum(each.decoding for each in moments)
        cache = max((each.cache_fraction for each in moments), default=0.0)
        return (
            f"at {fmt.significant(point)} s: {fmt.integer(waiting)} waiting, {fmt.integer(reading)} prompts, "
            f"{fmt.integer(decoding)} answers, KV cache {fmt.percent(cache)} full"
        )
