"""The plot of one simulated minute; importing it imports pyqtgraph, which takes half a second."""

from typing import ClassVar, Final

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QResizeEvent

from planner.gui.cost.serving.served_minute import ServedMinute
from planner.gui.plot.chart import POINTER, Chart, Item, ItemStyle
from planner.gui.plot.ticks import Ticks, round_ticks
from planner.gui.theme import Theme
from planner.serving.result import RequestBar

_ROLES: Final = {"waiting": "border", "reading": "series-2", "answering": "series-1"}
_BAR: Final = 0.8
"""Height of a bar as a share of its row."""
_HIGHEST: Final = 10


class MinutePlot(Chart):
    """Plot with a bar for each request, from its arrival to its end, and the cache in use as a share of the height."""

    PIXELS_PER_TICK: ClassVar = (64, 36)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Requests of one simulated minute; the table shows the same figures")
        self._data: ServedMinute | None = None
        self._hidden: frozenset[str] = frozenset()
        # Bars are thick lines: pyqtgraph's bars cannot follow the theme.
        self._parts: dict[str, Item] = {
            name: self._add_item(pg.PlotDataItem(connect="pairs"), ItemStyle(role)) for name, role in _ROLES.items()
        }
        self._preempted = self._add_item(pg.ScatterPlotItem(size=7, symbol="x"), ItemStyle("bad", 1, fill="bad"))
        self._cache = self._add_curve(ItemStyle("text", 1.5, Qt.PenStyle.DotLine))
        self._pointer = self._add_item(pg.InfiniteLine(angle=90), POINTER)
        self._set_axis_titles(bottom="Seconds", left="Requests")
        self._apply_theme()

    def set_data(self, data: ServedMinute) -> None:
        """Show the minute `data` in place of the previous one."""
        self._data = data
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
        self._place_ticks()
        self._size_bars()
        self._show_hovered(None)

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

    def hide_parts(self, hidden: frozenset[str]) -> None:
        """Hide some of the parts of all bars, or the curve of the cache."""
        self._hidden = hidden
        if self._data is not None:
            self.set_data(self._data)

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        if self._data is None:
            return None
        minute = self._data.minute
        rows = round_ticks(0.0, float(max(len(self._data.bars), 1)), y_tick_count, whole=True)
        return round_ticks(minute.begin_seconds, minute.end_seconds, x_tick_count), rows

    def _point_at(self, place: QPointF) -> float | None:
        return None if self._data is None else place.x()

    def _mark_hovered(self, point: float | None) -> None:
        self._pointer.setVisible(point is not None)
        if point is not None:
            self._pointer.setPos(point)


def _spans(bar: RequestBar, until: float) -> list[tuple[str, float, float]]:
    """Return the parts of a request with their begin and end in seconds; what has not ended lasts to the end."""
    scheduled = until if bar.scheduled is None else bar.scheduled
    first = until if bar.first_token is None else bar.first_token
    end = until if bar.end is None else bar.end
    return [("waiting", bar.arrival, scheduled), ("reading", scheduled, first), ("answering", first, end)]
