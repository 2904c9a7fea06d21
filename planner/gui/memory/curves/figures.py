"""The table of a curve's figures, apart from the place where it stands: it is made with the first curve."""

from collections.abc import Callable
from typing import Final

from planner.gui.memory.curves.data import CurveData
from planner.gui.theme import Theme
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.plan.explore import CurvePoint
from planner.present import format as fmt
from planner.present.columns import Column, numbers


def _gib(key: str, title: str, get: Callable[[CurvePoint], int | None]) -> Column[CurvePoint]:
    return numbers(key, title, get, unit="GiB", show=lambda value: fmt.gib(round(value)), width=15)


_COLUMNS: Final[tuple[Column[CurvePoint], ...]] = (
    numbers("value", "Value", lambda point: point.value, show=lambda value: fmt.integer(round(value)), width=12),
    _gib("memory", "Memory", lambda point: point.total_bytes),
    _gib("low", "At least", lambda point: point.low_bytes),
    _gib("high", "At most", lambda point: point.high_bytes),
    _gib("host", "In RAM", lambda point: point.host_bytes),
)


class CurveFigures(RecordTable):
    """A row a point."""

    def __init__(self, theme: Theme) -> None:
        model = RecordTableModel(_COLUMNS, lambda point: str(point.value))
        super().__init__(model, theme)
        model.setParent(self)

    def show_data(self, data: CurveData) -> None:
        """Show another curve, with the plan's own point marked."""
        self.setAccessibleName(f"Memory over {data.title.lower()}")
        self.records().set_records(data.points)
        self.show_column("host", any(point.host_bytes for point in data.points))
        self.mark(str(data.current.value))
