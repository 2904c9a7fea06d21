"""Legend of the colors, shapes and sizes of a scatter plot."""

from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.gui.plot.legend import line_positions
from planner.gui.theme import Theme

_SIDE: Final = 12
_TALLEST: Final = 16
_CORNERS: Final = {
    "t": ((0, 0), (1, 0), (0.5, 1)),
    "t1": ((0, 1), (1, 1), (0.5, 0)),
    "d": ((0.5, 0), (0.9, 0.5), (0.5, 1), (0.1, 0.5)),
    "+": (
        *((0.35, 0), (0.65, 0), (0.65, 0.35), (1, 0.35), (1, 0.65), (0.65, 0.65)),
        *((0.65, 1), (0.35, 1), (0.35, 0.65), (0, 0.65), (0, 0.35), (0.35, 0.35)),
    ),
    "star": (
        *((0.5, 0), (0.62, 0.36), (1, 0.36), (0.69, 0.59), (0.81, 0.95)),
        *((0.5, 0.73), (0.19, 0.95), (0.31, 0.59), (0, 0.36), (0.38, 0.36)),
    ),
    "h": ((0.5, 0), (0.93, 0.25), (0.93, 0.75), (0.5, 1), (0.07, 0.75), (0.07, 0.25)),
    "s": ((0.05, 0.05), (0.95, 0.05), (0.95, 0.95), (0.05, 0.95)),
}
"""Corners of pyqtgraph's symbols, copied so that the legend need not import pyqtgraph; a circle has no corners."""


class _LegendEntry(NamedTuple):
    """Legend text after a swatch of `side` pixels: a class symbol, or a gray circle for a size."""

    words: str
    side: float
    symbol: str = "o"
    class_index: int | None = None


class SymbolLegend(QWidget):
    """Legend of a scatter plot: a symbol and name per class, then a small and a large point; it cannot be clicked."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: tuple[_LegendEntry, ...] = ()
        self._color: Callable[[int], QColor] = lambda _: QColor()
        self._metrics = QFontMetrics(theme.font("small"))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the texts of the legend."""
        return tuple(entry.words for entry in self._entries)

    def show_classes(
        self,
        classes: Sequence[tuple[str, str]],
        present: Collection[int],
        color: Callable[[int], QColor],
        title: str,
        sizes: Sequence[tuple[float, str]],
    ) -> None:
        """Show the classes at the indexes in `present`, each as its symbol and name, and what the sizes mean.

        `sizes` are diameters in pixels with the value that each stands for, under `title`.
        """
        self._color = color
        class_entries = [
            _LegendEntry(name, _SIDE, symbol, place)
            for place, (name, symbol) in enumerate(classes)
            if name and place in present
        ]
        heading = [_LegendEntry(f"{title}:", 0)] if sizes else []
        sized = [_LegendEntry(words, size) for size, words in sizes]
        entries = (*class_entries, *heading, *sized)
        if entries != self._entries:
            height = self.heightForWidth(self.width())
            self._entries = entries
            parts = (", ".join(entry.words for entry in part) for part in (class_entries, sized))
            spoken = [part for part in (next(parts), f"{title}: {next(parts)}" if sizes else "") if part]
            self.setAccessibleName(f"Legend: {'; '.join(spoken)}")
            # A new layout of the panel takes as long as drawing a thousand points.
            if self.heightForWidth(self.width()) != height:
                self.updateGeometry()
        self.update()

    def heightForWidth(self, width: int) -> int:
        """Return the height of the wrapped lines."""
        return max((place.bottom() + 1 for place in self._entry_rects(width)), default=0)

    def sizeHint(self) -> QSize:
        """Return the height needed at the current width."""
        return QSize(0, self.heightForWidth(self.width()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the swatches and texts."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("small"))
        for entry, place in zip(self._entries, self._entry_rects(self.width()), strict=True):
            color = self._theme.color("muted") if entry.class_index is None else self._color(entry.class_index)
            if entry.side:
                top = place.top() + (place.height() - entry.side) / 2
                edge = 0 if entry.class_index is None else 1
                box = QRectF(place.left(), top, entry.side, entry.side).adjusted(edge, edge, -edge, -edge)
                _paint_symbol(painter, entry.symbol, color, box)
            painter.setPen(self._theme.color("muted"))
            words = place.adjusted(self._swatch_width(entry), 0, 0, 0)
            painter.drawText(words, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), entry.words)

    def _swatch_width(self, entry: _LegendEntry) -> int:
        return ceil(entry.side) + self._theme.spacing.tiny if entry.side else 0

    def _entry_rects(self, width: int) -> list[QRect]:
        is_sized = any(entry.class_index is None for entry in self._entries)
        height = max(_TALLEST if is_sized else _SIDE, self._metrics.height()) + 2
        widths = [
            self._swatch_width(entry) + self._metrics.horizontalAdvance(entry.words) + 2 for entry in self._entries
        ]
        places = line_positions(widths, width, self._theme.spacing.medium)
        return [
            QRect(round(left), line * height, wide, height) for (line, left), wide in zip(places, widths, strict=True)
        ]


def _paint_symbol(painter: QPainter, symbol: str, color: QColor, box: QRectF) -> None:
    """Paint a plot symbol into `box`."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    corners = _CORNERS.get(symbol)
    if corners is None:
        painter.drawEllipse(box)
        return
    places = [QPointF(box.left() + x * box.width(), box.top() + y * box.height()) for x, y in corners]
    painter.drawPolygon(QPolygonF(places))
