"""A table view that paints through a `CellPainter`, its header, and its pinned first column."""

from typing import Any, Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.tables.cells import CellColumn, CellPainter, CellRow, TextCache
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.terms import draw_underline, term_of

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
