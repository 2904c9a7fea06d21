"""How the pieces of the stacked bar are painted."""

from itertools import pairwise
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPainterPath, QPen

from planner.gui.memory.bar.canvas import Canvas
from planner.gui.memory.bar.layout import BarLayout, Piece
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory.view import Segment

# A gradient brush would cost more than the rest of the bar.
_FADE_STEPS: Final = 24
_OVERFLOW_BAND: Final = 6
_OVERFLOW_LINE: Final = 2


def fill(painter: QPainter, rect: QRectF, segment: Segment, theme: Theme) -> None:
    """Fill `rect` as `segment` is filled: plain, hatched for other processes, in the bad colour for the overflow."""
    if segment.kind == "other":
        painter.fillRect(rect, theme.color("sunken"))
        painter.fillRect(rect, QBrush(theme.color("other_processes"), Qt.BrushStyle.BDiagPattern))
    else:
        painter.fillRect(rect, theme.color("bad" if segment.kind == "overflow" else segment.name))


def paint_bar(painter: QPainter, canvas: Canvas, layout: BarLayout, labelled: frozenset[str]) -> None:
    """Paint the pieces, those in `labelled` with their names."""
    painter.save()
    painter.setClipPath(_rounded(canvas, layout.width))
    painter.fillRect(canvas.rect(0, layout.card_right), canvas.theme.color("free"))
    _paint_pieces(painter, canvas, layout)
    painter.restore()
    for piece in layout.pieces:
        if piece.segment.name in labelled:
            _paint_label(painter, canvas, piece)


def paint_outlines(painter: QPainter, canvas: Canvas, layout: BarLayout, marked: str | None, focused: bool) -> None:
    """Frame the piece called `marked`, and the card, so that what does not fit stands outside it."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(canvas.theme.color("text"), 2))
    for piece in layout.pieces:
        if piece.segment.name == marked:
            painter.drawRect(canvas.rect(piece.left, piece.right).adjusted(1, 1, -1, -1))
    painter.setPen(QPen(canvas.theme.color("focus" if focused else "muted"), 2 if focused else 1))
    painter.drawPath(_rounded(canvas, layout.card_right))


def _rounded(canvas: Canvas, right: float) -> QPainterPath:
    path = QPainterPath()
    path.addRoundedRect(canvas.rect(0, right), canvas.theme.tokens.radius, canvas.theme.tokens.radius)
    return path


def _paint_pieces(painter: QPainter, canvas: Canvas, layout: BarLayout) -> None:
    for piece in layout.pieces:
        # What lies at the end of the total is drawn up to the upper bound, and fades out there.
        right = layout.high if layout.low < piece.right <= layout.total else piece.right
        rect = canvas.rect(piece.left, max(right, piece.right))
        if piece.segment.kind == "term":
            fill(painter, rect, piece.segment, canvas.theme)
        elif piece.segment.kind == "overflow":
            _paint_overflow(painter, rect, canvas.theme)
    _fade(painter, canvas, layout)
    painter.setPen(QPen(canvas.theme.color("surface"), 1))
    for piece in layout.pieces:
        if piece.segment.kind == "other":
            fill(painter, canvas.rect(piece.left, piece.right), piece.segment, canvas.theme)
        if piece.segment.kind == "overflow":
            # Up to what is expected it is sure, and lies over what other processes hold.
            _paint_overflow(painter, canvas.rect(piece.left, piece.right), canvas.theme)
        elif piece.left > 0:
            x = round(canvas.x(piece.left)) + 0.5
            painter.drawLine(QPointF(x, canvas.bar.top()), QPointF(x, canvas.bar.bottom()))


def _paint_overflow(painter: QPainter, rect: QRectF, theme: Theme) -> None:
    """Line above and below what lies past the card's edge in the bad colour: what it consists of can still be seen."""
    bad = theme.color("bad")
    painter.fillRect(rect.adjusted(0, rect.height() - _OVERFLOW_BAND, 0, 0), bad)
    painter.fillRect(rect.adjusted(0, 0, 0, _OVERFLOW_LINE - rect.height()), bad)


def _fade(painter: QPainter, canvas: Canvas, layout: BarLayout) -> None:
    """Let the bar fade into what lies behind it between the lower and the upper bound of the total."""
    inside, outside = canvas.theme.color("free"), canvas.theme.color("surface")
    ends = [round(layout.low + (layout.high - layout.low) * step / _FADE_STEPS) for step in range(_FADE_STEPS + 1)]
    for step, (left, right) in enumerate(pairwise(ends)):
        color = inside if max(left, layout.total) < layout.card_right else outside
        color.setAlphaF((step + 0.5) / _FADE_STEPS)
        painter.fillRect(canvas.rect(left, right), color)


def _paint_label(painter: QPainter, canvas: Canvas, piece: Piece) -> None:
    rect = canvas.rect(piece.left, piece.right)
    size = fmt.size(piece.segment.bytes)
    role = "sunken" if piece.segment.kind == "other" else piece.segment.name
    if piece.segment.kind == "other":
        width = max(map(canvas.bold_metrics.horizontalAdvance, (piece.segment.title, size)))
        inset = max(0, (rect.width() - width) / 2 - canvas.theme.spacing.tiny)
        painter.fillRect(rect.adjusted(inset, 0, -inset, 0), canvas.theme.color(role))
    painter.setPen(canvas.theme.color_on(role))
    upper, lower = QRectF(rect), QRectF(rect)
    upper.setBottom(rect.center().y())
    lower.setTop(rect.center().y())
    painter.setFont(canvas.bold)
    painter.drawText(upper, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, size)
    painter.setFont(canvas.small)
    painter.drawText(lower, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, piece.segment.title)
