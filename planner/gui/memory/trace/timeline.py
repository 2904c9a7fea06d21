"""Live memory over a traced run: data, plot, and panel with legend and table."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QKeyEvent

from planner.gui.plot.chart import LIMIT, LINE_TITLE, POINTER, DataChart, Item, ItemStyle, pg
from planner.gui.plot.legend import LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.plot.ticks import Ticks, round_ticks
from planner.gui.theme import Theme
from planner.memory.result import PhaseName
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.names import PHASE_TITLES
from planner.present.trace import TimelinePoint, TimelineSeries, short_source_line, timeline_point, timeline_series
from planner.trace.files import timeline_rows
from planner.trace.result import TraceResult
from planner.units import GIB, KIB, MIB

_INPUTS: Final = "inputs"
_MARGIN_FACTOR: Final = 1.3
_MAX_CARD_TO_PEAK_RATIO: Final = 2.5
_UNITS: Final = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB))

Rows = tuple[tuple[str, ...], ...]


class PhaseSpan(NamedTuple):
    """Phase from moment `start` to moment `end`; consecutive phases with the same name are merged."""

    name: PhaseName
    title: str
    start: int
    end: int


class TimelineRow(NamedTuple):
    """Point of the live-memory timeline with the live bytes in each series."""

    point: int
    moment: TimelinePoint
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class TimelineData:
    """Live-memory timeline of a trace, and the card's memory for tensors; `card` is the card's name."""

    result: TraceResult
    card: str | None = None

    @cached_property
    def series(self) -> tuple[TimelineSeries, ...]:
        """Return the stacked series of live memory, the lowest series first."""
        return timeline_series(self.result.timeline)

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Return the time of each point, counted in allocations and frees since the start."""
        return self.result.timeline.times

    @cached_property
    def end(self) -> int:
        """Return the end of the time axis, in allocations and frees."""
        ends = (span.end for span in self.result.timeline.spans)
        return max(self.times[-1] + 1 if self.times else 1, *ends, 1)

    @cached_property
    def for_tensors_bytes(self) -> int | None:
        """Return the card's memory for tensors: usable memory minus framework overhead and other processes."""
        result = self.result
        if result.capacity_bytes is None:
            return None
        overhead = result.term("framework_overhead")
        return result.capacity_bytes - result.other_processes_bytes - (overhead.bytes if overhead else 0)

    @property
    def sum_text(self) -> str:
        """Return how the peak of live memory leads to the plan's need: `tensors … + framework overhead … = …`."""
        result, tensors = self.result, self.result.peak_moment.bytes
        overhead = result.term("framework_overhead")
        rest = result.total_bytes - tensors - (overhead.bytes if overhead else 0)
        parts = (
            f"tensors {fmt.size(tensors)}",
            f"framework overhead {fmt.size(overhead.bytes)}" if overhead else "",
            f"what is assumed {fmt.size(rest)}" if rest > 0 else "",
        )
        return f"{' + '.join(filter(None, parts))} = {fmt.size(result.total_bytes)}"

    @property
    def card_text(self) -> str:
        """Return the card's memory for tensors of its usable memory; empty if unknown."""
        if self.for_tensors_bytes is None:
            return ""
        usable = f"of {fmt.size(self.result.capacity_bytes)} usable"
        return f"{self.card or 'The GPU'}: {fmt.size(self.for_tensors_bytes)} for tensors, {usable}"

    @cached_property
    def card_in_view(self) -> bool:
        """Return whether the card's memory is close enough to the peak to be drawn on the memory axis."""
        card = self.for_tensors_bytes
        return card is not None and 0 < card <= _MAX_CARD_TO_PEAK_RATIO * self.result.peak_moment.bytes

    @cached_property
    def top_bytes(self) -> float:
        """Return the upper end of the memory axis in bytes."""
        card = self.for_tensors_bytes if self.card_in_view else None
        return max(self.result.peak_moment.bytes, card or 0, 1) * _MARGIN_FACTOR

    @cached_property
    def unit(self) -> tuple[str, int]:
        """Return the unit of the memory axis and its size in bytes."""
        return next((unit for unit in _UNITS if self.top_bytes >= unit[1]), _UNITS[-1])

    @cached_property
    def phases(self) -> tuple[PhaseSpan, ...]:
        """Return the phases to label."""
        spans: list[PhaseSpan] = []
        for span in self.result.timeline.spans:
            if spans and spans[-1].name == span.name and span.start <= spans[-1].end:
                spans[-1] = spans[-1]._replace(title=PHASE_TITLES[span.name], end=span.end)
            elif span.end > span.start:
                step = "" if span.name == "load" else f" {span.step + 1}"
                spans.append(PhaseSpan(span.name, f"{PHASE_TITLES[span.name]}{step}", span.start, span.end))
        return tuple(spans)

    def stack(self, hidden: Collection[str] = ()) -> list[tuple[TimelineSeries, list[float]]]:
        """Return each series with its upper edge in the axis' unit, lowest first, without the `hidden` series."""
        below, edges = [0] * len(self.times), []
        for series in self.series:
            if series.category in hidden:
                continue
            below = [low + own for low, own in zip(below, series.bytes, strict=True)]
            edges.append((series, [value / self.unit[1] for value in below]))
        return edges

    def point_at(self, time: float) -> int:
        """Return the index of the last point at or before `time`."""
        return max(0, bisect_right(self.times, time) - 1)

    @cached_property
    def peak_point(self) -> int:
        """Return the index of the point at the memory peak."""
        return self.point_at(self.result.peak_moment.time)

    def row(self, point: int) -> TimelineRow:
        """Return the table row of a point: its moment and the live bytes in each series."""
        moment = timeline_point(self.result.timeline, point)
        return TimelineRow(point, moment, tuple(series.bytes[point] for series in self.series))

    def hover_lines(self, point: int) -> list[str]:
        """Return the hover text of a point: moment, live bytes by category, and the last operator."""
        row = self.row(point)
        moment = row.moment
        by = " in ".join(part for part in (moment.operator, moment.module) if part)
        held = sorted(zip(row.bytes, self.series, strict=True), key=lambda pair: -pair[0])
        when = f"{moment.text} alive {moment.phase}".rstrip()
        return [
            f"{when} · moment {fmt.integer(moment.time)} of {fmt.integer(self.end)}",
            *([f"last operator: {by}"] if by else []),
            *([moment.line] if moment.line else []),
            *(f"{series.title}: {fmt.size(size)}" for size, series in held if size),
        ]

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the timeline: a header, and a row per point with exact sizes in bytes."""
        return tuple(tuple(map(str, row)) for row in timeline_rows(self.result.timeline))


def role_of(series: TimelineSeries) -> str:
    """Return the theme color role for a series: the role of its memory term; inputs have their own role."""
    return _INPUTS if series.category == _INPUTS else series.term


def live_memory_ticks(data: TimelineData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the memory axis in its unit."""
    return round_ticks(0, data.top_bytes / data.unit[1], tick_count)


