"""An axis that is drawn as it stands. Importing it imports pyqtgraph, which takes half a second."""

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QStaticText

from planner.gui.plot.ticks import Ticks

_GAP = 2.0
# Times are ever others: words that are not needed any more must go some time.
_MOST_KEPT = 64


class PlainAxis(pg.AxisItem):  # type: ignore[misc]  # the library has no annotations
    """Draws the ticks that it is given, each with a line through the plot.

    The library's own works out where ticks may stand and keeps a recording of their drawing. An axis of time is never
    drawn twice with the same ticks, and playing the recording takes longer than all else in the plot.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self._placed: Ticks = []
        self._words: dict[str, tuple[QStaticText, float, float]] = {}
        self._grid_color = QColor()

    def set_ticks(self, ticks: Ticks) -> None:
        """Show these ticks and no others."""
        if ticks != self._placed:
            self._placed = ticks
            self.update()

    def take_look(self, grid_color: QColor) -> None:
        """Draw the lines through the plot in a colour, and lay out all words anew, for another font."""
        self._grid_color = grid_color
        self._words.clear()
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the axis, the lines of its ticks, and what they say."""
        bounds = self.mapRectFromParent(self.geometry())
        plot = self.linkedView().mapRectToItem(self, self.linkedView().boundingRect())
        first, last = self.range
        painter.setFont(self.style["tickFont"])
        # Lines are filled and opaque: real ones, or a colour that shines through, take many times longer.
        color, axis = self._grid_color, self.pen().color()
        shares = [(value - first) / (last - first) for value, _ in self._placed]
        if self.orientation == "bottom":
            places = [bounds.left() + share * bounds.width() for share in shares]
            painter.fillRect(round(bounds.left()), round(bounds.top()), round(bounds.width()), 1, axis)
            top, height = round(plot.top()), round(plot.height())
            for x in places:
                painter.fillRect(round(x), top, 1, height, color)
        else:
            places = [bounds.bottom() - share * bounds.height() for share in shares]
            painter.fillRect(round(bounds.right()) - 1, round(bounds.top()), 1, round(bounds.height()), axis)
            left, width = round(plot.left()), round(plot.width())
            for y in places:
                painter.fillRect(left, round(y), width, 1, color)
        self._write(painter, places, bounds)

    def _write(self, painter: QPainter, places: list[float], bounds: QRectF) -> None:
        painter.setPen(self.textPen())
        for place, (_, text) in zip(places, self._placed, strict=True):
            words, width, height = self._laid_out(painter, text)
            if self.orientation == "bottom":
                left = min(max(place - width / 2, bounds.left() + _GAP), bounds.right() - width - _GAP)
                top = bounds.center().y() - height / 2
            else:
                left = bounds.right() - width - 2 * _GAP
                top = min(max(place - height / 2, bounds.top()), bounds.bottom() - height)
            painter.drawStaticText(QPointF(left, top), words)

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
