"""A table of records with a pinned first column, sorting, a choice of columns, and selection by name."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSignalBlocker,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView

from planner.gui.settings import TableLayout
from planner.gui.theme import ICON_PIXELS, Theme
from planner.gui.widgets.tables.cell_view import CellColumn, CellPainter, CellView, Marker, PinnedColumn
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.terms import explaining_action, term_of
from planner.present.columns import Column, to_tsv

PADDING: Final = 8
"""Pixels on each side of a cell's content."""
_SLACK: Final = 4  # a header's font can be a shade wider than the table's
_FRAME: Final = 4
_SEARCHED_PLACE: Final = 2
"""Place of a column that a filter shows: after the name and the column that matters most, where it is in view."""
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_SELECT = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
_CURRENT = QItemSelectionModel.SelectionFlag.NoUpdate


def default_layout(
    columns: tuple[Column[Any], ...], sort_key: str | None = None, descending: bool = False
) -> TableLayout:
    """Return the table layout that `columns` declare, with the sort column."""
    shown = tuple(column.key for column in columns if column.shown)
    return TableLayout(shown=shown, sort_key=sort_key, descending=descending)


def default_column_width(column: Column[Any], metrics: QFontMetrics) -> int:
    """Return a column's default width in pixels, in which its title, and its unit with the sort arrow, fit."""
    title = metrics.horizontalAdvance(column.title) + _SLACK
    unit = metrics.horizontalAdvance(column.unit) + ICON_PIXELS
    return max(column.width * metrics.horizontalAdvance("0"), title, unit) + 2 * PADDING


def fill_column_menu(menu: QMenu, table: "RecordTable") -> None:
    """Fill `menu` with actions to sort, show and hide the columns of `table`."""
    _fill_sort_menu(menu.addMenu("&Sort by"), table)
    menu.addSeparator()
    shown = {column.key for column in table.visible_columns}
    for column in table.records().columns[1:]:
        action = _add_checkable_action(menu, column.title, column.key in shown)
        action.toggled.connect(partial(table.show_column, column.key))
    menu.addSeparator()
    menu.addAction("&Restore the default columns").triggered.connect(table.restore_default_layout)


def _fill_sort_menu(menu: QMenu, table: "RecordTable") -> None:
    model = table.records()
    keys = QActionGroup(menu)
    for column in table.visible_columns:
        action = _add_checkable_action(menu, column.title, column.key == model.sort_key)
        keys.addAction(action)
        action.triggered.connect(partial(table.sort_as_clicked, column.key))
    menu.addSeparator()
    downwards = _add_checkable_action(menu, "&Descending", model.descending)
    downwards.setEnabled(model.sort_key is not None)
    downwards.toggled.connect(partial(_set_sort_direction, table))


def _add_checkable_action(menu: QMenu, text: str, checked: bool) -> QAction:
    action = menu.addAction(text)
    action.setCheckable(True)
    action.setChecked(checked)
    return action


def _set_sort_direction(table: "RecordTable", descending: bool) -> None:
    table.sort_by(table.records().sort_key, descending)


def show_rows(table: QTableView, rows: int) -> None:
    """Set the height of `table` to its header and this many rows."""
    header, row = table.horizontalHeader().sizeHint(), table.verticalHeader().defaultSectionSize()
    table.setFixedHeight(header.height() + rows * row + _FRAME)


