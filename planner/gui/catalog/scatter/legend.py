"""What the colours and shapes of a scatter plot stand for."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap, QPolygonF
from PySide6.QtWidgets import QLabel, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.flow_layout import FlowLayout
from planner.gui.widgets.label import make_label

_SIDE: Final = 12
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
_SYMBOLS: Final = ("o", "s", "t", "d", "+", "star", "h", "t1")


class Legend(QWidget):
    """A swatch and a name for each class, in as many lines as it takes."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: list[QWidget] = []
        self._classes: tuple[object, ...] = ()
        self._flow = FlowLayout(theme.spacing.medium)
        self.setLayout(self._flow)
        theme.changed.connect(self._tint)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that are shown."""
        return tuple(part.text() for part in self._shown if isinstance(part, QLabel) and part.text())

    def show_classes(
        self, names: Sequence[str], color: Callable[[int], QColor], ordered: bool, present: Collection[int]
    ) -> None:
        """Show the classes that are `present`, by their place in `names`."""
        wanted = tuple((place, name) for place, name in enumerate(names) if name and place in present)
        if (wanted, ordered) == self._classes:
            return
        self._classes, self._color, self._ordered = (wanted, ordered), color, ordered
        for old in self._shown:
            self._flow.removeWidget(old)
            old.setParent(None)
            old.deleteLater()
        self._shown = []
        for place, name in wanted:
            swatch = QLabel()
            swatch.setProperty("place", place)
            entry = make_label(name, "muted", self._theme.font("small"))
            for part in (swatch, entry):
                self._flow.addWidget(part)
                self._shown.append(part)
        self._tint()

    def _tint(self) -> None:
        for part in self._shown:
            place = part.property("place")
            if isinstance(part, QLabel) and place is not None:
                symbol = "o" if self._ordered else _SYMBOLS[place]
                part.setPixmap(swatch_of(symbol, self._color(place)).pixmap(_SIDE, _SIDE))


def swatch_of(symbol: str, color: QColor) -> QIcon:
    """Return a symbol as a small picture."""
    pixmap = QPixmap(_SIDE, _SIDE)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    corners = _CORNERS.get(symbol)
    if corners is None:
        painter.drawEllipse(QRectF(1, 1, _SIDE - 2, _SIDE - 2))
    else:
        painter.drawPolygon(QPolygonF([QPointF(1 + x * (_SIDE - 2), 1 + y * (_SIDE - 2)) for x, y in corners]))
    painter.end()
    return QIcon(pixmap)