def moment_ticks(data: TimelineData, tick_count: int) -> Ticks:
    """Return about `tick_count` ticks for the time axis."""
    return round_ticks(0, data.end, tick_count, whole=True)


_NAME: Final = "Live memory over the run"
_ABOVE: Final = 10
_PHASE_STYLE: Final = ItemStyle("muted", alpha=90)
_PHASE_LINES: Final = 3
"""Lines of phase titles above each other, for phases that are narrower than their titles."""
_CLEAR_OF_MARK: Final = 1.4
"""Anchor of a label that stands above a mark, as a multiple of its height."""
_KEY_STEPS: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}


class TimelinePlot(DataChart[TimelineData]):
    """Stacked categories of live memory, with the phases, the peak and the card's line.

    The pointer or the arrow keys read out a point, identified by its index in the timeline.
    """

    PIXELS_PER_TICK: ClassVar = (96, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, f"{_NAME}; the table shows the same figures", POINTER._replace(line="text"), _ABOVE)
        self._point: int | None = None
        self._areas: list[Item] = []
        self._phases: list[tuple[Item, Item, PhaseSpan]] = []
        self._card = self._add_item(pg.InfiniteLine(angle=0), LIMIT, _ABOVE)
        self._card_label = self._add_item(pg.TextItem(anchor=(0, 1)), LINE_TITLE, _ABOVE)
        self._peak = self._add_item(pg.ScatterPlotItem(size=9), ItemStyle("text", 1.5, fill="surface"), _ABOVE)
        self._peak_label = self._add_item(pg.TextItem(anchor=(0.5, 1)), LINE_TITLE, _ABOVE)
        self._set_axis_titles(bottom="Allocations and frees, in order")
        self.card.setFont(theme.font("small"))
        self._accept_keyboard_focus()
        self.setAccessibleName(f"{_NAME}; arrow keys move from moment to moment")

    def _draw(self, data: TimelineData) -> None:
        self._draw_stack(data)
        self._place_phase_marks(data)
        self._place_peak_mark(data)
        self._place_card_line(data)
        self._set_axis_ranges((0, data.end), (0, data.top_bytes / data.unit[1]))
        self._set_axis_titles(left=data.unit[0])
        self.setAccessibleDescription(_accessible_description(data))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move by one point with the arrow keys, by 20 with the page keys, and to the peak with Home."""
        data, key = self._data, Qt.Key(event.key())
        if data is None or not data.times:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Home:
            self._show_hovered(data.peak_point)
        elif key in _KEY_STEPS:
            start = data.peak_point if self._point is None else self._point
            self._show_hovered(min(len(data.times) - 1, max(0, start + _KEY_STEPS[key])))
        elif key == Qt.Key.Key_Escape and self._point is not None:
            self._show_hovered(None)
        else:
            super().keyPressEvent(event)

    def _draw_stack(self, data: TimelineData) -> None:
        self._remove_items(self._areas)
        self._areas = []
        times = [*data.times, data.end]
        for position, (series, edge) in enumerate(data.stack(self._hidden)):
            area = pg.PlotCurveItem([*times], [*edge, *edge[-1:]], stepMode="right", fillLevel=0)
            # Each area is filled from its upper edge down to 0; lower ones are painted above it.
            self._areas.append(self._add_item(area, ItemStyle(fill=role_of(series)), -position - 1))

    def _place_phase_marks(self, data: TimelineData) -> None:
        self._remove_items(item for *items, _ in self._phases for item in items)
        self._phases = []
        for phase in data.phases:
            line = self._add_item(pg.InfiniteLine(pos=phase.start, angle=90), _PHASE_STYLE, 5)
            words = self._add_item(pg.TextItem(phase.title, anchor=(0, 0)), ItemStyle("muted"), 5)
            self._phases.append((line, words, phase))

    def _place_peak_mark(self, data: TimelineData) -> None:
        peak, height = data.result.peak_moment, data.result.peak_moment.bytes / data.unit[1]
        for item in (self._peak, self._peak_label):
            item.setVisible(not self._hidden and bool(data.times))
        self._peak.setData([peak.time], [height])
        self._peak_label.setText(f"peak of tensors {fmt.size(peak.bytes)}")
        side = 0 if peak.time < data.end / 8 else 1 if peak.time > data.end * 7 / 8 else 0.5
        self._peak_label.setAnchor((side, _CLEAR_OF_MARK))
        self._peak_label.setPos(peak.time, height)

    def _place_card_line(self, data: TimelineData) -> None:
        for item in (self._card, self._card_label):
            item.setVisible(data.card_in_view)
        if data.card_in_view and data.for_tensors_bytes is not None:
            self._card.setPos(data.for_tensors_bytes / data.unit[1])
            self._card_label.setPos(0, data.for_tensors_bytes / data.unit[1])
            self._card_label.setText(data.card_text)

    def _ticks_of(self, data: TimelineData, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks]:
        return moment_ticks(data, x_tick_count), live_memory_ticks(data, y_tick_count)

    def _place_ticks(self) -> None:
        super()._place_ticks()
        if self._data is None:
            return
        data, view, metrics = self._data, self._item.getViewBox(), QFontMetricsF(self._theme.font("small"))
        if not (view.width() and view.height()):
            return
        top = data.top_bytes / data.unit[1]
        moments_per_pixel, line_height = data.end / view.width(), metrics.height() * top / view.height()
        if data.card_in_view and data.for_tensors_bytes is not None:
            room = top - data.for_tensors_bytes / data.unit[1]
            self._card_label.setAnchor((0, 0 if room < (_PHASE_LINES + 2) * line_height else 1))
        free_from = [0.0] * _PHASE_LINES
        for _line, words, phase in self._phases:
            width = (metrics.horizontalAdvance(phase.title) + self._theme.spacing.medium) * moments_per_pixel
            left = max(0.0, min(float(phase.start), data.end - width))
            line = next((line for line, end in enumerate(free_from) if left >= end), None)
            words.setVisible(line is not None)
            if line is not None:
                free_from[line] = left + width
                words.setPos(left, top - line * line_height)

    def _nearest_point(self, data: TimelineData, place: QPointF) -> int | None:
        return data.point_at(place.x()) if data.times else None

    def _x_of(self, data: TimelineData, point: int) -> float:
        return data.times[point]

    def _mark_hovered(self, point: int | None) -> None:
        super()._mark_hovered(point)
        self._point = point
        self.card.setVisible(point is not None)
        if point is not None and self._data is not None:
            place = self._item.getViewBox().mapViewToScene(QPointF(self._x_of(self._data, point), 0))
            x = self._plot.mapFromScene(place).x()
            self.card.show_lines(self._data.hover_lines(point), QPoint(x, self.height() // 6))


def _accessible_description(data: TimelineData) -> str:
    peak = data.result.peak_moment
    return f"Peak of {fmt.size(peak.bytes)} at moment {fmt.integer(peak.time)} of {fmt.integer(data.end)}."


_COLUMNS: Final[tuple[Column[TimelineRow], ...]] = (
    number_column(
        "time",
        "Moment",
        lambda row: row.moment.time,
        show=lambda value: fmt.integer(round(value)),
        width=9,
        about="Number of the allocation or release since the start of the step",
    ),
    number_column(
        "bytes",
        "Alive",
        lambda row: row.moment.bytes,
        show=lambda value: fmt.size(round(value)),
        tooltip=lambda row: fmt.exact_bytes(row.moment.bytes),
        meter=True,
        about="Memory that is alive at this moment",
    ),
    text_column(
        "phase",
        "Phase",
        lambda row: row.moment.phase,
        width=24,
        about="Phase of the step: forward, backward or optimizer",
    ),
    text_column(
        "operator",
        "Last operator",
        lambda row: row.moment.operator,
        unknown="",
        width=24,
        about="Last operator that ran before this moment",
    ),
    text_column(
        "module", "Module", lambda row: row.moment.module, unknown="", width=24, about="Module that was running"
    ),
    text_column(
        "line",
        "Line",
        lambda row: short_source_line(row.moment.line),
        unknown="",
        width=20,
        tooltip=lambda row: row.moment.line,
        about="Line of the program that was running",
    ),
)


class TimelinePanel(DataPanel[TimelineData]):
    """Live memory over the traced run; the legend hides and shows categories."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, _NAME, "timeline", "timeline", TimelinePlot)
        self._column.addWidget(self.legend)

    def set_data(self, data: TimelineData) -> None:
        """Draw a memory timeline; the first call imports the plotting library."""
        # In the order of the stack, the top first.
        legend_items = [(series, f"Show {series.title.lower()} in the timeline") for series in reversed(data.series)]
        entries = (
            LegendEntry(series.category, series.title, role_of(series), description)
            for series, description in legend_items
        )
        self.legend.set_entries(tuple(entries))
        super().set_data(data)

    def _show_table_of(self, data: TimelineData) -> None:
        table = self._show_in_table([data.row(point) for point in range(len(data.times))], _COLUMNS, _NAME)
        table.mark(str(data.peak_point))

    def _row_id(self, row: TimelineRow) -> str:
        return str(row.point)

    def _read_out_text(self, data: TimelineData, point: int | None) -> str:
        if point is not None:
            return data.row(point).moment.description
        return f"At the peak: {data.sum_text}"