class RecordTable(CellView):
    """Table of records that keeps the selection by record name while the table is sorted and filtered.

    `current_changed` carries the current record, `record_activated` the one that was double-clicked or confirmed with
    Enter; `arranged` is emitted when columns, widths or sorting change. `name` is the accessible name.
    """

    current_changed = Signal(object)
    record_activated = Signal(object)
    arranged = Signal()

    def __init__(
        self,
        model: RecordTableModel[Any],
        theme: Theme,
        initial_layout: TableLayout | None = None,
        markers: Mapping[str, Marker] | None = None,
        name: str = "",
    ) -> None:
        super().__init__(model, theme, CellPainter(model, theme, markers or {}))
        self.setAccessibleName(name)
        self.current_id: str | None = None
        self._chosen: frozenset[str] = frozenset()
        self._searched_keys: tuple[str, ...] = ()
        self._shown_for_search: frozenset[str] = frozenset()
        self._follows_current = True
        self.default_layout = initial_layout or default_layout(model.columns)
        self._pinned = PinnedColumn(self, model, theme, self._cells)
        self._set_up_header()
        self.arrange(self.default_layout)
        self.doubleClicked.connect(self._on_double_clicked)
        self._pinned.doubleClicked.connect(self._on_double_clicked)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        model.modelReset.connect(self._restore_selection)
        theme.changed.connect(self.viewport().update)

    @property
    def visible_columns(self) -> tuple[Column[Any], ...]:
        """Return the visible columns from left to right."""
        columns, header = self.records().columns, self.horizontalHeader()
        order = (header.logicalIndex(visual) for visual in range(header.count()))
        return tuple(columns[position] for position in order if not header.isSectionHidden(position))

    @property
    def selected_records(self) -> tuple[Any, ...]:
        """Return the selected records in the table's order."""
        model = self.records()
        return tuple(record for record in model.records if model.identify(record) in self._chosen)

    @property
    def current_record(self) -> object:
        """Return the current record, or None for a record that the filter hides."""
        model = self.records()
        row = None if self.current_id is None else model.row_of(self.current_id)
        return None if row is None else model.record(row)

    def layout_now(self) -> TableLayout:
        """Return the layout that the user chose, without columns that a filter shows, and the sort order."""
        model, header = self.records(), self.horizontalHeader()
        shown = tuple(column.key for column in self.visible_columns if column.key not in self._shown_for_search)
        widths = {key: header.sectionSize(model.column_of(key)) for key in shown}
        default_widths = {
            key: default_column_width(model.columns[model.column_of(key)], self.fontMetrics()) for key in shown
        }
        return TableLayout(
            shown=shown,
            widths={
                key: width
                for key, width in widths.items()
                if width != default_widths[key] and not (header.stretchLastSection() and key == shown[-1])
            },
            sort_key=model.sort_key,
            descending=model.descending,
        )

    def arrange(self, layout: TableLayout) -> None:
        """Apply a layout and its sort order; columns that the layout does not list are hidden, except the first."""
        model, header = self.records(), self.horizontalHeader()
        known = {column.key: position for position, column in enumerate(model.columns)}
        wanted = [0, *(known[key] for key in layout.shown if known.get(key))]
        rest = [position for position in range(len(model.columns)) if position not in wanted]
        with QSignalBlocker(header):
            for visual, position in enumerate((*wanted, *rest)):
                header.moveSection(header.visualIndex(position), visual)
                column = model.columns[position]
                header.resizeSection(
                    position, layout.widths.get(column.key, default_column_width(column, self.fontMetrics()))
                )
                header.setSectionHidden(position, position not in wanted)
        self._shown_for_search = frozenset()
        self._show_searched()
        self._stretch_last_words()
        self.sort_by(layout.sort_key if layout.sort_key in known else None, layout.descending)
        self._pinned.place()

    def restore_default_layout(self) -> None:
        """Restore the default layout."""
        self.arrange(self.default_layout)
        self.arranged.emit()

    def sort_by(self, key: str | None, descending: bool = False) -> None:
        """Sort by the column `key`, and show the sort arrow in the header."""
        model = self.records()
        model.sort_by(key, descending)
        position = -1 if key is None else model.column_of(key)
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        for header in (self.horizontalHeader(), self._pinned.horizontalHeader()):
            with QSignalBlocker(header):
                header.setSortIndicator(position, order)
            header.viewport().update()
        self.arranged.emit()

    def show_columns(self, keys: Sequence[str]) -> None:
        """Show exactly the columns `keys`, as the user chose; widths and the order of the rows stay."""
        self.arrange(self.layout_now().evolve(shown=tuple(keys)))
        self.arranged.emit()

    def show_column(self, key: str, shown: bool) -> None:
        """Show or hide a column, as the user chose."""
        self._shown_for_search -= {key}
        self.setColumnHidden(self.records().column_of(key), not shown)
        self._stretch_last_words()
        self.arranged.emit()

    def show_searched_columns(self, keys: Sequence[str]) -> None:
        """Show the columns `keys` while a filter is on them; columns that the user shows stay afterwards."""
        if tuple(keys) == self._searched_keys:
            return
        new = [key for key in keys if key not in self._searched_keys]
        self._searched_keys = tuple(keys)
        self._show_searched()
        if new:
            self._bring_into_view(new[-1])

    def _show_searched(self) -> None:
        """Show hidden columns that a filter is on, and hide those that it no longer is on."""
        model, header = self.records(), self.horizontalHeader()
        with QSignalBlocker(header):
            for key in self._shown_for_search.difference(self._searched_keys):
                header.setSectionHidden(model.column_of(key), True)
            self._shown_for_search &= frozenset(self._searched_keys)
            for key in self._searched_keys:
                position = model.column_of(key)
                if header.isSectionHidden(position):
                    header.setSectionHidden(position, False)
                    header.moveSection(header.visualIndex(position), _SEARCHED_PLACE)
                    self._shown_for_search |= {key}
        self.updateGeometries()
        header.viewport().update()
        self.viewport().update()

    def _bring_into_view(self, key: str) -> None:
        """Scroll sideways if the column `key` is not wholly in view."""
        header, position = self.horizontalHeader(), self.records().column_of(key)
        left = header.sectionViewportPosition(position)
        over = left + header.sectionSize(position) - self.viewport().width()
        under = self._pinned.width() - left
        if position and (over > 0 or under > 0):
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() + (over if over > 0 else -under))

    def choose(self, record_id: str, *, scrolls: bool = True) -> None:
        """Make `record_id` the current record, even if the filter hides that record.

        Unless it `scrolls`, the table stays where it is, also when its rows are sorted or filtered later.
        """
        row = self.records().row_of(record_id)
        if row is not None:
            index = self.model().index(row, 0)
            in_view = self.viewport().rect().contains(self.visualRect(index).center())
            self.setAutoScroll(scrolls)  # or a table that is not shown yet would scroll to the row when it is
            self._make_row_current(row)
            self.setAutoScroll(True)
            if not scrolls:
                self._follows_current = False
            elif not in_view:
                self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
                self._align_scroll_to_row()
        elif self.records().find(record_id) is not None:
            self.selectionModel().clear()
            self.current_id, self._chosen = record_id, frozenset((record_id,))
            self.current_changed.emit(self.records().find(record_id))

    def select_names(self, names: Collection[str]) -> None:
        """Select the rows of the records called `names`, and make the first one current."""
        model, selection = self.records(), QItemSelection()
        rows = sorted(row for name in names if (row := model.row_of(name)) is not None)
        for row in rows:
            selection.select(model.index(row, 0), model.index(row, model.columnCount() - 1))
        if rows:
            self.selectionModel().setCurrentIndex(model.index(rows[0], 0), _CURRENT)
        self.selectionModel().select(selection, _SELECT)

    def enter(self) -> None:
        """Focus the table; without a visible current record, select the first row."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def mark(self, record_id: str | None) -> None:
        """Mark `record_id` as the record used by the plan."""
        self.records().marked = record_id
        self.viewport().update()
        self._pinned.viewport().update()

    def copy_selected(self) -> None:
        """Copy the selected rows with their header, separated by tabs, to the clipboard."""
        QGuiApplication.clipboard().setText(to_tsv(self.visible_columns, self.selected_records))

    def column_menu(self) -> QMenu:
        """Return a new menu to sort, choose and restore columns."""
        menu = QMenu(self)
        fill_column_menu(menu, self)
        return menu

    def sort_as_clicked(self, key: str) -> None:
        """Sort by `key` as a click on its header does: the best number first, words from A to Z, then reversed."""
        model = self.records()
        has_numbers = any(value is not None for value in model.numbers(key).values())
        largest_first = has_numbers and not model.columns[model.column_of(key)].lower_is_better
        self._shown_for_search -= {key}  # the user works with it: it stays
        self.sort_by(key, not model.descending if key == model.sort_key else largest_first)
        self.scrollToTop()

    def has_keyboard(self) -> bool:
        """Return whether the table has the focus, which the pinned column never takes."""
        return self.hasFocus()

    def columns_within(self, area: QRect) -> list[CellColumn]:
        """Return the columns except the first, which the pinned view paints."""
        return [column for column in super().columns_within(area) if column.position]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Resize the pinned column with the table."""
        super().resizeEvent(event)
        self._pinned.place()

    def scrollTo(
        self,
        index: QModelIndex | QPersistentModelIndex,
        hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible,
    ) -> None:
        """Scroll to the cell at `index` without hiding the cell behind the pinned column."""
        sideways = self.horizontalScrollBar()
        before = sideways.value()
        super().scrollTo(index, hint)
        if index.column() <= 0:
            sideways.setValue(before)
            return
        hidden = self._pinned.width() - self.visualRect(index).left()
        if hidden > 0:
            sideways.setValue(sideways.value() - hidden)

    def event(self, event: QEvent) -> bool:
        """Handle the copy shortcut before the window does while the table has the focus."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
            return super().event(event)
        event.setAccepted(event.matches(QKeySequence.StandardKey.Copy))
        return event.isAccepted()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select the first row if none is current, so that the arrow keys have a visible start."""
        if self.current_record is None:
            self._make_row_current(0)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the selected rows with the copy shortcut, or activate the current record with Enter."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_selected()
        elif event.key() in _ENTER and self.current_record is not None:
            self.record_activated.emit(self.current_record)
        else:
            super().keyPressEvent(event)

    def _make_row_current(self, row: int) -> None:
        # Not `selectRow`, which toggles the row while Ctrl is held.
        self.selectionModel().setCurrentIndex(self.model().index(row, 0), _SELECT)

    def _align_scroll_to_row(self) -> None:
        bar, height = self.verticalScrollBar(), self.verticalHeader().defaultSectionSize()
        bar.setValue(bar.value() // height * height)

    def _set_up_header(self) -> None:
        self.horizontalHeader().setSectionsMovable(True)
        self.horizontalHeader().setFirstSectionMovable(False)
        for header in (self.horizontalHeader(), self._pinned.horizontalHeader()):
            header.sectionClicked.connect(self._on_header_clicked)
            header.customContextMenuRequested.connect(partial(self._show_column_menu, header))
        self.horizontalHeader().sectionResized.connect(self._on_section_resized)
        self.horizontalHeader().sectionMoved.connect(self._on_section_moved)
        self._pinned.horizontalHeader().sectionResized.connect(self._on_pinned_resized)

    @Slot(int)
    def _on_header_clicked(self, position: int) -> None:
        self.sort_as_clicked(self.records().columns[position].key)

    def _show_column_menu(self, header: QHeaderView, where: QPoint) -> None:
        menu = self.column_menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if term := term_of(self.records().columns[header.logicalIndexAt(where)].header):
            part = QRect(where.x(), 0, 0, header.height())
            menu.insertAction(menu.actions()[0], explaining_action(term, header, part))
        menu.popup(header.mapToGlobal(where))

    @Slot(int, int, int)
    def _on_section_resized(self, position: int, _old: int, _new: int) -> None:
        if position == 0:
            self._pinned.place()
        self.arranged.emit()

    @Slot(int, int, int)
    def _on_section_moved(self, _position: int, _old: int, _new: int) -> None:
        self._stretch_last_words()
        self.arranged.emit()

    def _stretch_last_words(self) -> None:
        """Let a last column of words take the width that is left; numbers stay close to the other columns."""
        last = self.visible_columns[-1]
        self.horizontalHeader().setStretchLastSection(last.align == "left" and len(self.visible_columns) > 1)

    @Slot(int, int, int)
    def _on_pinned_resized(self, _position: int, _old: int, new: int) -> None:
        self.setColumnWidth(0, new)

    @Slot(QModelIndex)
    def _on_double_clicked(self, index: QModelIndex) -> None:
        self.record_activated.emit(self.records().record(index.row()))

    @Slot(QModelIndex, QModelIndex)
    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        record = self.records().record(current.row()) if current.isValid() else None
        if record is not None:
            self.current_id = self.records().identify(record)
            self._follows_current = True
            self.current_changed.emit(record)

    @Slot(QItemSelection, QItemSelection)
    def _on_selection_changed(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        model = self.records()
        rows = {index.row() for index in self.selectionModel().selectedRows()}
        self._chosen = frozenset(model.identify(record) for row in rows if (record := model.record(row)) is not None)
        self._pinned.viewport().update()

    @Slot()
    def _restore_selection(self) -> None:
        """Restore the selection by name after rows moved or were filtered out.

        Both views are laid out immediately; otherwise they would do so after the first painting and paint twice.
        """
        for view in (self, self._pinned):
            view.executeDelayedItemsLayout()
        model, selection = self.records(), QItemSelection()
        for name in self._chosen:
            if (row := model.row_of(name)) is not None:
                selection.select(model.index(row, 0), model.index(row, model.columnCount() - 1))
        row = None if self.current_id is None else model.row_of(self.current_id)
        with QSignalBlocker(self.selectionModel()):
            self.selectionModel().select(selection, _SELECT)
            if row is not None:
                self.selectionModel().setCurrentIndex(model.index(row, 0), _CURRENT)
        if row is None:
            self.verticalScrollBar().setValue(0)
        elif self._follows_current:
            self.scrollTo(model.index(row, 0))
