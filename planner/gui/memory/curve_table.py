"""The figures of the curve as a table."""

from functools import partial
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.curve_data import CurveData
from planner.gui.theme import Theme
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.plan.explore import CurvePoint
from planner.present import format as fmt
from planner.present.columns import Column, numbers
from planner.units import GIB

_COLUMNS: Final[tuple[Column[CurvePoint], ...]] = (
    numbers("value", "Value", lambda point: point.value, show=lambda value: fmt.integer(round(value)), width=12),
    *(
        numbers(key, title, partial(lambda name, point: getattr(point, name), name), unit="GiB", per_unit=GIB, width=14)
        for key, title, name in (
            ("memory", "Memory", "total_bytes"),
            ("low", "At least", "low_bytes"),
            ("high", "At most", "high_bytes"),
        )
    ),
)


class CurveTable(QWidget):
    """A row a point; `chosen` carries the value of a row that was double-clicked or confirmed with Enter."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = RecordTableModel(_COLUMNS, lambda point: str(point.value), self)
        self._table = RecordTable(self._model, theme)
        self._table.record_activated.connect(self._on_activated)
        self.setFocusProxy(self._table)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._table)

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """Return the points in the table's order."""
        return self._model.records

    def set_data(self, data: CurveData) -> None:
        """Show another curve, with the plan's own point marked."""
        self._table.setAccessibleName(f"Memory over {data.title.lower()}")
        self._model.set_records(data.points)
        self._table.mark(str(data.current.value))

    @Slot(object)
    def _on_activated(self, point: CurvePoint) -> None:
        self.chosen.emit(point.value)
