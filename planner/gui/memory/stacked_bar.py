"""Stacked bar of a run's memory against the usable memory of the card: its layout, its picture and the widget."""

from dataclasses import dataclass
from math import ceil, log2
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QBrush,
    QFocusEvent,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from planner.gui.plot.legend import line_positions
from planner.gui.plot.ticks import Ticks
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory.view import MemoryBarSegment, MemoryView
from planner.units import GIB, MIB

_TICK_COUNT: Final = 7
_MARGIN: Final = 1.02
_OVERFLOW_BAND: Final = 6
_OVERFLOW_LINE: Final = 2
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_MINIMUM_WIDTH: Final = 240


@dataclass(frozen=True, slots=True)
class Piece:
    """A bar segment and its left and right end in pixels."""

    segment: MemoryBarSegment
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class BarLayout:
    """The memory bar in pixels; `edge` is the end of the card's usable memory, None if that is unknown."""

    pieces: tuple[Piece, ...]
    ticks: Ticks
    low: float
    total: float
    high: float
    edge: float | None
    width: float

    @property
    def card_right(self) -> float:
        """Return the x position where the card's memory ends, or where the bar ends if the capacity is unknown."""
        return self.width if self.edge is None else self.edge

    def piece_at(self, x: float) -> Piece | None:
        """Return the piece at `x`, which may lie beyond the end of the card's memory, or None."""
        return next((piece for piece in self.pieces if piece.left <= x < piece.right), None)


def bar_end_bytes(view: MemoryView) -> int:
    """Return the memory in bytes at the right end of the bar for `view`, including the uncertainty range."""
    held = view.total_bytes + sum(segment.bytes for segment in view.segments if segment.kind == "other")
    return max(view.bar_bytes, held + view.high_bytes - view.total_bytes)


def lay_out(view: MemoryView, width: float, scale_end_bytes: int | None = None) -> BarLayout:
    """Scale the segments of `view` to `width` pixels, including the upper end of the uncertainty range.

    `scale_end_bytes` is the memory at the end of the scale shared by several compared bars.
    """
    capacity = view.capacity_bytes
    if scale_end_bytes is not None:
        whole = scale_end_bytes * _MARGIN
    else:
        reached = bar_end_bytes(view)
        whole = reached if capacity is not None and reached <= capacity else reached * _MARGIN
    per_byte = width / whole
    return BarLayout(
        pieces=tuple(
            Piece(segment, segment.start_bytes * per_byte, (segment.start_bytes + segment.bytes) * per_byte)
            for segment in view.segments
        ),
        ticks=_memory_ticks(whole, width),
        low=view.low_bytes * per_byte,
        total=view.total_bytes * per_byte,
        high=view.high_bytes * per_byte,
        edge=None if capacity is None else capacity * per_byte,
        width=width,
    )


def _memory_ticks(whole: float, width: float) -> Ticks:
    """Return ticks along the memory scale at multiples of a power of two."""
    step = 2 ** max(0, ceil(log2(whole / _TICK_COUNT)))
    unit, factor = ("GiB", GIB) if step >= GIB / 2 else ("MiB", MIB)
    sizes = range(0, int(whole) + 1, step)
    return [(size * width / whole, fmt.quantity(size / factor, unit)) for size in sizes]


