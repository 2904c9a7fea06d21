"""A table view that paints its cells by itself, its header, and its pinned first column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPixmap, QStaticText, QTransform
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.labels import StatusIcon
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.terms import draw_underline, term_of
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


_ARROWS: Final = {Qt.SortOrder.AscendingOrder: "chevron-up", Qt.SortOrder.DescendingOrder: "chevron-down"}


class RecordHeader(QHeaderView):
    """Clickable table header with the units in a second line, if there are any.

    The sort arrow stands beside the unit, where it takes no space from the title, or else beside the title.
    """

    def __init__(self, theme: Theme, model: RecordTableModel[Any], parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._model = model
        self._has_units = any(column.unit for column in model.columns)
        self._titles, self._units = TextCache(), TextCache()
        self._small = theme.font("small")
        self.setSectionsClickable(True)
        self.setSortIndicatorShown(True)
        self.setHighlightSections(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def sizeHint(self) -> QSize:
        """Return the header's size with the height of its lines and padding."""
        height = self.fontMetrics().height() + (QFontMetrics(self._small).height() if self._has_units else 0)
        return QSize(self.length(), height + 2 * self._theme.spacing.tiny)

    def paintSection(self, painter: QPainter, rect: QRect, position: int) -> None:
        """Paint a column's title, its unit below, and the arrow if it is the sort column."""
        column, sorted_by = self._model.columns[position], position == self.sortIndicatorSection()
        padding, tiny = self._theme.spacing.small, self._theme.spacing.tiny
        painter.fillRect(rect, self._theme.color("surface"))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, self._theme.color("border"))
        room = rect.adjusted(padding, tiny, -padding, -tiny)
        on_right = column.align == "right"
        painter.setPen(self._theme.color("text" if sorted_by else "muted"))
        if sorted_by and not self._has_units:
            side = self._theme.icon_side
            arrow = QRect(room.right() + 1 - side if on_right else room.left(), room.top(), side, self._titles.height)
            self._paint_arrow(painter, arrow)
            room.adjust(0 if on_right else side, 0, -side if on_right else 0, 0)
        title_width = _paint_line(painter, self._titles, self.font(), column.title, room, on_right)
        room.setTop(room.top() + self._titles.height)
        if term_of(column.header) is not None:
            draw_underline(
                painter, room.right() + 1 - title_width if on_right else room.left(), title_width, room.top() - 1
            )
        width = _paint_line(painter, self._units, self._small, column.unit, room, on_right)
        if sorted_by and self._has_units:
            side = self._theme.icon_side
            left = room.left() + (room.width() - width - side if on_right else width)
            self._paint_arrow(painter, QRect(left, room.top(), side, self._units.height))

    def _paint_arrow(self, painter: QPainter, place: QRect) -> None:
        """Paint the sort arrow in the middle of a line."""
        ratio = painter.device().devicePixelRatio()
        arrow = self._theme.pixmap(_ARROWS[self.sortIndicatorOrder()], "text", ratio)
        painter.drawPixmap(place.left(), place.top() + (place.height() - self._theme.icon_side) // 2, arrow)


def _paint_line(painter: QPainter, cache: TextCache, font: QFont, text: str, room: QRect, on_right: bool) -> int:
    """Paint a line of text at the top of `room`, and return its width in pixels."""
    cache.use(font)
    painter.setFont(font)
    static, width = cache.prepared_text(text, room.width())
    painter.drawStaticText(room.left() + room.width() - width if on_right else room.left(), room.top(), static)
    return width


class CellView(QTableView):
    """Table view with rows of equal height, selected as a whole and painted without a model call per data role."""

    def __init__(
        self, model: RecordTableModel[Any], theme: Theme, cells: CellPainter, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._cells, self._theme = cells, theme
        self.setHorizontalHeader(RecordHeader(theme, model, self))
        self.setModel(model)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)  # or Tab would go through every cell before it leaves the table
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        # With an opaque background Qt need not paint the widgets below, each through the style sheet.
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 12)
        self.verticalHeader().setMinimumSectionSize(1)

    def records(self) -> RecordTableModel[Any]:
        """Return the table's model, which is a `RecordTableModel`."""
        model = self.model()
        if not isinstance(model, RecordTableModel):
            raise TypeError("a CellView shows a RecordTableModel")
        return model

    def has_keyboard(self) -> bool:
        """Return whether the current row is painted as focused."""
        return self.hasFocus()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells within the exposed rectangle."""
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), self._theme.color("surface"))
        columns = self.columns_within(event.rect())
        if columns:
            painter.setFont(self.font())
            self._cells.paint(painter, self._rows_within(event.rect()), columns)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Scroll the table; repaint all cells after a horizontal scroll, which may cut off another column."""
        super().scrollContentsBy(dx, dy)
        if dx:
            self.viewport().update()

    def columns_within(self, area: QRect) -> list[CellColumn]:
        """Return the visible columns that meet `area`, from left to right."""
        header = self.horizontalHeader()
        columns = []
        for visual in range(header.count()):
            position = header.logicalIndex(visual)
            if header.isSectionHidden(position):
                continue
            column = CellColumn(position, header.sectionViewportPosition(position), header.sectionSize(position))
            if column.left <= area.right() and column.left + column.width > area.left():
                columns.append(column)
        return columns

    def _rows_within(self, area: QRect) -> list[CellRow]:
        parts = self.selectionModel().selection().toList()
        selected = {row for part in parts for row in range(part.top(), part.bottom() + 1)}
        focused = self.currentIndex().row() if self.has_keyboard() else -1
        first, last = self.rowAt(area.top()), self.rowAt(area.bottom())
        if first < 0:
            return []
        rows = range(first, (last if last >= 0 else self.model().rowCount() - 1) + 1)
        top, height = self.rowViewportPosition(first), self.verticalHeader().defaultSectionSize()
        return [CellRow(row, top + (row - first) * height, height, row in selected, row == focused) for row in rows]


