"""The plot of live bytes over the run. Importing it imports pyqtgraph, which takes half a second."""

from collections.abc import Collection
from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.memory.trace.timeline_data import Band, TimelineData, colour_of, memory_marks, time_marks
from planner.gui.theme import Theme, mark
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.plot import Plot, cosmetic_pen
from planner.present import format as fmt

_PIXELS_A_TIME: Final = 96
_PIXELS_A_SIZE: Final = 36
_BAND_ALPHA: Final = 90
_STEPS: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}


class TimelinePlot(Plot):
    """Categories stacked to scale, the phases above them, the peak and the card's line.

    The pointer, or the arrow keys, read out a moment; `hovered` carries its point, or none.
    """

    hovered = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._data: TimelineData | None = None
        self._hidden: frozenset[str] = frozenset()
        self._point: int | None = None
        self._areas: list[tuple[Any, str]] = []
        self._bands: list[tuple[Any, Any, Band]] = []
        self._card: Any = pg.InfiniteLine(angle=0)
        self._card_words: Any = pg.TextItem(anchor=(0, 1))
        self._pointer: Any = pg.InfiniteLine(angle=90)
        self._peak: Any = pg.ScatterPlotItem(size=9)
        self._peak_words: Any = pg.TextItem(anchor=(0.5, 1))
        for item in (self._card, self._card_words, self._pointer, self._peak, self._peak_words):
            self._item.addItem(item, ignoreBounds=True)
            item.setZValue(10)
        self._box = make_label(font=theme.font("small"))
        self._box.setParent(self)
        self._box.setMargin(theme.spacing.small)
        self._box.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        mark(self._box, "popover")
        self._box.hide()
        self._take_keyboard()
        self.setAccessibleName("Live memory over the run; arrow keys go from moment to moment")
        self._plot.setAccessibleName("Live memory over the run; the same figures are in its table")
        self._item.getAxis("bottom").setLabel("Allocations and frees, in order")
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._dress()

    @property
    def box(self) -> QLabel:
        """Return the box that tells about the moment under the pointer."""
        return self._box

    def set_data(self, data: TimelineData, hidden: Collection[str] = ()) -> None:
        """Show another timeline without the categories in `hidden`."""
        self._data, self._hidden = data, frozenset(hidden)
        self._hover(None)
        self._stack(data)
        self._place_bands(data)
        self._place_marks(data)
        self._item.setXRange(0, data.end, padding=0)
        self._item.setYRange(0, data.top_bytes / data.unit[1], padding=0)
        self._item.getAxis("left").setLabel(data.unit[0])
        self.setAccessibleDescription(_description(data))
        self._dress()
        self._place_ticks()

    def leaveEvent(self, event: QEvent) -> None:
        """Take the read-out back when the pointer has left."""
        super().leaveEvent(event)
        self._hover(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go from moment to moment with the arrow keys, in leaps with the page keys, to the peak with Home."""
        data, key = self._data, Qt.Key(event.key())
        if data is None or not data.times:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Home:
            self._hover(data.peak_point)
        elif key in _STEPS:
            start = data.peak_point if self._point is None else self._point
            self._hover(min(len(data.times) - 1, max(0, start + _STEPS[key])))
        elif key == Qt.Key.Key_Escape and self._point is not None:
            self._hover(None)
        else:
            super().keyPressEvent(event)

    def _stack(self, data: TimelineData) -> None:
        for area, _ in self._areas:
            self._item.removeItem(area)
        times = [*data.times, data.end]
        self._areas = []
        for position, (series, edge) in enumerate(data.stack(self._hidden)):
            area = pg.PlotCurveItem([*times], [*edge, *edge[-1:]], stepMode="right", fillLevel=0, pen=None)
            # Painted from the highest edge down to 0, so that each shows only what lies above the next.
            area.setZValue(-position - 1)
            self._item.addItem(area, ignoreBounds=True)
            self._areas.append((area, colour_of(series)))

    def _place_bands(self, data: TimelineData) -> None:
        for line, words, _ in self._bands:
            self._item.removeItem(line)
            self._item.removeItem(words)
        self._bands = []
        for band in data.bands:
            line, words = pg.InfiniteLine(pos=band.start, angle=90), pg.TextItem(band.title, anchor=(0, 0))
            words.setPos(band.start, data.top_bytes / data.unit[1])
            for item in (line, words):
                self._item.addItem(item, ignoreBounds=True)
                item.setZValue(5)
            self._bands.append((line, words, band))

    def _place_marks(self, data: TimelineData) -> None:
        unit = data.unit[1]
        peak = data.result.peak_moment
        whole = not self._hidden and bool(data.times)
        for item in (self._peak, self._peak_words):
            item.setVisible(whole)
        self._peak.setData([peak.time], [peak.bytes / unit])
        self._peak_words.setText(f"peak {fmt.size(peak.bytes)}")
        self._peak_words.setAnchor((0 if peak.time < data.end / 8 else 1 if peak.time > data.end * 7 / 8 else 0.5, 1))
        self._peak_words.setPos(peak.time, peak.bytes / unit)
        for item in (self._card, self._card_words):
            item.setVisible(data.card_in_view)
        if data.card_in_view and data.for_tensors_bytes is not None:
            self._card.setPos(data.for_tensors_bytes / unit)
            self._card_words.setPos(0, data.for_tensors_bytes / unit)
            self._card_words.setText(_card_words(data))

    def _place_ticks(self) -> None:
        if self._data is None:
            return
        self._item.getAxis("bottom").setTicks([time_marks(self._data, self.width() // _PIXELS_A_TIME)])
        self._item.getAxis("left").setTicks([memory_marks(self._data, self.height() // _PIXELS_A_SIZE)])
        metrics = QFontMetricsF(self._theme.font("small"))
        pixels = self._item.getViewBox().width() / self._data.end
        for _line, words, band in self._bands:
            room = (band.end - band.start) * pixels
            words.setVisible(room >= metrics.horizontalAdvance(band.title) + self._theme.spacing.small)

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        text, muted, small = theme.color("text"), theme.color("muted"), theme.font("small")
        line = QColor(muted)
        line.setAlpha(_BAND_ALPHA)
        for area, role in self._areas:
            area.setBrush(theme.color(role))
        for start, words, _band in self._bands:
            start.setPen(cosmetic_pen(line, 1))
            words.setColor(muted)
            words.setFont(small)
        self._card.setPen(cosmetic_pen(text, 1, Qt.PenStyle.DashDotLine))
        self._pointer.setPen(cosmetic_pen(text, 1, Qt.PenStyle.DotLine))
        self._peak.setBrush(theme.color("surface"))
        self._peak.setPen(cosmetic_pen(text, 1.5))
        for words in (self._card_words, self._peak_words):
            words.setColor(text)
            words.setFont(small)

    @Slot(object)
    def _on_moved(self, position: QPointF) -> None:
        place = self._view_position(position)
        inside = place is not None and self._data is not None and bool(self._data.times)
        self._hover(self._data.point_at(place.x()) if inside and self._data and place else None)

    def _hover(self, point: int | None) -> None:
        self._point = point
        self._pointer.setVisible(point is not None)
        self._box.setVisible(point is not None)
        if point is not None and self._data is not None:
            self._pointer.setPos(self._data.times[point])
            self._box.setText("\n".join(self._data.hover_lines(point)))
            self._place_box(self._data.times[point])
        self.hovered.emit(point)

    def _place_box(self, time: int) -> None:
        self._box.adjustSize()
        box = self._item.getViewBox()
        at = self._plot.mapFromScene(box.mapViewToScene(QPointF(time, 0))).x()
        gap = self._theme.spacing.medium
        left = at + gap if at + gap + self._box.width() <= self.width() else at - gap - self._box.width()
        top = max(0, (self.height() - self._box.height()) // 3)
        self._box.move(QPoint(max(0, left), top))


def _card_words(data: TimelineData) -> str:
    return f"{data.card or 'Card'}: {fmt.size(data.for_tensors_bytes)} for tensors"


def _description(data: TimelineData) -> str:
    peak = data.result.peak_moment
    return f"Peak of {fmt.size(peak.bytes)} at moment {fmt.integer(peak.time)} of {fmt.integer(data.end)}."
