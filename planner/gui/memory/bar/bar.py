"""Stacked bar of a run's memory against the usable memory of the card."""

from typing import Final

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from planner.gui.memory.bar.layout import Piece
from planner.gui.memory.bar.paint import BarPicture
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory.view import MemoryBarSegment, MemoryView

_MINIMUM_WIDTH: Final = 240


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
        self.setAccessibleName("Memory on one card by term")
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
