"""All curves of a plot as one item. Importing it imports pyqtgraph, which takes half a second."""

from itertools import pairwise
from typing import NamedTuple

import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPen, QPolygonF

from planner.gui.monitor.plots.curves import Curve, Floats
from planner.gui.monitor.plots.scales import Range


class _Drawn(NamedTuple):
    """A curve's pen and its pieces between gaps."""

    pen: QPen
    pieces: tuple[QPolygonF, ...]


class CurvesItem(pg.GraphicsObject):  # type: ignore[misc]  # the library has no annotations
    """Draws curves as they are given, without a look at them.

    An item a curve would find out the bounds of each several times a redraw, which takes longer than to draw it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[_Drawn] = []

    def set_curves(self, curves: list[tuple[Curve, QPen]], span: Range) -> None:
        """Draw these curves and no others; `span` is the time from 0 to 1 on the axis."""
        self._drawn = [_Drawn(pen, _pieces(curve, span)) for curve, pen in curves]
        self.update()

    def set_pens(self, pens: list[QPen]) -> None:
        """Draw the same curves with other pens."""
        self._drawn = [drawn._replace(pen=pen) for drawn, pen in zip(self._drawn, pens, strict=True)]
        self.update()

    def viewRangeChanged(self) -> None:
        """Take note of other axes: the item is as large as what is shown."""
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return what is shown."""
        return QRectF(self.viewRect())

    def paint(self, painter: QPainter, _option: object, _widget: object) -> None:
        """Draw the curves."""
        for drawn in self._drawn:
            painter.setPen(drawn.pen)
            for piece in drawn.pieces:
                painter.drawPolyline(piece)


def _pieces(curve: Curve, span: Range) -> tuple[QPolygonF, ...]:
    x, y = (curve.x - span.low) / (span.high - span.low), curve.y
    if not curve.breaks:
        return (_polygon(x, y),) if len(x) else ()
    borders = pairwise((0, *curve.breaks, len(x)))
    return tuple(_polygon(x[first:stop], y[first:stop]) for first, stop in borders if stop > first)


def _polygon(x: Floats, y: Floats) -> QPolygonF:
    # A line of one point would not be drawn.
    ends = (x, y) if len(x) > 1 else (x.repeat(2), y.repeat(2))
    polygon: QPolygonF = pg.functions.arrayToQPolygonF(*ends)
    return polygon
