"""What the colours, shapes and sizes of a scatter plot stand for."""

from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

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
"""The shapes of pyqtgraph's symbols, so that the legend need not import it; a circle has no corners."""


class _Entry(NamedTuple):
    """Words after a swatch as wide as `side`: that of the class at `place`, or a grey circle where there is none."""

    words: str
    side: float
    place: int | None = None


class Legend(QWidget):
    """A swatch and a name for each class, then a small and a large point, painted as one, in as many lines as it takes.

    It only says: nothing of it can be chosen.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._classes: tuple[_Entry, ...] = ()
        self._title = ""
        self._sizes: tuple[_Entry, ...] = ()
        self._color: Callable[[int], QColor] = lambda _: QColor()
        self._ordered = False
        self._metrics = QFontMetrics(theme.font("small"))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that are shown."""
        return tuple(entry.words for entry in self._entries)

    def show_classes(
        self, names: Sequence[str], color: Callable[[int], QColor], ordered: bool, present: Collection[int]
    ) -> None:
        """Show the classes that are `present`, by their place in `names`."""
        self._color, self._ordered = color, ordered
        shown = ((place, name) for place, name in enumerate(names) if name and place in present)
        self._show(tuple(_Entry(name, _SIDE, place) for place, name in shown), self._sizes)

    def show_sizes(self, title: str, sizes: Sequence[tuple[float, str]]) -> None:
        """Show what points of some `sizes` in pixels stand for, under a title; nothing without any."""
        self._title = f"{title}:" if sizes else ""
        self._show(self._classes, tuple(_Entry(name, size) for size, name in sizes))

    @property
    def _entries(self) -> tuple[_Entry, ...]:
        title = (_Entry(self._title, 0),) if self._title else ()
        return (*self._classes, *title, *self._sizes)

    def _show(self, classes: tuple[_Entry, ...], sizes: tuple[_Entry, ...]) -> None:
        if (classes, sizes) != (self._classes, self._sizes):
            height = self.heightForWidth(self.width())
            self._classes, self._sizes = classes, sizes
            self.setAccessibleName(f"Legend: {self._spoken()}")
            # To lay the panel out again takes as long as to draw a thousand points.
            if self.heightForWidth(self.width()) != height:
                self.updateGeometry()
        self.update()

    def _spoken(self) -> str:
        classes, sizes = (", ".join(entry.words for entry in entries) for entries in (self._classes, self._sizes))
        return "; ".join(filter(None, (classes, f"{self._title} {sizes}" if sizes else "")))

    def _symbol(self, place: int) -> str:
        # Imported here: numbers in arrays are loaded with the first plot, not with its panel.
        from planner.gui.catalog.scatter.data import symbol_of

        return symbol_of(place, self._ordered)

    def heightForWidth(self, width: int) -> int:
        """Return the height of as many lines as it takes."""
        return max((place.bottom() + 1 for place in self._places(width)), default=0)

    def sizeHint(self) -> QSize:
        """Return the height that the present width takes."""
        return QSize(0, self.heightForWidth(self.width()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint swatches and names."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("small"))
        for entry, place in zip(self._entries, self._places(self.width()), strict=True):
            self._paint_swatch(painter, entry, place)
            painter.setPen(self._theme.color("muted"))
            words = place.adjusted(self._swatch_width(entry), 0, 0, 0)
            painter.drawText(words, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), entry.words)

    def _paint_swatch(self, painter: QPainter, entry: _Entry, place: QRect) -> None:
        top = place.top() + (place.height() - entry.side) / 2
        if entry.place is not None:
            paint_symbol(painter, self._symbol(entry.place), self._color(entry.place), place.left(), top)
        elif entry.side:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("muted"))
            painter.drawEllipse(QRectF(place.left(), top, entry.side, entry.side))

    def _swatch_width(self, entry: _Entry) -> int:
        return ceil(entry.side) + self._theme.spacing.tiny if entry.side else 0

    def _places(self, width: int) -> list[QRect]:
        space = self._theme.spacing
        height = max(_TALLEST if self._sizes else _SIDE, self._metrics.height()) + 2
        places, left, top = [], 0, 0
        for entry in self._entries:
            wide = self._swatch_width(entry) + self._metrics.horizontalAdvance(entry.words) + 2
            if left and left + wide > width:
                left, top = 0, top + height
            places.append(QRect(left, top, wide, height))
            left += wide + space.medium
        return places


def paint_symbol(painter: QPainter, symbol: str, color: QColor, left: float, top: float) -> None:
    """Paint a symbol of the plot, small."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    corners = _CORNERS.get(symbol)
    if corners is None:
        painter.drawEllipse(QRectF(left + 1, top + 1, _SIDE - 2, _SIDE - 2))
    else:
        places = [QPointF(left + 1 + x * (_SIDE - 2), top + 1 + y * (_SIDE - 2)) for x, y in corners]
        painter.drawPolygon(QPolygonF(places))