class PinnedColumn(CellView):
    """View of column 0 on top of `table`; both share selection, sorting and vertical scrolling.

    The focus stays with `table`; screen readers can ignore this view.
    """

    def __init__(self, table: CellView, model: RecordTableModel[Any], theme: Theme, cells: CellPainter) -> None:
        super().__init__(model, theme, cells, table)
        self._table = table
        self.setSelectionModel(table.selectionModel())
        self.setAutoScroll(False)  # the table decides whether to scroll to its current row
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for position in range(1, len(model.columns)):
            self.setColumnHidden(position, True)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)
        # A view is laid out late; until then it would reject positions that the table has already scrolled to.
        table.verticalScrollBar().rangeChanged.connect(self.verticalScrollBar().setRange)
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)

    def place(self) -> None:
        """Move the pinned column over the table's first column, including its header."""
        table, header = self._table, self._table.horizontalHeader()
        self.horizontalHeader().setFixedHeight(header.height())
        self.setColumnWidth(0, header.sectionSize(0))
        width = min(header.sectionSize(0), table.viewport().width())
        self.setGeometry(QRect(table.viewport().x(), header.y(), width, header.height() + table.viewport().height()))

    def has_keyboard(self) -> bool:
        """Return whether the table below has the focus, since the pinned column shows the same current row."""
        return self._table.has_keyboard()

    def columns_within(self, area: QRect) -> list[CellColumn]:
        """Return the position of the pinned column."""
        return [CellColumn(0, 0, self.viewport().width())]

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells, and an edge while the table is scrolled sideways."""
        super().paintEvent(event)
        if self._table.horizontalScrollBar().value() > 0:
            painter = QPainter(self.viewport())
            painter.setPen(self.palette().mid().color())
            painter.drawLine(self.viewport().width() - 1, 0, self.viewport().width() - 1, self.viewport().height())
