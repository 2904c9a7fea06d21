"""Popover that chooses the columns of a catalog table: searchable, in groups, with sets of columns and sorting."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QListWidget, QListWidgetItem, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import FlowLayout, in_column, in_row
from planner.gui.widgets.popover import Popover
from planner.gui.widgets.tables.record_table import RecordTable

_KEY: Final = Qt.ItemDataRole.UserRole
_WIDTH: Final = 320
_HEIGHT: Final = 520
_NO_SETS: Final[Mapping[str, Sequence[str]]] = {}


class ColumnPopover(Popover):
    """Popover with a check mark for each column of `table` but the first, under the titles of `groups`.

    `sets` are named sets of columns that replace the shown ones.
    """

    def __init__(
        self,
        table: RecordTable,
        theme: Theme,
        groups: Mapping[str, Sequence[str]],
        sets: Mapping[str, Sequence[str]] = _NO_SETS,
    ) -> None:
        self._table, self._theme = table, theme
        self._search = QLineEdit(placeholderText="Search columns", clearButtonEnabled=True)
        self._search.setAccessibleName("Search columns")
        self._list = QListWidget()
        self._list.setAccessibleName("Columns")
        self._sort = ChoiceField(theme, [(column.key, column.title) for column in table.records().columns])
        self._sort.set_name("Sort by")
        self._descending = QCheckBox("&Descending")
        reset = link_button("&Reset", "Restore the default columns, their widths and the default order")
        content = QWidget()
        content.setFocusProxy(self._search)
        super().__init__(table, theme, content)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        heading = in_row((make_label("Columns", font=theme.font(bold=True)), 1), reset)
        sorting = in_row(make_label("Sort by", role="muted"), (self._sort, 1), self._descending)
        named = (self._set_buttons(sets),) if sets else ()
        in_column(heading, self._search, *named, self._list, sorting, owner=content, spacing=theme.spacing.small)
        self._add_items(groups)
        self._show_layout()
        self._search.installEventFilter(self)
        self._search.textChanged.connect(self._narrow)
        self._list.itemChanged.connect(self._on_item_changed)
        self._list.itemActivated.connect(_toggle)
        self._sort.edited.connect(self._on_sorted)
        self._descending.toggled.connect(self._on_sorted)
        reset.clicked.connect(self._reset)

    def open_at(self, anchor: QWidget) -> None:
        """Open the popover below `anchor`."""
        self.open_below(anchor, _WIDTH, _HEIGHT)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move from the search to the first column found with Down; Enter turns a single one on or off."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            found = [item for item in self._column_items() if not item.isHidden()]
            if event.key() == Qt.Key.Key_Down and found:
                self._list.setCurrentItem(found[0])
                self._list.setFocus()
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                if len(found) == 1:
                    _toggle(found[0])
                return True
        return super().eventFilter(watched, event)

    def _set_buttons(self, sets: Mapping[str, Sequence[str]]) -> FlowLayout:
        flow = FlowLayout(self._theme.spacing.small)
        for name, keys in sets.items():
            button = link_button(name.capitalize(), f"Show the columns for: {name}")
            button.clicked.connect(partial(self._use_set, keys))
            flow.addWidget(button)
        return flow

    def _add_items(self, groups: Mapping[str, Sequence[str]]) -> None:
        titles = {column.key: column.header for column in self._table.records().columns[1:]}
        helps = {column.key: column.help for column in self._table.records().columns}
        for group, keys in groups.items():
            heading = QListWidgetItem(group, self._list)
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            heading.setFont(self._theme.font("small"))
            for key in keys:
                item = QListWidgetItem(titles[key], self._list)
                item.setData(_KEY, key)
                item.setToolTip(helps[key])
                item.setFlags(
                    Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable
                )

    def _column_items(self) -> list[QListWidgetItem]:
        items = (self._list.item(row) for row in range(self._list.count()))
        return [item for item in items if item.data(_KEY)]

    def _show_layout(self) -> None:
        """Show the table's columns and order."""
        shown = {column.key for column in self._table.visible_columns}
        model = self._table.records()
        with QSignalBlocker(self._list), QSignalBlocker(self._descending):
            for item in self._column_items():
                item.setCheckState(Qt.CheckState.Checked if item.data(_KEY) in shown else Qt.CheckState.Unchecked)
            if model.sort_key is not None:
                self._sort.set_value(model.sort_key)
            self._descending.setChecked(model.descending)

    @Slot(str)
    def _narrow(self, text: str) -> None:
        """Show only the columns whose title or group contains `text`; a group without a column is hidden."""
        heading, is_whole = None, False
        for item in (self._list.item(row) for row in range(self._list.count())):
            matches = text.strip().lower() in item.text().lower()
            if not item.data(_KEY):
                heading, is_whole = item, matches
                heading.setHidden(True)
                continue
            item.setHidden(not (matches or is_whole))
            if heading is not None and not item.isHidden():
                heading.setHidden(False)

    @Slot(QListWidgetItem)
    def _on_item_changed(self, item: QListWidgetItem) -> None:
        self._table.show_column(item.data(_KEY), item.checkState() is Qt.CheckState.Checked)

    @Slot()
    def _on_sorted(self) -> None:
        self._table.sort_by(str(self._sort.value), self._descending.isChecked())
        self._table.scrollToTop()

    def _use_set(self, keys: Sequence[str]) -> None:
        self._table.show_columns(keys)
        self._show_layout()

    @Slot()
    def _reset(self) -> None:
        self._table.restore_default_layout()
        self._show_layout()


def _toggle(item: QListWidgetItem) -> None:
    """Turn a column on or off."""
    is_checked = item.checkState() is Qt.CheckState.Checked
    item.setCheckState(Qt.CheckState.Unchecked if is_checked else Qt.CheckState.Checked)
