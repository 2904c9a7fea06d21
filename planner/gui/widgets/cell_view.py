"""A table view that paints through a `CellPainter`; the base of the record table and of its pinned column."""

from typing import Any

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QTableView, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.cells import CellColumn, CellPainter, CellRow
from planner.gui.widgets.record_header import RecordHeader
from planner.gui.widgets.record_model import RecordTableModel


class CellView(QTableView):
    """Rows of one height, selected as a whole, painted without asking the model role by role."""

    def __init__(
        self, model: RecordTableModel[Any], theme: Theme, cells: CellPainter, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._cells, self._theme = cells, theme
        self.setHorizontalHeader(RecordHeader(theme, model.columns, self))
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
        # Filling its own ground spares the view those of everything beneath, each drawn through the style sheet.
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 12)
        self.verticalHeader().setMinimumSectionSize(1)

    def records(self) -> RecordTableModel[Any]:
        """Return the model, as what it is."""
        model = self.model()
        if not isinstance(model, RecordTableModel):
            raise TypeError("a CellView shows a RecordTableModel")
        return model

    def has_keyboard(self) -> bool:
        """Return whether the current row should look focused."""
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
        """Scroll, and paint everything again where another column is cut by the edge than before."""
        super().scrollContentsBy(dx, dy)
        if dx:
            self.viewport().update()

    def columns_within(self, area: QRect) -> list[CellColumn]:
        """Return the visible columns that meet `area`, from left to right."""
        header = self.horizontalHeader()
        found = []
        for visual in range(header.count()):
            position = header.logicalIndex(visual)
            if header.isSectionHidden(position):
                continue
            column = CellColumn(position, header.sectionViewportPosition(position), header.sectionSize(position))
            if column.left <= area.right() and column.left + column.width > area.left():
                found.append(column)
        return found

    def _rows_within(self, area: QRect) -> list[CellRow]:
        selected = {index.row() for index in self.selectionModel().selectedRows()}
        focused = self.currentIndex().row() if self.has_keyboard() else -1
        first, last = self.rowAt(area.top()), self.rowAt(area.bottom())
        if first < 0:
            return []
        rows = range(first, (last if last >= 0 else self.model().rowCount() - 1) + 1)
        height = self.verticalHeader().defaultSectionSize()
        return [CellRow(row, self.rowViewportPosition(row), height, row in selected, row == focused) for row in rows]
