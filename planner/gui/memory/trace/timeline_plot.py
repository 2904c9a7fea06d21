"""Plot of live memory over a traced run. Importing it imports pyqtgraph, which takes half a second."""

from typing import ClassVar, Final

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QPointF, Qt, Slot
from PySide6.QtGui import QFontMetricsF, QKeyEvent

from planner.gui.memory.trace.timeline_data import (
    PhaseSpan,
    TimelineData,
    live_memory_ticks,
    moment_ticks,
    role_of,
)
from planner.gui.plot.chart import LIMIT, LINE_TITLE, POINTER, Chart, Item, ItemStyle
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme
from planner.present import format as fmt

_NAME: Final = "Live memory over the run"
_ABOVE: Final = 10
_PHASE_STYLE: Final = ItemStyle("muted", alpha=90)
_PHASE_LINES: Final = 3
"""Lines of phase titles above each other, for phases that are narrower than their titles."""
_KEY_STEPS: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}


class TimelinePlot(Chart):
    """Stacked categories of live memory, with the phases, the peak and the card's line.

    The pointer or the arrow keys read out a point, identified by its index in the timeline.
    """

    PIXELS_PER_TICK: ClassVar = (96, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, f"{_NAME}; the table shows the same figures")
        self._data: TimelineData | None = None
        self._hidden: frozenset[str] = frozenset()
        self._point: int | None = None
        self._areas: list[Item] = []
        self._phases: list[tuple[Item, Item, PhaseSpan]] = []
        self._card = self._add_item(pg.InfiniteLine(angle=0), LIMIT, _ABOVE)
        self._card_label = self._add_item(pg.TextItem(anchor=(0, 1)), LINE_TITLE, _ABOVE)
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), POINTER._replace(line="text"), _ABOVE)
        self._peak = self._add_item(pg.ScatterPlotItem(size=9), ItemStyle("text", 1.5, fill="surface"), _ABOVE)
        self._peak_label = self._add_item(pg.TextItem(anchor=(0.5, 1)), LINE_TITLE, _ABOVE)
        self._set_axis_titles(bottom="Allocations and frees, in order")
        self.card.setFont(theme.font("small"))
        self._accept_keyboard_focus()
        self.setAccessibleName(f"{_NAME}; arrow keys move from moment to moment")

    def set_data(self, data: TimelineData) -> None:
        """Show a timeline."""
        self._data = data
        self._show_hovered(None)
        self._draw_stack(data)
        self._place_phase_marks(data)
        self._place_peak_mark(data)
        self._place_card_line(data)
        self._set_axis_ranges((0, data.end), (0, data.top_bytes / data.unit[1]))
        self._set_axis_titles(left=data.unit[0])
        self.setAccessibleDescription(_accessible_description(data))
        self._place_ticks()

    @Slot(object)
    def hide_categories(self, hidden: frozenset[str]) -> None:
        """Hide the series of the categories in `hidden`."""
        self._hidden = hidden
        if self._data is not None:
            self.set_data(self._data)

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
        self._peak_label.setAnchor((0 if peak.time < data.end / 8 else 1 if peak.time > data.end * 7 / 8 else 0.5, 1))
        self._peak_label.setPos(peak.time, height)

    def _place_card_line(self, data: TimelineData) -> None:
        for item in (self._card, self._card_label):
            item.setVisible(data.card_in_view)
        if data.card_in_view and data.for_tensors_bytes is not None:
            self._card.setPos(data.for_tensors_bytes / data.unit[1])
            self._card_label.setPos(0, data.for_tensors_bytes / data.unit[1])
            self._card_label.setText(data.card_text)

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        return (
            None
            if self._data is None
            else (moment_ticks(self._data, x_tick_count), live_memory_ticks(self._data, y_tick_count))
        )

    def _place_ticks(self) -> None:
        super()._place_ticks()
        if self._data is None:
            return
        data, view, metrics = self._data, self._item.getViewBox(), QFontMetricsF(self._theme.font("small"))
        if not (view.width() and view.height()):
            return
        top = data.top_bytes / data.unit[1]
        moments_per_pixel, line_height = data.end / view.width(), metrics.height() * top / view.height()
        free_from = [0.0] * _PHASE_LINES
        for _line, words, phase in self._phases:
            width = (metrics.horizontalAdvance(phase.title) + self._theme.spacing.medium) * moments_per_pixel
            left = max(0.0, min(float(phase.start), data.end - width))
            line = next((line for line, end in enumerate(free_from) if left >= end), None)
            words.setVisible(line is not None)
            if line is not None:
                free_from[line] = left + width
                words.setPos(left, top - line * line_height)

    def _point_at(self, position: QPointF) -> int | None:
        return self._data.point_at(position.x()) if self._data is not None and self._data.times else None

    def _mark_hovered(self, point: int | None) -> None:
        self._point = point
        self._pointer.setVisible(point is not None)
        self.card.setVisible(point is not None)
        if point is not None and self._data is not None:
            time = self._data.times[point]
            self._pointer.setPos(time)
            x = self._plot.mapFromScene(self._item.getViewBox().mapViewToScene(QPointF(time, 0))).x()
            self.card.show_lines(self._data.hover_lines(point), QPoint(x, self.height() // 6))


def _accessible_description(data: TimelineData) -> str:
    peak = data.result.peak_moment
    return f"Peak of {fmt.size(peak.bytes)} at moment {fmt.integer(peak.time)} of {fmt.integer(data.end)}."
