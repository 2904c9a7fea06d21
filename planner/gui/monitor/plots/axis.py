"""An axis that is drawn as it stands. Importing it imports pyqtgraph, which takes half a second."""

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

_TOUCHING = 2.0


class PlainAxis(pg.AxisItem):  # type: ignore[misc]  # the library has no annotations
    """Draws the marks that it is given, each with a line through the plot.

    The library's own works out where marks may stand and keeps a recording of their drawing. An axis of time is never
    drawn twice with the same marks, and playing the recording takes longer than all else in the plot.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self._marks: list[tuple[float, str]] = []
        self.grid_color = QColor()

    def set_marks(self, marks: list[tuple[float, str]]) -> None:
        """Show these marks: where each stands on the axis, and what it says."""
        if marks != self._marks:
            self._marks = marks
            self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the axis, the lines of its marks, and what they say."""
        bounds = self.mapRectFromParent(self.geometry())
        plot = self.linkedView().mapRectToItem(self, self.linkedView().boundingRect())
        first, last = self.range
        painter.setFont(self.style["tickFont"])
        if self.orientation == "bottom":
            places = [bounds.left() + (value - first) / (last - first) * bounds.width() for value, _ in self._marks]
            lines = [QRectF(round(x), plot.top(), 1, plot.height()) for x in places]
            self._draw_lines(painter, lines, QRectF(bounds.left(), round(bounds.top()), bounds.width(), 1))
            self._write_below(painter, places, bounds)
        else:
            places = [bounds.bottom() - (value - first) / (last - first) * bounds.height() for value, _ in self._marks]
            lines = [QRectF(plot.left(), round(y), plot.width(), 1) for y in places]
            self._draw_lines(painter, lines, QRectF(round(bounds.right()) - 1, bounds.top(), 1, bounds.height()))
            self._write_beside(painter, places, bounds)

    def _draw_lines(self, painter: QPainter, lines: list[QRectF], axis: QRectF) -> None:
        # Filled and opaque: lines, or a colour that shines through, take many times longer.
        painter.fillRect(axis, self.pen().color())
        for line in lines:
            painter.fillRect(line.toAlignedRect(), self.grid_color)

    def _write_below(self, painter: QPainter, places: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        metrics = painter.fontMetrics()
        for x, (_, text) in zip(places, self._marks, strict=True):
            half = metrics.horizontalAdvance(text) / 2 + _TOUCHING
            x = min(max(x, bounds.left() + half), bounds.right() - half)
            painter.drawText(
                QRectF(x - half, bounds.top(), 2 * half, bounds.height()), Qt.AlignmentFlag.AlignCenter, text
            )

    def _write_beside(self, painter: QPainter, places: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        height = painter.fontMetrics().height()
        where = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for y, (_, text) in zip(places, self._marks, strict=True):
            top = min(max(y - height / 2, bounds.top()), bounds.bottom() - height)
            painter.drawText(QRectF(bounds.left(), top, bounds.width() - 2 * _TOUCHING, height), where, text)
