"""The table model of frozen records: text computed once a row, filtering and sorting done in Python before a reset."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from planner.present.columns import Column, Sortable

Record = TypeVar("Record")
Filter = Callable[[Sequence[Record]], Sequence[Record]]
Index = QModelIndex | QPersistentModelIndex

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_NO_PARENT = QModelIndex()


class RecordTableModel(QAbstractTableModel, Generic[Record]):
    """Records as rows and `columns` as columns.

    `identify` names a record; selection goes by that name. All records are kept sorted and the filter picks from them
    in that order. A proxy model would call `data` for each comparison, a hundred times as slow at 3,000 rows.
    """

    def __init__(
        self, columns: Sequence[Column[Record]], identify: Callable[[Record], str], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.identify = identify
        self.sort_key: str | None = None
        self.descending = False
        self.marked: str | None = None
        self._all: tuple[Record, ...] = ()
        self._ordered: tuple[Record, ...] = ()
        self._shown: tuple[Record, ...] = ()
        self._row_of: dict[str, int] = {}
        self._filter: Filter[Record] | None = None
        self._texts: dict[str, tuple[str, ...]] = {}
        self._values: dict[int, dict[str, float | None]] = {}
        self._largest: dict[int, float] = {}

    @property
    def records(self) -> tuple[Record, ...]:
        """Return the records that are shown, in their order."""
        return self._shown

    @property
    def all_records(self) -> tuple[Record, ...]:
        """Return every record, shown or not, in the order they came."""
        return self._all

    def set_records(self, records: Sequence[Record]) -> None:
        """Show other records through the same filter and sorting."""
        self._all = tuple(records)
        self.refresh()

    def set_filter(self, keep: Filter[Record] | None) -> None:
        """Show what `keep` returns of all records; it must keep their order."""
        self._filter = keep
        self._reset()

    def refresh(self) -> None:
        """Compute every text anew, after something that the columns look at has changed."""
        self._texts.clear()
        self._values.clear()
        self._order()
        self._reset()

    def sort_by(self, key: str | None, descending: bool = False) -> None:
        """Sort by the column `key`, unknown values last either way; none restores the records' own order."""
        self.sort_key, self.descending = key, descending
        self._order()
        self._reset()

    def column_of(self, key: str) -> int:
        """Return the position of the column `key`.

        Raises:
            KeyError: If there is no such column.
        """
        for position, column in enumerate(self.columns):
            if column.key == key:
                return position
        raise KeyError(key)

    def row_of(self, record_id: str) -> int | None:
        """Return the row that shows `record_id`, if it is shown."""
        return self._row_of.get(record_id)

    def record(self, row: int) -> Record | None:
        """Return the record in `row`."""
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def find(self, name: str | None) -> Record | None:
        """Return the record called `name`, shown or not."""
        return next((record for record in self._all if self.identify(record) == name), None)

    def texts(self, row: int) -> tuple[str, ...]:
        """Return what the cells of `row` say, computed when the row is first looked at."""
        record = self._shown[row]
        name = self.identify(record)
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = tuple(column.text(record) for column in self.columns)
        return found

    def is_marked(self, row: int) -> bool:
        """Return whether `row` holds the record that the plan uses."""
        return self.marked is not None and self.identify(self._shown[row]) == self.marked

    def share(self, row: int, position: int) -> float | None:
        """Return a cell's value as a fraction of the largest in its column, among the records that are shown."""
        values = self._values_of(position)
        value = values[self.identify(self._shown[row])]
        if position not in self._largest:
            self._largest[position] = max(filter(None, map(values.__getitem__, self._row_of)), default=0)
        return value / self._largest[position] if value is not None and self._largest[position] else None

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of records shown."""
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of columns, hidden ones included."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return text, sortable value, alignment, source or the text for screen readers."""
        if not index.isValid():
            return None
        row, column = index.row(), self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.texts(row)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if column.align == "right" else _LEFT
        if role == Qt.ItemDataRole.UserRole:
            return column.value(self._shown[row])
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tooltip(self._shown[row]) if column.tooltip else self.texts(row)[index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            mark = ", in the plan" if index.column() == 0 and self.is_marked(row) else ""
            return f"{column.header}: {self.texts(row)[index.column()]}{mark}"
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the columns' titles with their units."""
        if orientation == Qt.Orientation.Vertical or not 0 <= section < len(self.columns):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.columns[section].header
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self.columns[section].align == "right" else _LEFT
        return None

    def _values_of(self, position: int) -> dict[str, float | None]:
        found = self._values.get(position)
        if found is None:
            read = self.columns[position].value
            named = ((self.identify(record), read(record)) for record in self._all)
            found = {name: value if isinstance(value, int | float) else None for name, value in named}
            self._values[position] = found
        return found

    def _order(self) -> None:
        if self.sort_key is None:
            self._ordered = self._all
            return
        value = self.columns[self.column_of(self.sort_key)].value
        keyed = [(value(record), record) for record in self._all]
        known = [(key, record) for key, record in keyed if key is not None]
        known.sort(key=lambda pair: _comparable(pair[0]), reverse=self.descending)
        self._ordered = (*(record for _, record in known), *(record for key, record in keyed if key is None))

    def _reset(self) -> None:
        self.beginResetModel()
        self._largest.clear()
        self._shown = tuple(self._filter(self._ordered) if self._filter else self._ordered)
        self._row_of = {self.identify(record): row for row, record in enumerate(self._shown)}
        self.endResetModel()


def _comparable(value: Sortable) -> Sortable:
    return value.casefold() if isinstance(value, str) else value
