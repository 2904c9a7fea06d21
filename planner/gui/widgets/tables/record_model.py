"""A table model of records that computes each row's text once and sorts and filters in Python."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress, islice
from typing import Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from planner.gui.widgets.terms import EXPLAIN_KEY, explained_tooltip, term_of
from planner.present.columns import Column, Sortable

Record = TypeVar("Record")
Filter = Callable[[Sequence[Record]], Collection[str]]
Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_NO_PARENT = QModelIndex()
_A_FEW = 10
"""A cell's meter is full at the value that one in this many rows reaches; the largest value may be an outlier."""


class RecordTableModel(QAbstractTableModel, Generic[Record]):
    """Table model with a row for each record.

    `identify` returns the name of a record, which identifies it in selections and filters. Records that are equal in
    the sort column are sorted by the column `then`, lowest first. A proxy model would call `data` for each comparison,
    which is a hundred times as slow with 3,000 rows.
    """

    def __init__(
        self,
        columns: Sequence[Column[Record]],
        identify: Callable[[Record], str],
        parent: QObject | None = None,
        then: str | None = None,
    ) -> None:
        super().__init__(parent)
        self.then = then
        self.columns = tuple(columns)
        self.identify = identify
        self.sort_key: str | None = None
        self.descending = False
        self.marked: str | None = None
        self._first: frozenset[str] = frozenset()
        self._all: dict[str, Record] = {}
        self._ordered: list[tuple[str, Record]] = []
        self._shown: list[tuple[str, Record]] = []
        self._ordered_names: list[str] = []
        self._names: list[str] = []
        self._filter: Filter[Record] | None = None
        self._passing: Collection[str] | None = None
        self._texts: dict[str, tuple[str, ...]] = {}
        self._words: dict[str, dict[str, str]] = {}
        self._values: dict[int, dict[str, float | None]] = {}
        self._by_size: dict[int, tuple[list[str], frozenset[str]]] = {}
        self._full: dict[int, float] = {}

    @property
    def records(self) -> tuple[Record, ...]:
        """Return the visible records from top to bottom."""
        return tuple(record for _, record in self._shown)

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the visible records from top to bottom."""
        return self._names

    @property
    def first(self) -> Collection[str]:
        """Return the names of the records that are kept at the top."""
        return self._first

    @property
    def all_records(self) -> tuple[Record, ...]:
        """Return all records, visible or not, in their original order."""
        return tuple(self._all.values())

    def set_records(self, records: Sequence[Record]) -> None:
        """Replace the records; the filter and the sort order stay."""
        self._all = {self.identify(record): record for record in records}
        self._texts.clear()
        self._words.clear()
        self._values.clear()
        self._by_size.clear()
        self._sort_records()
        self._filter_records()

    def set_first(self, names: Collection[str]) -> None:
        """Keep the records called `names` at the top of the table, sorted among themselves."""
        if self._first != frozenset(names):
            self._first = frozenset(names)
            self._sort_records()
            self._filter_records()

    def set_filter(self, keep: Filter[Record] | None) -> None:
        """Show only records whose names `keep` returns when called with all records; None shows all records."""
        self._filter = keep
        self._filter_records()

    def sort_by(self, key: str | None, descending: bool = False) -> None:
        """Sort by the column `key`, unknown values last in both directions; None restores the original order."""
        self.sort_key, self.descending = key, descending
        self._sort_records()
        self._filter_records()

    def column_of(self, key: str) -> int:
        """Return the position of the column `key`.

        Raises:
            KeyError: If there is no such column.
        """
        for position, column in enumerate(self.columns):
            if column.key == key:
                return position
        raise KeyError(key)

    def is_second(self, position: int) -> bool:
        """Return whether the column at `position` decides the order of rows that are equal in the sort column."""
        return self.sort_key is not None and self.columns[position].key == self.then != self.sort_key

    def row_of(self, record_id: str) -> int | None:
        """Return the row number of a record, or None for a record that the filter hides."""
        return next((row for row, name in enumerate(self._names) if name == record_id), None)

    def record(self, row: int) -> Record | None:
        """Return the record in a table row, or None for a row that does not exist."""
        return self._shown[row][1] if 0 <= row < len(self._shown) else None

    def find(self, name: str | None) -> Record | None:
        """Return the record called `name`, visible or not, or None."""
        return None if name is None else self._all.get(name)

    def texts(self, row: int) -> tuple[str, ...]:
        """Return the texts of a row's cells, computed when first needed."""
        name, record = self._shown[row]
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = tuple(column.text(record) for column in self.columns)
        return found

    def is_marked(self, row: int) -> bool:
        """Return whether the record in a row is the one used by the plan."""
        return self._names[row] == self.marked

    def shares(self, rows: Sequence[int], position: int) -> list[float | None]:
        """Return the fraction of the meter that is filled in a column's cells, at most 1; None without a value."""
        values, full = self._values_by_name(position), self._full_meter_value(position)
        found = (values[self._names[row]] for row in rows)
        return [min(value / full, 1) if value is not None and full else None for value in found]

    def numbers(self, key: str) -> Mapping[str, float | None]:
        """Return a column's values by record name, including invisible records; None for a value that is no number."""
        return self._values_by_name(self.column_of(key))

    def words(self, key: str) -> Mapping[str, str]:
        """Return a column's texts by record name, including invisible records."""
        found = self._words.get(key)
        if found is None:
            text = self.columns[self.column_of(key)].text
            found = self._words[key] = {name: text(record) for name, record in self._all.items()}
        return found

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of visible records."""
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of columns, including hidden columns."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text, sortable value, alignment, tooltip or accessible text of a cell."""
        if not index.isValid():
            return None
        row, column = index.row(), self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.texts(row)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if column.align == "right" else _LEFT
        if role == Qt.ItemDataRole.UserRole:
            return column.value(self._shown[row][1])
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            return column.tooltip(self._shown[row][1]) if column.tooltip else self.texts(row)[index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            mark = ", in the plan" if index.column() == 0 and self.is_marked(row) else ""
            return f"{column.header}: {self.texts(row)[index.column()]}{mark}"
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the title with its unit, the tooltip or the alignment of a column."""
        if orientation == Qt.Orientation.Vertical or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.header
        if role == Qt.ItemDataRole.ToolTipRole:
            second = "Breaks ties in the sorted column, lowest first."
            hint = "\n".join(filter(None, (column.header, column.help, second if self.is_second(section) else "")))
            return explained_tooltip(hint, term_of(column.header), f"Right-click it or press {EXPLAIN_KEY}")
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if column.align == "right" else _LEFT
        return None

    def _values_by_name(self, position: int) -> dict[str, float | None]:
        found = self._values.get(position)
        if found is None:
            read = self.columns[position].value
            named = ((name, read(record)) for name, record in self._all.items())
            found = {name: value if isinstance(value, int | float) else None for name, value in named}
            self._values[position] = found
        return found

    def _full_meter_value(self, position: int) -> float:
        full = self.columns[position].full
        if full is None:
            if position not in self._full:
                self._full[position] = self._default_full_meter_value(position)
            full = self._full[position]
        return full

    def _default_full_meter_value(self, position: int) -> float:
        """Return the value that one in ten visible rows reaches; of fewer rows, the largest value; 0 without values."""
        values = self._values_by_name(position)
        if position not in self._by_size:
            known = sorted(((value, name) for name, value in values.items() if value is not None), reverse=True)
            by_size = [name for _, name in known]
            self._by_size[position] = by_size, frozenset(values.keys() - by_size)
        (by_size, unknown), shown = self._by_size[position], self._passing
        count = len(by_size) if shown is None else len(shown) - len(unknown.intersection(shown))
        visible = by_size if shown is None else (name for name in by_size if name in shown)
        name = next(islice(visible, count // _A_FEW, None), None)
        return (values[name] or 0) if name is not None else 0

    def _sort_records(self) -> None:
        pairs = list(self._all.items())
        if self.sort_key is not None:
            if self.then is not None:
                pairs = self._sorted_pairs(pairs, self.then, descending=False)
            pairs = self._sorted_pairs(pairs, self.sort_key, self.descending)
        if self._first:
            pairs.sort(key=lambda pair: pair[0] not in self._first)
        self._ordered = pairs
        self._ordered_names = [name for name, _ in pairs]

    def _sorted_pairs(self, pairs: list[tuple[str, Record]], key: str, descending: bool) -> list[tuple[str, Record]]:
        """Return `pairs` sorted by the column `key`, unknown values last, equal values in their order."""
        value = self.columns[self.column_of(key)].value
        keyed = [(value(pair[1]), pair) for pair in pairs]
        known = [(key, pair) for key, pair in keyed if key is not None]
        known.sort(key=lambda keyed_pair: _sort_value(keyed_pair[0]), reverse=descending)
        return [*(pair for _, pair in known), *(pair for key, pair in keyed if key is None)]

    def _filter_records(self) -> None:
        self.beginResetModel()
        self._full.clear()
        passing = self._passing = None if self._filter is None else self._filter(tuple(self._all.values()))
        self._shown, self._names = self._ordered, self._ordered_names
        if passing is not None:
            # Without a step of Python for each row, which is most of the time of a keystroke in a search.
            shown = list(map(passing.__contains__, self._ordered_names))
            self._shown, self._names = list(compress(self._shown, shown)), list(compress(self._names, shown))
        self.endResetModel()


def _sort_value(value: Sortable) -> Sortable:
    return value.casefold() if isinstance(value, str) else value
