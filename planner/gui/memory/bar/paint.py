"""How the stacked bar is painted: its pieces, the scale under it, and the names that have no room inside."""

from itertools import pairwise
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPainterPath, QPen

from planner.gui.memory.bar.layout import BarLayout, Piece
from planner.gui.plot.legend import flow
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory import Segment

# A gradient brush would cost more than the rest of the bar.
_FADE_STEPS: Final = 24
_OVERFLOW_BAND: Final = 6
_OVERFLOW_LINE: Final = 2
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class Canvas:
    """The bar's rectangle within a widget of `width` pixels, with the fonts that are written in it."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.theme = theme
        self.width = width
        self.small = theme.font("small")
        self.bold = theme.font("small", bold=True)
        self.metrics = QFontMetricsF(self.small)
        self.bold_metrics = QFontMetricsF(self.bold)
        self.line = self.metrics.height() + theme.spacing.tiny
        # One pixel stays free around it for the outline.
        self.bar = QRectF(1, 1, max(1, width - 2), round(2 * self.metrics.height() + 2 * theme.spacing.tiny))
        self.scale_top = self.bar.bottom() + 2 * theme.spacing.tiny
        self.legend_top = self.scale_top + self.line

    def x(self, x: float) -> float:
        """Return the widget's x of a pixel of the layout."""
        return self.bar.left() + x

    def rect(self, left: float, right: float) -> QRectF:
        """Return the part of the bar between two pixels of the layout."""
        return QRectF(self.x(left), self.bar.top(), right - left, self.bar.height())

    def labelled(self, layout: BarLayout) -> frozenset[str]:
        """Return the names of the pieces that are wide enough to be named inside the bar; the legend has the others."""
        return frozenset(piece.segment.name for piece in layout.pieces if self._has_room(piece))

    def _has_room(self, piece: Piece) -> bool:
        if piece.segment.kind == "overflow":
            return False
        title = self.metrics.horizontalAdvance(piece.segment.title)
        size = self.bold_metrics.horizontalAdvance(fmt.size(piece.segment.bytes))
        return piece.right - piece.left >= max(title, size) + 2 * self.theme.spacing.small


class PieceNames:
    """The names of the pieces that are not `labelled` inside the bar, broken into lines of the widget's width."""

    def __init__(self, canvas: Canvas, layout: BarLayout, labelled: frozenset[str]) -> None:
        self._canvas = canvas
        self._swatch = canvas.metrics.ascent()
        self._offset = self._swatch + canvas.theme.spacing.tiny
        self._pieces = [piece for piece in layout.pieces if piece.segment.name not in labelled]
        widths = [self._offset + canvas.metrics.horizontalAdvance(piece.segment.text) for piece in self._pieces]
        self._places = flow(widths, canvas.bar.right(), canvas.theme.spacing.large)

    @property
    def height(self) -> float:
        """Return the pixels that all lines take."""
        return (self._places[-1][0] + 1) * self._canvas.line if self._places else 0

    def paint(self, painter: QPainter) -> None:
        """Paint a swatch and the name and size of each piece."""
        canvas = self._canvas
        for piece, (line, x) in zip(self._pieces, self._places, strict=True):
            left, top = canvas.x(x), canvas.legend_top + line * canvas.line
            swatch = QRectF(left, top + (canvas.line - self._swatch) / 2, self._swatch, self._swatch)
            fill(painter, swatch, piece.segment, canvas.theme)
            painter.setPen(canvas.theme.color("text"))
            box = QRectF(left + self._offset, top, canvas.width, canvas.line)
            painter.drawText(box, _LEFT, piece.segment.text)


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


def paint_scale(painter: QPainter, canvas: Canvas, layout: BarLayout, capacity_bytes: int | None) -> None:
    """Paint the sizes along the bar; the card's edge comes first, and sizes that would touch it are left out."""
    _paint_range(painter, canvas, layout)
    taken = QRectF()
    if layout.edge is not None and capacity_bytes is not None:
        taken = _paint_edge(painter, canvas, layout.edge, capacity_bytes)
    painter.setFont(canvas.small)
    painter.setPen(canvas.theme.color("muted"))
    for tick in layout.ticks:
        box = _box_under(canvas, tick.x, canvas.metrics.horizontalAdvance(tick.text))
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
    box = _box_under(canvas, edge, canvas.bold_metrics.horizontalAdvance(text))
    x = canvas.x(edge)
    painter.setFont(canvas.bold)
    painter.setPen(QPen(canvas.theme.color("text"), 1))
    painter.drawLine(QPointF(x, canvas.bar.bottom()), QPointF(x, canvas.scale_top + 2))
    painter.drawText(box, _LEFT, text)
    gap = canvas.theme.spacing.small
    return box.adjusted(-gap, 0, gap, 0)


def _box_under(canvas: Canvas, x: float, width: float) -> QRectF:
    """Return the box of a text of `width` centred under `x`, kept within the bar's ends."""
    left = min(canvas.x(x) - width / 2, canvas.bar.right() - width)
    return QRectF(max(canvas.bar.left(), left), canvas.scale_top, width + 1, canvas.line)
