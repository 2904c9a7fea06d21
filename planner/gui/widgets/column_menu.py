"""The menu of a table's header: sort, choose columns, restore them. It is how the keyboard does what a header does."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

if TYPE_CHECKING:
    from planner.gui.widgets.record_table import RecordTable


def fill_column_menu(menu: QMenu, table: "RecordTable") -> None:
    """Fill `menu` with what can be done to the columns of `table`."""
    _fill_sort_menu(menu.addMenu("&Sort by"), table)
    menu.addSeparator()
    shown = {column.key for column in table.visible_columns}
    for column in table.records().columns[1:]:
        action = _check(menu, column.title, column.key in shown)
        action.toggled.connect(partial(table.show_column, column.key))
    menu.addSeparator()
    menu.addAction("&Restore the usual columns").triggered.connect(table.restore_usual)


def _fill_sort_menu(menu: QMenu, table: "RecordTable") -> None:
    model = table.records()
    keys = QActionGroup(menu)
    for column in table.visible_columns:
        action = _check(menu, column.title, column.key == model.sort_key)
        keys.addAction(action)
        action.triggered.connect(partial(table.sort_as_clicked, column.key))
    menu.addSeparator()
    downwards = _check(menu, "&Descending", model.descending)
    downwards.setEnabled(model.sort_key is not None)
    downwards.toggled.connect(partial(_turn, table))


def _check(menu: QMenu, text: str, checked: bool) -> QAction:
    action = menu.addAction(text)
    action.setCheckable(True)
    action.setChecked(checked)
    return action


def _turn(table: "RecordTable", descending: bool) -> None:
    table.sort_by(table.records().sort_key, descending)
