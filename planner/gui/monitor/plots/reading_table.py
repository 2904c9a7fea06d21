"""The figures of a plot as a table."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.monitor.plots.clock_ticks import clock_text
from planner.gui.monitor.plots.curves import Curve
from planner.gui.monitor.plots.scales import value_text
from planner.gui.theme import Theme
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.monitor.history import HOST
from planner.monitor.metrics import Unit
from planner.present.columns import Column

_DASH = " – "


class Row(NamedTuple):
    """What was lowest and highest from one time to the next, by the place of the curve."""

    time: float
    clock: str
    ends: dict[int, tuple[float, float]]


def rows_of(curves: list[Curve], wall_of: Callable[[float], float]) -> tuple[Row, ...]:
    """Return a row for each time at which some curve has a point."""
    found: dict[float, dict[int, tuple[float, float]]] = {}
    for place, curve in enumerate(curves):
        for time, low, high in zip(*(each.tolist() for each in curve.columns), strict=True):
            found.setdefault(time, {})[place] = (low, high)
    return tuple(Row(time, clock_text(wall_of(time)), found[time]) for time in sorted(found, reverse=True))


class ReadingTable(QWidget):
    """A row a time, the latest first, and a column a curve."""

    def __init__(self, theme: Theme, title: str, unit: Unit) -> None:
        super().__init__()
        self._theme, self._title, self._unit = theme, title, unit
        self._labels: tuple[str, ...] | None = None
        self._table: RecordTable | None = None
        self._model: RecordTableModel[Row] | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return what is shown."""
        return () if self._model is None else self._model.records

    def set_curves(self, curves: list[Curve], wall_of: Callable[[float], float]) -> None:
        """Show what a plot draws."""
        labels = tuple(curve.label if curve.key[0] == HOST else f"Card {curve.label}" for curve in curves)
        if labels != self._labels or self._model is None:
            self._labels = labels
            self._model = self._build(labels)
        self._model.set_records(rows_of(curves, wall_of))

    def _build(self, labels: tuple[str, ...]) -> RecordTableModel[Row]:
        if self._table is not None:
            self._layout.removeWidget(self._table)
            self._table.deleteLater()
        times: Column[Row] = Column("time", "Time", lambda row: row.time, lambda row: row.clock)
        curves = (self._column(place, label) for place, label in enumerate(labels))
        model = RecordTableModel((times, *curves), lambda row: str(row.time), self)
        self._table = RecordTable(model, self._theme)
        self._table.setAccessibleName(self._title)
        self.setFocusProxy(self._table)
        self._layout.addWidget(self._table)
        return model

    def _column(self, place: int, label: str) -> Column[Row]:
        value = partial(_highest, place)
        return Column(str(place), label, value, partial(self._text, place), align="right", width=18)

    def _text(self, place: int, row: Row) -> str:
        ends = row.ends.get(place)
        if ends is None:
            return ""
        low, high = (value_text(self._unit, end) for end in ends)
        return low if low == high else f"{low}{_DASH}{high}"


def _highest(place: int, row: Row) -> float | None:
    ends = row.ends.get(place)
    return None if ends is None else ends[1]
