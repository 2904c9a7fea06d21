"""The legend under the stacked bar: the pieces that are too narrow to be named inside it."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from planner.gui.memory.bar.canvas import Canvas
from planner.gui.memory.bar.layout import BarLayout, Piece
from planner.gui.memory.bar.paint import fill


class Legend:
    """The legend's entries, broken into rows of the widget's width; those in `labelled` need none."""

    def __init__(self, canvas: Canvas, layout: BarLayout, labelled: frozenset[str]) -> None:
        self._canvas = canvas
        self._swatch = canvas.metrics.ascent()
        self._rows: list[list[tuple[float, Piece]]] = []
        left = float(canvas.width)
        for piece in layout.pieces:
            if piece.segment.name in labelled:
                continue
            width = self._text_offset + canvas.metrics.horizontalAdvance(piece.segment.text)
            if left + width > canvas.width:
                self._rows.append([])
                left = canvas.bar.left()
            self._rows[-1].append((left, piece))
            left += width + canvas.theme.spacing.large

    @property
    def height(self) -> float:
        """Return the pixels that all rows take."""
        return len(self._rows) * self._canvas.line

    def paint(self, painter: QPainter) -> None:
        """Paint every entry: a swatch and the piece's name and size."""
        for number, row in enumerate(self._rows):
            top = self._canvas.legend_top + number * self._canvas.line
            for left, piece in row:
                self._paint_entry(painter, left, top, piece)

    @property
    def _text_offset(self) -> float:
        return self._swatch + self._canvas.theme.spacing.tiny

    def _paint_entry(self, painter: QPainter, left: float, top: float, piece: Piece) -> None:
        canvas = self._canvas
        swatch = QRectF(left, top + (canvas.line - self._swatch) / 2, self._swatch, self._swatch)
        fill(painter, swatch, piece.segment, canvas.theme)
        painter.setPen(canvas.theme.color("text"))
        box = QRectF(left + self._text_offset, top, canvas.width, canvas.line)
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, piece.segment.text)