class BarPicture:
    """The stacked bar for `view` in a widget of `width` pixels, with the scale and the legend below the bar.

    `scale_end_bytes` is the memory at the end of the scale shared by compared bars. The x positions in `layout` are
    relative to the left end of `bar`.
    """

    def __init__(self, theme: Theme, width: int, view: MemoryView, scale_end_bytes: int | None = None) -> None:
        self._theme, self._width = theme, width
        self._small, self._bold = theme.font("small"), theme.font("small", bold=True)
        self._metrics, self._bold_metrics = QFontMetricsF(self._small), QFontMetricsF(self._bold)
        self._line = self._metrics.height() + theme.spacing.tiny
        # One pixel around the bar is left for the outline.
        height = round(2 * self._metrics.height() + 2 * theme.spacing.tiny)
        self.bar = QRectF(1, 1, max(1, width - 2), height)
        self._scale_top = self.bar.bottom() + 2 * theme.spacing.tiny
        self._capacity_bytes = view.capacity_bytes
        self.layout = lay_out(view, self.bar.width(), scale_end_bytes)
        self._labelled = [piece for piece in self.layout.pieces if self._has_room(piece)]
        self._named = [piece for piece in self.layout.pieces if piece not in self._labelled]
        self._swatch = self._metrics.ascent()
        widths = [
            self._legend_text_offset + self._metrics.horizontalAdvance(piece.segment.text) for piece in self._named
        ]
        self._places = line_positions(widths, self.bar.right(), theme.spacing.large)

    @property
    def height(self) -> int:
        """Return the total height of bar, scale and legend in pixels."""
        lines = self._places[-1][0] + 1 if self._places else 0
        return round(self._scale_top + (1 + lines) * self._line)

    def piece_at(self, x: float, y: float) -> Piece | None:
        """Return the piece at a position of the widget."""
        return None if y > self.bar.bottom() else self.layout.piece_at(x - self.bar.left())

    def paint(self, painter: QPainter, highlighted: str | None, *, focused: bool) -> None:
        """Paint bar, scale and legend, with a frame around the piece called `highlighted`."""
        painter.save()
        # Whole pixels: where the screen is scaled, what shows through at an edge would draw lines beside it.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setClipPath(self._rounded_bar_path(self.layout.width))
        painter.fillRect(self._bar_rect(0, self.layout.card_right), self._theme.color("free"))
        self._paint_pieces(painter)
        painter.restore()
        for piece in self._labelled:
            self._paint_label(painter, piece)
        self._paint_outlines(painter, highlighted, focused)
        self._paint_scale(painter)
        self._paint_legend(painter)

    @property
    def _legend_text_offset(self) -> float:
        return self._swatch + self._theme.spacing.tiny

    def _has_room(self, piece: Piece) -> bool:
        """Return whether a piece is wide enough for a label inside the bar; the legend lists the narrower pieces."""
        if piece.segment.kind == "overflow":
            return False
        title = self._metrics.horizontalAdvance(piece.segment.title)
        size = self._bold_metrics.horizontalAdvance(fmt.size(piece.segment.bytes))
        return piece.right - piece.left >= max(title, size) + 2 * self._theme.spacing.small

    def _widget_x(self, x: float) -> float:
        """Convert an x position in the layout to an x position in the widget."""
        return self.bar.left() + x

    def _bar_rect(self, left: float, right: float) -> QRectF:
        """Return the rectangle of the bar between two x positions in the layout."""
        return QRectF(self._widget_x(left), self.bar.top(), right - left, self.bar.height())

    def _rounded_bar_path(self, right: float) -> QPainterPath:
        path = QPainterPath()
        path.addRoundedRect(self._bar_rect(0, right), self._theme.tokens.radius, self._theme.tokens.radius)
        return path

    def _fill_rect(self, painter: QPainter, rect: QRectF, segment: MemoryBarSegment) -> None:
        """Fill `rect` in the segment's color; hatched for other processes, in the `bad` color for the overflow."""
        if segment.kind == "other":
            painter.fillRect(rect, self._theme.color("sunken"))
            painter.fillRect(rect, QBrush(self._theme.color("other_processes"), Qt.BrushStyle.BDiagPattern))
        else:
            role = {"overflow": "bad", "free": "free"}.get(segment.kind, segment.name)
            painter.fillRect(rect, self._theme.color(role))

    def _paint_pieces(self, painter: QPainter) -> None:
        layout = self.layout
        for piece in layout.pieces:
            # The last term is drawn up to the upper bound, towards which it fades out.
            right = layout.high if layout.low < piece.right <= layout.total else piece.right
            rect = self._bar_rect(piece.left, max(right, piece.right))
            if piece.segment.kind == "term":
                self._fill_rect(painter, rect, piece.segment)
            elif piece.segment.kind == "overflow":
                self._paint_overflow(painter, rect)
        self._fade_range(painter)
        for piece in layout.pieces:
            rect = self._bar_rect(piece.left, piece.right)
            if piece.segment.kind == "other":
                self._fill_rect(painter, rect, piece.segment)
            if piece.segment.kind == "overflow":
                # Up to the expected total the overflow is certain: it is drawn above the other processes.
                self._paint_overflow(painter, rect)
            elif piece.left > 0:
                painter.fillRect(self._bar_rect(piece.left - 0.5, piece.left + 0.5), self._theme.color("surface"))

    def _paint_overflow(self, painter: QPainter, rect: QRectF) -> None:
        """Draw lines in the `bad` color above and below the part of the bar that exceeds the card's memory."""
        bad = self._theme.color("bad")
        painter.fillRect(rect.adjusted(0, rect.height() - _OVERFLOW_BAND, 0, 0), bad)
        painter.fillRect(rect.adjusted(0, 0, 0, _OVERFLOW_LINE - rect.height()), bad)

    def _fade_range(self, painter: QPainter) -> None:
        """Fade the bar into the background between the lower and the upper bound of the memory needed."""
        layout = self.layout
        # The background is the free memory of the card, and beyond the card's end the window.
        end = min(max(layout.low, layout.card_right), layout.high) if layout.total < layout.card_right else layout.low
        for left, right, role in ((layout.low, end, "free"), (end, layout.high, "surface")):
            if left < right:
                fade = QLinearGradient(self._widget_x(layout.low), 0, self._widget_x(layout.high), 0)
                opaque, clear = self._theme.color(role), self._theme.color(role)
                clear.setAlpha(0)
                fade.setColorAt(0, clear)
                fade.setColorAt(1, opaque)
                painter.fillRect(self._bar_rect(left, right), fade)

    def _paint_label(self, painter: QPainter, piece: Piece) -> None:
        rect = self._bar_rect(piece.left, piece.right)
        size = fmt.size(piece.segment.bytes)
        role = {"other": "sunken", "free": "free"}.get(piece.segment.kind, piece.segment.name)
        if piece.segment.kind == "other":
            width = max(map(self._bold_metrics.horizontalAdvance, (piece.segment.title, size)))
            inset = max(0, (rect.width() - width) / 2 - self._theme.spacing.tiny)
            painter.fillRect(rect.adjusted(inset, 0, -inset, 0), self._theme.color(role))
        painter.setPen(self._theme.color_on(role))
        middle, half = rect.center().y(), rect.height() / 2
        painter.setFont(self._bold)
        upper = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom
        painter.drawText(QRectF(rect.left(), rect.top(), rect.width(), half), upper, size)
        painter.setFont(self._small)
        lower = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
        painter.drawText(QRectF(rect.left(), middle, rect.width(), half), lower, piece.segment.title)

    def _paint_outlines(self, painter: QPainter, highlighted: str | None, focused: bool) -> None:
        """Frame the piece called `highlighted`, and the card's memory, so that an overflow lies visibly outside."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self._theme.color("text"), 2))
        for piece in self.layout.pieces:
            if piece.segment.name == highlighted:
                painter.drawRect(self._bar_rect(piece.left, piece.right).adjusted(1, 1, -1, -1))
        painter.setPen(QPen(self._theme.color("focus" if focused else "muted"), 2 if focused else 1))
        painter.drawPath(self._rounded_bar_path(self.layout.card_right))

    def _paint_scale(self, painter: QPainter) -> None:
        """Paint the scale; tick labels that would overlap the label of the card's edge are left out."""
        self._paint_range(painter)
        edge = self._paint_card_edge(painter)
        painter.setFont(self._small)
        painter.setPen(self._theme.color("muted"))
        for x, text in self.layout.ticks:
            box = self._scale_label_rect(x, self._metrics.horizontalAdvance(text))
            if not edge.intersects(box):
                painter.drawText(box, _LEFT, text)

    def _paint_range(self, painter: QPainter) -> None:
        """Draw a bracket along the uncertainty range."""
        low, high = self.layout.low, self.layout.high
        if high - low < 2:
            return
        y = self.bar.bottom() + self._theme.spacing.tiny
        painter.setPen(QPen(self._theme.color("text"), 1))
        painter.drawLine(QPointF(self._widget_x(low), y), QPointF(self._widget_x(high), y))
        for x in (low, high):
            painter.drawLine(QPointF(self._widget_x(x), y - 2), QPointF(self._widget_x(x), y + 2))

    def _paint_card_edge(self, painter: QPainter) -> QRectF:
        """Mark the end of the card's memory; return the rectangle of its label with side gaps, empty without a card."""
        edge = self.layout.edge
        if edge is None or self._capacity_bytes is None:
            return QRectF()
        text = f"{fmt.size(self._capacity_bytes)} usable"
        box = self._scale_label_rect(edge, self._bold_metrics.horizontalAdvance(text))
        x = self._widget_x(edge)
        painter.setFont(self._bold)
        painter.setPen(QPen(self._theme.color("text"), 1))
        painter.drawLine(QPointF(x, self.bar.bottom()), QPointF(x, self._scale_top))
        painter.drawText(box, _LEFT, text)
        gap = self._theme.spacing.small
        return box.adjusted(-gap, 0, gap, 0)

    def _scale_label_rect(self, x: float, width: float) -> QRectF:
        """Return the rectangle for a scale label of `width` pixels centered below `x`, kept within the bar."""
        left = min(self._widget_x(x) - width / 2, self.bar.right() - width)
        return QRectF(max(self.bar.left(), left), self._scale_top, width + 1, self._line)

    def _paint_legend(self, painter: QPainter) -> None:
        """Paint the legend: swatch, name and size in bytes of each piece without a label in the bar."""
        for piece, (line, x) in zip(self._named, self._places, strict=True):
            left, top = self._widget_x(x), self._scale_top + (1 + line) * self._line
            swatch = QRectF(left, top + (self._line - self._swatch) / 2, self._swatch, self._swatch)
            self._fill_rect(painter, swatch, piece.segment)
            painter.setPen(self._theme.color("text"))
            painter.drawText(
                QRectF(left + self._legend_text_offset, top, self._width, self._line), _LEFT, piece.segment.text
            )


