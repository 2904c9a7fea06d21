"""Painting of the cells of a record table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPixmap, QStaticText, QTransform

from planner.gui.theme import Theme
from planner.gui.widgets.status_icons import StatusIcon
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.present.format import NO_FIGURES

_LIMIT: Final = 20_000
METER_HEIGHT: Final = 2
MARKED_WIDTH: Final = 3


class TextCache:
    """Cache of prepared texts by content and width for one font, because a table repaints the same texts."""

    def __init__(self) -> None:
        self.font = QFont()
        self._metrics = QFontMetrics(self.font)
        self._laid: dict[tuple[str, int], tuple[QStaticText, int]] = {}
        self.height = self._metrics.height()

    def use(self, font: QFont) -> None:
        """Use `font` for the cached texts; a change of the font clears the cache."""
        if font != self.font:
            self.font, self._metrics = QFont(font), QFontMetrics(font)
            self._laid.clear()
            self.height = self._metrics.height()

    def prepared_text(self, text: str, width: int) -> tuple[QStaticText, int]:
        """Return `text` prepared for painting, elided to `width` pixels, and its width in pixels."""
        laid = self._laid.get((text, width))
        if laid is None:
            if len(self._laid) > _LIMIT:
                self._laid.clear()
            laid = self._laid[text, width] = self._elided_static_text(text, width)
        return laid

    def _elided_static_text(self, text: str, width: int) -> tuple[QStaticText, int]:
        shown = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        static = QStaticText(shown)
        static.setTextFormat(Qt.TextFormat.PlainText)
        static.prepare(QTransform(), self.font)
        return static, self._metrics.horizontalAdvance(shown)


Marker = Callable[[Any], StatusIcon]


@dataclass(frozen=True, slots=True)
class CellColumn:
    """Position of a table column in the viewport, in pixels."""

    position: int
    left: int
    width: int


@dataclass(frozen=True, slots=True)
class CellRow:
    """Position of a table row in the viewport, and whether the row is selected and has the focus."""

    number: int
    top: int
    height: int
    selected: bool = False
    focused: bool = False


class CellPainter:
    """Paints the rows of a record table; `markers` return the icon and color of a cell, by column key."""

    def __init__(self, model: RecordTableModel[Any], theme: Theme, markers: Mapping[str, Marker]) -> None:
        self._model = model
        self._theme = theme
        self._markers = {model.column_of(key): marker for key, marker in markers.items()}
        self._cache, self._small = TextCache(), TextCache()
        self._small.use(theme.font("small"))
        self._colors: dict[str, QColor] = {}
        self._pixmaps: dict[StatusIcon, QPixmap] = {}
        theme.changed.connect(self._clear_color_cache)

    def paint(self, painter: QPainter, rows: Sequence[CellRow], columns: Sequence[CellColumn]) -> None:
        """Paint the cells of `rows` in `columns`."""
        self._cache.use(painter.font())
        self._paint_backgrounds(painter, rows, columns)
        texts = [self._model.texts(row.number) for row in rows]
        for column in columns:
            self._paint_texts(
                painter, [(row, row_texts[column.position]) for row, row_texts in zip(rows, texts, strict=True)], column
            )
            if self._model.columns[column.position].meter:
                self._paint_meters(painter, rows, column)

    def _paint_backgrounds(self, painter: QPainter, rows: Sequence[CellRow], columns: Sequence[CellColumn]) -> None:
        left = min(column.left for column in columns)
        width = max(column.left + column.width for column in columns) - left
        selected = [QRect(left, row.top, width, row.height) for row in rows if row.selected]
        self._fill_rects(painter, selected, "selection")
        self._fill_rects(painter, [QRect(left, row.top + row.height - 1, width, 1) for row in rows], "border")
        for row in rows:
            if row.focused:
                edges = [QRect(left, top, width, 1) for top in (row.top, row.top + row.height - 1)]
                self._fill_rects(painter, edges, "focus")
            if columns[0].position == 0 and self._model.is_marked(row.number):
                self._fill_rects(painter, [QRect(left, row.top, MARKED_WIDTH, row.height - 1)], "accent")

    def _fill_rects(self, painter: QPainter, places: Sequence[QRect], role: str) -> None:
        """Fill all rectangles in a single call, which is faster than separate calls."""
        if places:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._cached_color(role))
            painter.drawRects(places)

    def _paint_texts(self, painter: QPainter, cells: Sequence[tuple[CellRow, str]], column: CellColumn) -> None:
        marker = self._markers.get(column.position)
        if marker:
            for row, text in cells:
                self._paint_marked_text(painter, row, column, text, marker(self._model.record(row.number)))
            return
        known = [(row, text) for row, text in cells if text not in NO_FIGURES]
        painter.setPen(self._cached_color("text"))
        self._paint_unmarked_texts(painter, known, column, self._cache)
        if len(known) < len(cells):
            painter.setPen(self._cached_color("muted"))
            painter.setFont(self._small.font)
            self._paint_unmarked_texts(painter, [cell for cell in cells if cell[1] in NO_FIGURES], column, self._small)
            painter.setFont(self._cache.font)

    def _paint_unmarked_texts(
        self, painter: QPainter, cells: Sequence[tuple[CellRow, str]], column: CellColumn, cache: TextCache
    ) -> None:
        padding = self._theme.spacing.small
        left, room = column.left + padding, column.width - 2 * padding
        on_right = self._model.columns[column.position].align == "right"
        if on_right and left + room > painter.device().width():
            return  # the first digits of a number that the edge of the table cuts look like another number
        for row, text in cells:
            static, width = cache.prepared_text(text, room)
            top = row.top + (row.height - cache.height) // 2
            painter.drawStaticText(left + room - width if on_right else left, top, static)

    def _paint_marked_text(
        self, painter: QPainter, row: CellRow, column: CellColumn, text: str, mark: StatusIcon
    ) -> None:
        side, padding = self._theme.icon_side, self._theme.spacing.small
        left = column.left + padding
        painter.drawPixmap(left, row.top + (row.height - side) // 2, self._icon_pixmap(painter, mark))
        left += side + self._theme.spacing.tiny
        static, _ = self._cache.prepared_text(text, column.left + column.width - padding - left)
        painter.setPen(self._cached_color(mark.role))
        painter.drawStaticText(left, row.top + (row.height - self._cache.height) // 2, static)

    def _paint_meters(self, painter: QPainter, rows: Sequence[CellRow], column: CellColumn) -> None:
        padding = self._theme.spacing.small
        left, room = column.left + padding, column.width - 2 * padding
        shares = self._model.shares([row.number for row in rows], column.position)
        meters = [
            QRect(left, row.top + row.height - METER_HEIGHT - 3, max(1, round(share * room)), METER_HEIGHT)
            for row, share in zip(rows, shares, strict=True)
            if share is not None
        ]
        self._fill_rects(painter, meters, "accent")

    def _clear_color_cache(self) -> None:
        self._colors.clear()
        self._pixmaps.clear()

    def _cached_color(self, role: str) -> QColor:
        if role not in self._colors:
            self._colors[role] = self._theme.color(role)
        return self._colors[role]

    def _icon_pixmap(self, painter: QPainter, mark: StatusIcon) -> QPixmap:
        if mark not in self._pixmaps:
            ratio = painter.device().devicePixelRatio()
            self._pixmaps[mark] = self._theme.pixmap(mark.icon, mark.role, ratio)
        return self._pixmaps[mark]
