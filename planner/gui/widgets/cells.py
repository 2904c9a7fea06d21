"""The cells of a record table, painted row by row.

Qt's own painting asks the model for nine roles of each cell through Python: at 300 cells in view that alone takes
longer than a keystroke should. Here the texts of a row are read once and laid out once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPixmap, QStaticText, QTransform

from planner.gui.theme import Theme
from planner.gui.widgets.record_model import RecordTableModel
from planner.present.format import NOT_PUBLISHED, UNKNOWN

METER_HEIGHT: Final = 2
MARKED_WIDTH: Final = 3
_CACHE_LIMIT: Final = 20_000
_UNKNOWN_TEXTS: Final = frozenset((UNKNOWN, NOT_PUBLISHED))


@dataclass(frozen=True, slots=True)
class Mark:
    """How a cell is set off: an icon before its text, and the role of its colour."""

    icon: str
    role: str


Marker = Callable[[Any], Mark]


@dataclass(frozen=True, slots=True)
class CellColumn:
    """Where a column lies in the viewport."""

    position: int
    left: int
    width: int


@dataclass(frozen=True, slots=True)
class CellRow:
    """Where a row lies in the viewport, and whether it is selected and has the keyboard."""

    number: int
    top: int
    height: int
    selected: bool = False
    focused: bool = False


class TextCache:
    """Texts laid out once for a font and a width; a table shows the same few thousand again and again."""

    def __init__(self) -> None:
        self._font = QFont()
        self._metrics = QFontMetrics(self._font)
        self._laid: dict[tuple[str, int], tuple[QStaticText, int]] = {}
        self.height = self._metrics.height()

    def use(self, font: QFont) -> None:
        """Lay texts out in `font` from now on."""
        if font != self._font:
            self._font, self._metrics = QFont(font), QFontMetrics(font)
            self._laid.clear()
            self.height = self._metrics.height()

    def lay(self, text: str, width: int) -> tuple[QStaticText, int]:
        """Return `text` and its width, shortened with an ellipsis where it would be wider than `width`."""
        found = self._laid.get((text, width))
        if found is None:
            if len(self._laid) > _CACHE_LIMIT:
                self._laid.clear()
            found = self._laid[text, width] = self._make(text, width)
        return found

    def _make(self, text: str, width: int) -> tuple[QStaticText, int]:
        shown = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        static = QStaticText(shown)
        static.setTextFormat(Qt.TextFormat.PlainText)
        static.prepare(QTransform(), self._font)
        return static, self._metrics.horizontalAdvance(shown)


class CellPainter:
    """Paints rows of a `RecordTableModel` in the colours of the theme.

    `markers` says, by column, which cells carry an icon and a colour.
    """

    def __init__(self, model: RecordTableModel[Any], theme: Theme, markers: Mapping[str, Marker]) -> None:
        self._model = model
        self._theme = theme
        self._markers = {model.column_of(key): marker for key, marker in markers.items()}
        self._cache = TextCache()
        self._colors: dict[str, QColor] = {}
        self._pixmaps: dict[Mark, QPixmap] = {}
        theme.changed.connect(self._forget_colors)

    def paint(self, painter: QPainter, rows: Sequence[CellRow], columns: Sequence[CellColumn]) -> None:
        """Paint the cells where `rows` and `columns` meet."""
        self._cache.use(painter.font())
        for row in rows:
            self._paint_ground(painter, row, columns)
        for column in columns:
            self._paint_texts(painter, rows, column)
            if self._model.columns[column.position].meter:
                self._paint_meters(painter, rows, column)

    def _paint_ground(self, painter: QPainter, row: CellRow, columns: Sequence[CellColumn]) -> None:
        left = min(column.left for column in columns)
        width = max(column.left + column.width for column in columns) - left
        if row.selected:
            painter.fillRect(left, row.top, width, row.height, self._color("selection"))
        edge = self._color("focus" if row.focused else "border")
        painter.fillRect(left, row.top + row.height - 1, width, 1, edge)
        if row.focused:
            painter.fillRect(left, row.top, width, 1, edge)
        if columns[0].position == 0 and self._model.is_marked(row.number):
            painter.fillRect(left, row.top, MARKED_WIDTH, row.height - 1, self._color("accent"))

    def _paint_texts(self, painter: QPainter, rows: Sequence[CellRow], column: CellColumn) -> None:
        padding, position = self._theme.spacing.small, column.position
        left, room = column.left + padding, column.width - 2 * padding
        marker = self._markers.get(position)
        right = self._model.columns[position].align == "right"
        down = (rows[0].height - self._cache.height) // 2 if rows else 0
        pens = {role: self._color(role) for role in ("text", "muted")}
        for row in rows:
            text = self._model.texts(row.number)[position]
            if marker:
                self._paint_marked(painter, row, column, text, marker(self._model.record(row.number)))
                continue
            static, width = self._cache.lay(text, room)
            painter.setPen(pens["muted" if text in _UNKNOWN_TEXTS else "text"])
            painter.drawStaticText(left + room - width if right else left, row.top + down, static)

    def _paint_marked(self, painter: QPainter, row: CellRow, column: CellColumn, text: str, mark: Mark) -> None:
        side, padding = self._theme.icon_side, self._theme.spacing.small
        left = column.left + padding
        painter.drawPixmap(left, row.top + (row.height - side) // 2, self._pixmap(painter, mark))
        left += side + self._theme.spacing.tiny
        static, _ = self._cache.lay(text, column.left + column.width - padding - left)
        painter.setPen(self._color(mark.role))
        painter.drawStaticText(left, row.top + (row.height - self._cache.height) // 2, static)

    def _paint_meters(self, painter: QPainter, rows: Sequence[CellRow], column: CellColumn) -> None:
        padding, color = self._theme.spacing.small, self._color("accent")
        left, room = column.left + padding, column.width - 2 * padding
        for row in rows:
            share = self._model.share(row.number, column.position)
            if share is not None:
                top = row.top + row.height - METER_HEIGHT - 3
                painter.fillRect(left, top, max(1, round(share * room)), METER_HEIGHT, color)

    def _forget_colors(self) -> None:
        self._colors.clear()
        self._pixmaps.clear()

    def _color(self, role: str) -> QColor:
        found = self._colors.get(role)
        if found is None:
            found = self._colors[role] = self._theme.color(role)
        return found

    def _pixmap(self, painter: QPainter, mark: Mark) -> QPixmap:
        found = self._pixmaps.get(mark)
        if found is None:
            side, ratio = self._theme.icon_side, painter.device().devicePixelRatio()
            found = self._pixmaps[mark] = self._theme.icon(mark.icon, mark.role).pixmap(QSize(side, side), ratio)
        return found
