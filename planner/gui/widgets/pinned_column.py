"""The first column of a record table, which stays in place while the others scroll sideways beneath it."""

from typing import Any

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent

from planner.gui.theme import Theme
from planner.gui.widgets.cell_view import CellView
from planner.gui.widgets.cells import CellColumn, CellPainter
from planner.gui.widgets.record_model import RecordTableModel


class PinnedColumn(CellView):
    """A view of column 0 laid over `table`, with which it shares selection, sorting and vertical scrolling.

    The keyboard stays with `table`: this view never takes the focus, and screen readers need not see it.
    """

    def __init__(self, table: CellView, model: RecordTableModel[Any], theme: Theme, cells: CellPainter) -> None:
        super().__init__(model, theme, cells, table)
        self._table = table
        self.setSelectionModel(table.selectionModel())
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for position in range(1, len(model.columns)):
            self.setColumnHidden(position, True)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)
        # A view lays itself out late; until then it would refuse positions that the other has already taken.
        table.verticalScrollBar().rangeChanged.connect(self.verticalScrollBar().setRange)
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)

    def place(self) -> None:
        """Cover the table's own first column, header included."""
        table, header = self._table, self._table.horizontalHeader()
        self.horizontalHeader().setFixedHeight(header.height())
        self.setColumnWidth(0, header.sectionSize(0))
        width = min(header.sectionSize(0), table.viewport().width())
        self.setGeometry(QRect(table.viewport().x(), header.y(), width, header.height() + table.viewport().height()))

    def has_keyboard(self) -> bool:
        """Return whether the table has the keyboard: both show the same current row."""
        return self._table.has_keyboard()

    def columns_within(self, area: QRect) -> list[CellColumn]:
        """Return the one column."""
        return [CellColumn(0, 0, self.viewport().width())]

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells, and an edge once something has gone beneath."""
        super().paintEvent(event)
        if self._table.horizontalScrollBar().value() > 0:
            painter = QPainter(self.viewport())
            painter.setPen(self.palette().mid().color())
            painter.drawLine(self.viewport().width() - 1, 0, self.viewport().width() - 1, self.viewport().height())
