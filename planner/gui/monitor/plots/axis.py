"""An axis that is drawn as it stands. Importing it imports pyqtgraph, which takes half a second."""

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QStaticText

_TOUCHING = 2.0
# Times are ever others: words that are not needed any more must go some time.
_MOST_KEPT = 64


class PlainAxis(pg.AxisItem):  # type: ignore[misc]  # the library has no annotations
    """Draws the marks that it is given, each with a line through the plot.

    The library's own works out where marks may stand and keeps a recording of their drawing. An axis of time is never
    drawn twice with the same marks, and playing the recording takes longer than all else in the plot.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self._marks: list[tuple[float, str]] = []
        self._words: dict[str, tuple[QStaticText, float, float]] = {}
        self.grid_color = QColor()

    def set_marks(self, marks: list[tuple[float, str]]) -> None:
        """Show these marks: where each stands on the axis, and what it says."""
        if marks != self._marks:
            self._marks = marks
            self.update()

    def forget_words(self) -> None:
        """Lay out all words anew, for another font."""
        self._words.clear()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the axis, the lines of its marks, and what they say."""
        bounds = self.mapRectFromParent(self.geometry())
        plot = self.linkedView().mapRectToItem(self, self.linkedView().boundingRect())
        first, last = self.range
        painter.setFont(self.style["tickFont"])
        # Lines are filled and opaque: real ones, or a colour that shines through, take many times longer.
        color, axis = self.grid_color, self.pen().color()
        if self.orientation == "bottom":
            places = [bounds.left() + (value - first) / (last - first) * bounds.width() for value, _ in self._marks]
            painter.fillRect(round(bounds.left()), round(bounds.top()), round(bounds.width()), 1, axis)
            top, height = round(plot.top()), round(plot.height())
            for x in places:
                painter.fillRect(round(x), top, 1, height, color)
            self._write_below(painter, places, bounds)
        else:
            places = [bounds.bottom() - (value - first) / (last - first) * bounds.height() for value, _ in self._marks]
            painter.fillRect(round(bounds.right()) - 1, round(bounds.top()), 1, round(bounds.height()), axis)
            left, width = round(plot.left()), round(plot.width())
            for y in places:
                painter.fillRect(left, round(y), width, 1, color)
            self._write_beside(painter, places, bounds)

    def _write_below(self, painter: QPainter, places: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        for x, (_, text) in zip(places, self._marks, strict=True):
            words, width, height = self._laid_out(painter, text)
            left = min(max(x - width / 2, bounds.left() + _TOUCHING), bounds.right() - width - _TOUCHING)
            painter.drawStaticText(QPointF(left, bounds.center().y() - height / 2), words)

    def _write_beside(self, painter: QPainter, places: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        for y, (_, text) in zip(places, self._marks, strict=True):
            words, width, height = self._laid_out(painter, text)
            top = min(max(y - height / 2, bounds.top()), bounds.bottom() - height)
            painter.drawStaticText(QPointF(bounds.right() - width - 2 * _TOUCHING, top), words)

    def _laid_out(self, painter: QPainter, text: str) -> tuple[QStaticText, float, float]:
        """Return words ready to be drawn, with their width and height."""
        known = self._words.get(text)
        if known is None:
            if len(self._words) >= _MOST_KEPT:
                self._words.clear()
            words = QStaticText(text)
            words.setTextFormat(Qt.TextFormat.PlainText)
            words.prepare(painter.transform(), painter.font())
            known = self._words[text] = words, words.size().width(), words.size().height()
        return known
