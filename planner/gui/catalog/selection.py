"""Rows of a table that are selected by name."""

from collections.abc import Collection

from PySide6.QtCore import QItemSelection, QItemSelectionModel

from planner.gui.widgets.tables.record_table import RecordTable

_SELECT = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
_MOVE = QItemSelectionModel.SelectionFlag.NoUpdate


def select_rows(table: RecordTable, names: Collection[str]) -> None:
    """Select the rows of `names`, the first of them under the keyboard."""
    model, selection = table.records(), QItemSelection()
    rows = sorted(row for name in names if (row := model.row_of(name)) is not None)
    for row in rows:
        selection.select(model.index(row, 0), model.index(row, model.columnCount() - 1))
    if rows:
        table.selectionModel().setCurrentIndex(model.index(rows[0], 0), _MOVE)
    table.selectionModel().select(selection, _SELECT)
