"""Where the figures of the curve stand as a table."""

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.curves.data import CurveData
from planner.gui.theme import Theme
from planner.plan.explore import CurvePoint

if TYPE_CHECKING:
    from planner.gui.memory.curves.figures import CurveFigures


class CurveTable(QWidget):
    """A row a point; `chosen` carries the value of a row that was double-clicked or confirmed with Enter."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @cached_property
    def _table(self) -> "CurveFigures":
        # Made with the first curve: the start of the window does not wait for it.
        from planner.gui.memory.curves.figures import CurveFigures

        made = CurveFigures(self._theme)
        made.record_activated.connect(self._on_activated)
        self.setFocusProxy(made)
        self._layout.addWidget(made)
        return made

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """Return the points in the table's order."""
        return self._table.records().records

    def set_data(self, data: CurveData) -> None:
        """Show another curve, with the plan's own point marked."""
        self._table.show_data(data)

    @Slot(object)
    def _on_activated(self, point: CurvePoint) -> None:
        self.chosen.emit(point.value)
