"""Plot axis that draws precomputed ticks directly. Importing it imports pyqtgraph, which takes half a second."""

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QStaticText

from planner.gui.plot.ticks import Ticks

_LABEL_GAP = 2.0
# A time axis never stops producing new labels, so the cache is emptied when it is full.
_MAX_CACHED = 64


class PlainAxis(pg.AxisItem):  # type: ignore[misc]  # the library has no annotations
    """Axis that draws the ticks set with `set_ticks`, each with a grid line through the plot.

    pyqtgraph's own axis places the ticks itself and caches their drawing as a QPicture. A time axis is never drawn
    twice with the same ticks, and replaying the picture takes longer than everything else in the plot.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # of a title that is never shown, but laid out anew after each resize
        self._placed: Ticks = []
        self._labels: dict[str, tuple[QStaticText, float, float]] = {}
        self._grid_color = QColor()

    def set_ticks(self, ticks: Ticks) -> None:
        """Replace the ticks."""
        if ticks != self._placed:
            self._placed = ticks
            self.update()

    def set_grid_color(self, grid_color: QColor) -> None:
        """Set the color of the grid lines and discard the cached labels, whose font may have changed."""
        self._grid_color = grid_color
        self._labels.clear()
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the axis line, the grid lines and the tick labels."""
        bounds = self.mapRectFromParent(self.geometry())
        plot = self.linkedView().mapRectToItem(self, self.linkedView().boundingRect())
        first, last = self.range
        painter.setFont(self.style["tickFont"])
        # Filled opaque rectangles: stroked or translucent lines take many times longer.
        color, axis = self._grid_color, self.pen().color()
        shares = [(value - first) / (last - first) for value, _ in self._placed]
        if self.orientation == "bottom":
            positions = [bounds.left() + share * bounds.width() for share in shares]
            painter.fillRect(round(bounds.left()), round(bounds.top()), round(bounds.width()), 1, axis)
            top, height = round(plot.top()), round(plot.height())
            for x in positions:
                painter.fillRect(round(x), top, 1, height, color)
        else:
            positions = [bounds.bottom() - share * bounds.height() for share in shares]
            painter.fillRect(round(bounds.right()) - 1, round(bounds.top()), 1, round(bounds.height()), axis)
            left, width = round(plot.left()), round(plot.width())
            for y in positions:
                painter.fillRect(left, round(y), width, 1, color)
        self._paint_tick_labels(painter, positions, bounds)

    def _paint_tick_labels(self, painter: QPainter, positions: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        for place, (_, text) in zip(positions, self._placed, strict=True):
            label, width, height = self._prepared_label(painter, text)
            if self.orientation == "bottom":
                left = min(max(place - width / 2, bounds.left() + _LABEL_GAP), bounds.right() - width - _LABEL_GAP)
                top = bounds.center().y() - height / 2
            else:
                left = bounds.right() - width - 2 * _LABEL_GAP
                top = min(max(place - height / 2, bounds.top()), bounds.bottom() - height)
            painter.drawStaticText(QPointF(left, top), label)

    def _prepared_label(self, painter: QPainter, text: str) -> tuple[QStaticText, float, float]:
        """Return a label prepared for drawing, with its width and height."""
        known = self._labels.get(text)
        if known is None:
            if len(self._labels) >= _MAX_CACHED:
                self._labels.clear()
            label = QStaticText(text)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.prepare(painter.transform(), painter.font())
            known = self._labels[text] = label, label.size().width(), label.size().height()
        return known
