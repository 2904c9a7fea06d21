"""The figures of the curve as a table."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.curves.data import CurveData
from planner.gui.theme import Theme
from planner.gui.widgets.record_model import RecordTableModel
from planner.plan.explore import CurvePoint
from planner.present import format as fmt
from planner.present.columns import Column, numbers

if TYPE_CHECKING:
    from planner.gui.widgets.record_table import RecordTable


def _gib(key: str, title: str, get: Callable[[CurvePoint], int | None]) -> Column[CurvePoint]:
    return numbers(key, title, get, unit="GiB", show=lambda value: fmt.gib(round(value)), width=15)


_COLUMNS: Final[tuple[Column[CurvePoint], ...]] = (
    numbers("value", "Value", lambda point: point.value, show=lambda value: fmt.integer(round(value)), width=12),
    _gib("memory", "Memory", lambda point: point.total_bytes),
    _gib("low", "At least", lambda point: point.low_bytes),
    _gib("high", "At most", lambda point: point.high_bytes),
    _gib("host", "In RAM", lambda point: point.host_bytes),
)


class CurveTable(QWidget):
    """A row a point; `chosen` carries the value of a row that was double-clicked or confirmed with Enter."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = RecordTableModel(_COLUMNS, lambda point: str(point.value), self)
        self._theme = theme
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @cached_property
    def _table(self) -> "RecordTable":
        # Made with the first curve: the start of the window does not wait for it.
        from planner.gui.widgets.record_table import RecordTable

        made = RecordTable(self._model, self._theme)
        made.record_activated.connect(self._on_activated)
        self.setFocusProxy(made)
        self._layout.addWidget(made)
        return made

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """Return the points in the table's order."""
        return self._model.records

    def set_data(self, data: CurveData) -> None:
        """Show another curve, with the plan's own point marked."""
        self._table.setAccessibleName(f"Memory over {data.title.lower()}")
        self._model.set_records(data.points)
        self._table.show_column("host", any(point.host_bytes for point in data.points))
        self._table.mark(str(data.current.value))

    @Slot(object)
    def _on_activated(self, point: CurvePoint) -> None:
        self.chosen.emit(point.value)
