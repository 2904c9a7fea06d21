"""The scale under the stacked bar: round sizes, the card's edge, and the bracket of the uncertainty."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from planner.gui.memory.bar.canvas import Canvas
from planner.gui.memory.bar.layout import BarLayout
from planner.present import format as fmt

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def paint_scale(painter: QPainter, canvas: Canvas, layout: BarLayout, capacity_bytes: int | None) -> None:
    """Paint the sizes along the bar; the card's edge comes first, and sizes that would touch it are left out."""
    _paint_range(painter, canvas, layout)
    taken = QRectF()
    if layout.edge is not None and capacity_bytes is not None:
        taken = _paint_edge(painter, canvas, layout.edge, capacity_bytes)
    painter.setFont(canvas.small)
    painter.setPen(canvas.theme.color("muted"))
    for tick in layout.ticks:
        box = _box(canvas, tick.x, canvas.metrics.horizontalAdvance(tick.text))
        if not taken.intersects(box):
            painter.drawText(box, _LEFT, tick.text)


def _paint_range(painter: QPainter, canvas: Canvas, layout: BarLayout) -> None:
    if layout.high - layout.low < 2:
        return
    y = canvas.bar.bottom() + canvas.theme.spacing.tiny
    painter.setPen(QPen(canvas.theme.color("text"), 1))
    painter.drawLine(QPointF(canvas.x(layout.low), y), QPointF(canvas.x(layout.high), y))
    for x in (layout.low, layout.high):
        painter.drawLine(QPointF(canvas.x(x), y - 2), QPointF(canvas.x(x), y + 2))


def _paint_edge(painter: QPainter, canvas: Canvas, edge: float, capacity_bytes: int) -> QRectF:
    """Mark the card's edge and return what its words take, with a gap at either side."""
    text = f"{fmt.size(capacity_bytes)} usable"
    box = _box(canvas, edge, canvas.bold_metrics.horizontalAdvance(text))
    x = canvas.x(edge)
    painter.setFont(canvas.bold)
    painter.setPen(QPen(canvas.theme.color("text"), 1))
    painter.drawLine(QPointF(x, canvas.bar.bottom()), QPointF(x, canvas.scale_top + 2))
    painter.drawText(box, _LEFT, text)
    gap = canvas.theme.spacing.small
    return box.adjusted(-gap, 0, gap, 0)


def _box(canvas: Canvas, x: float, width: float) -> QRectF:
    """Return the box of a text of `width` centred under `x`, kept within the bar's ends."""
    left = min(canvas.x(x) - width / 2, canvas.bar.right() - width)
    return QRectF(max(canvas.bar.left(), left), canvas.scale_top, width + 1, canvas.line)