class StackedBar(QWidget):
    """The terms of the memory peak as one bar. Hovering or the arrow keys show the exact size of each piece in bytes.

    `activated` carries the name of the term that was clicked or chosen with Enter.
    """

    activated = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view: MemoryView | None = None
        self._scale_end_bytes: int | None = None
        self.picture: BarPicture | None = None
        self._current: str | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Memory breakdown on one GPU")
        theme.changed.connect(self._update_layout)

    def set_view(self, view: MemoryView, scale_end_bytes: int | None = None) -> None:
        """Show a memory result; `scale_end_bytes` is the end of the scale shared by compared bars."""
        self._view, self._scale_end_bytes = view, scale_end_bytes
        self.setAccessibleDescription(describe(view))
        self._update_layout()

    def minimumSizeHint(self) -> QSize:
        """Return the smallest width at which the bar is readable."""
        return QSize(_MINIMUM_WIDTH, self.height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the bar, its scale and its legend."""
        if self.picture is not None:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.picture.paint(painter, self._current, focused=self.hasFocus())
            painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Scale the pieces to the new width."""
        super().resizeEvent(event)
        self._update_layout()

    def event(self, event: QEvent) -> bool:
        """Show the hovered piece as a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            piece = self._piece_at(event.pos())
            QToolTip.showText(event.globalPos(), self.segment_text(piece.segment) if piece else "", self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Highlight the piece under the pointer."""
        piece = self._piece_at(event.position().toPoint())
        self._set_highlighted_piece(piece.segment.name if piece else None)

    def leaveEvent(self, event: QEvent) -> None:
        """Remove the highlight when the pointer leaves."""
        super().leaveEvent(event)
        self._set_highlighted_piece(None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Emit the term that was clicked."""
        piece = self._piece_at(event.position().toPoint())
        if piece and piece.segment.kind == "term":
            self.activated.emit(piece.segment.name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move through the pieces with the arrow keys; activate a term with Enter."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        key = Qt.Key(event.key())
        if key in steps:
            self._highlight_neighbor(steps[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current:
            self.activated.emit(self._current)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Remove the highlight when the focus leaves."""
        super().focusOutEvent(event)
        self._set_highlighted_piece(None)

    def segment_text(self, segment: MemoryBarSegment) -> str:
        """Return the text about a bar segment: its exact size in bytes and its share of the memory needed."""
        if self._view is None or segment.kind != "term":
            return segment.tooltip
        share = fmt.percent(segment.bytes / self._view.total_bytes)
        return f"{segment.tooltip}\n{share} of the memory needed"

    @Slot()
    def _update_layout(self) -> None:
        if self._view is None:
            return
        self.picture = BarPicture(self._theme, self.width(), self._view, self._scale_end_bytes)
        self.setFixedHeight(self.picture.height)
        self.update()

    def _piece_at(self, position: QPoint) -> Piece | None:
        return None if self.picture is None else self.picture.piece_at(position.x(), position.y())

    def _set_highlighted_piece(self, name: str | None) -> None:
        if name != self._current:
            self._current = name
            self.update()

    def _highlight_neighbor(self, step: int) -> None:
        pieces = self.picture.layout.pieces if self.picture else ()
        if not pieces:
            return
        names = [piece.segment.name for piece in pieces]
        start = names.index(self._current) if self._current in names else (-1 if step > 0 else len(names))
        piece = pieces[(start + step) % len(pieces)]
        self._set_highlighted_piece(piece.segment.name)
        middle = self.mapToGlobal(QPoint(round((piece.left + piece.right) / 2), self.height()))
        QToolTip.showText(middle, self.segment_text(piece.segment), self)


def describe(view: MemoryView) -> str:
    """Return the text about the memory bar for screen readers."""
    parts = "; ".join(segment.text for segment in view.segments)
    needs = f"{fmt.size(view.total_bytes)} ({fmt.size_range(view.low_bytes, view.high_bytes)})"
    capacity = "" if view.capacity_bytes is None else f" of {fmt.size(view.capacity_bytes)} usable"
    return f"Needs {needs}{capacity}: {parts}."
