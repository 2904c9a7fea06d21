"""The plot of memory over one field of the plan. Importing it imports pyqtgraph, which takes half a second."""

from typing import Any, Final

import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent
from PySide6.QtCore import QEvent, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from planner.gui.memory.curves.data import Corner, CurveData, memory_ticks, value_ticks
from planner.gui.theme import Theme
from planner.gui.widgets.plot import Plot, cosmetic_pen
from planner.plan.explore import CurvePoint
from planner.present import format as fmt
from planner.units import GIB

_BAND_ALPHA: Final = 56
_PIXELS_A_VALUE: Final = 64
_PIXELS_A_SIZE: Final = 36
_CORNERS: Final[dict[Corner, tuple[int, int]]] = {
    "above left": (0, 1),
    "above right": (1, 1),
    "below left": (0, 0),
    "below right": (1, 0),
}
"""Which corner of the words about the card stands on the end of its line."""


class CurvePlot(Plot):
    """Memory with its uncertainty, the card's line and the plan's point.

    `hovered` carries the point under the pointer, or none; `chosen` the value that was clicked.
    """

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._plot.setAccessibleName("Memory curve; the same figures are in its table")
        self._data: CurveData | None = None
        self._low: Any = self._item.plot()
        self._high: Any = self._item.plot()
        self._band: Any = pg.FillBetweenItem(self._low, self._high)
        self._fitting: Any = self._item.plot(antialias=True)
        self._exceeding: Any = self._item.plot(antialias=True)
        self._card: Any = pg.InfiniteLine(angle=0)
        self._card_words: Any = pg.TextItem()
        self._pointer: Any = pg.InfiniteLine(angle=90)
        self._now: Any = pg.ScatterPlotItem(size=10)
        self._under: Any = pg.ScatterPlotItem(size=8)
        for item in (self._band, self._card, self._card_words, self._pointer, self._now, self._under):
            self._item.addItem(item, ignoreBounds=True)
        self._item.getAxis("left").setLabel("GiB")
        self._band.setZValue(-10)
        self._now.setZValue(10)
        self._plot.scene().sigMouseMoved.connect(self._on_moved)
        self._plot.scene().sigMouseClicked.connect(self._on_clicked)
        self._dress()

    def set_data(self, data: CurveData) -> None:
        """Show another curve."""
        self._data = data
        xs = [data.x(point.value) for point in data.points]
        self._low.setData(xs, [point.low_bytes / GIB for point in data.points])
        self._high.setData(xs, [point.high_bytes / GIB for point in data.points])
        for line, places in zip((self._fitting, self._exceeding), data.split(), strict=True):
            line.setData([x for x, _ in places], [y for _, y in places], connect="finite")
        self._now.setData([data.x(data.current.value)], [data.current.total_bytes / GIB])
        self._item.setXRange(xs[0], xs[-1], padding=0.02)
        self._item.setYRange(*(end / GIB for end in data.memory_range), padding=0)
        self._place_card(data)
        self._place_ticks()
        self._item.getAxis("bottom").setLabel(data.title)
        self._hover(None)

    def leaveEvent(self, event: QEvent) -> None:
        """Take the read-out back when the pointer has left."""
        super().leaveEvent(event)
        self._hover(None)

    def _place_card(self, data: CurveData) -> None:
        known = data.capacity_bytes is not None
        self._card.setVisible(known)
        self._card_words.setVisible(known)
        if data.capacity_bytes is not None:
            self._card.setPos(data.capacity_bytes / GIB)
            self._card_words.setAnchor(_CORNERS[data.words_corner])
            end = data.points[0 if data.words_corner.endswith("left") else -1]
            self._card_words.setPos(data.x(end.value), data.capacity_bytes / GIB)
            self._card_words.setText(f"{data.card or 'Card'}: {fmt.size(data.capacity_bytes)} usable")

    def _place_ticks(self) -> None:
        if self._data is not None:
            self._item.getAxis("bottom").setTicks([value_ticks(self._data, self.width() // _PIXELS_A_VALUE)])
            self._item.getAxis("left").setTicks([memory_ticks(self._data, self.height() // _PIXELS_A_SIZE)])

    def _dress(self) -> None:
        super()._dress()
        theme = self._theme
        accent, text = theme.color("accent"), theme.color("text")
        band = QColor(accent)
        band.setAlpha(_BAND_ALPHA)
        for edge in (self._low, self._high):
            edge.setPen(None)
        self._band.setBrush(band)
        self._fitting.setPen(cosmetic_pen(accent, 2))
        self._exceeding.setPen(cosmetic_pen(theme.color("bad"), 2, Qt.PenStyle.DashLine))
        self._card.setPen(cosmetic_pen(text, 1, Qt.PenStyle.DashDotLine))
        self._card_words.setColor(text)
        self._card_words.setFont(theme.font("small"))
        self._pointer.setPen(cosmetic_pen(theme.color("muted"), 1, Qt.PenStyle.DotLine))
        for mark, brush in ((self._now, accent), (self._under, theme.color("surface"))):
            mark.setBrush(brush)
            mark.setPen(cosmetic_pen(text, 1.5))

    @Slot(object)
    def _on_moved(self, position: QPointF) -> None:
        self._hover(self._point_at(position))

    @Slot(object)
    def _on_clicked(self, event: MouseClickEvent) -> None:
        point = self._point_at(event.scenePos())
        if point is not None and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(point.value)

    def _point_at(self, position: QPointF) -> CurvePoint | None:
        place = self._view_position(position)
        return None if place is None or self._data is None else self._data.nearest(place.x())

    def _hover(self, point: CurvePoint | None) -> None:
        shown = point is not None
        self._pointer.setVisible(shown)
        self._under.setVisible(shown)
        if point is not None and self._data is not None:
            self._pointer.setPos(self._data.x(point.value))
            self._under.setData([self._data.x(point.value)], [point.total_bytes / GIB])
        self.hovered.emit(point)
