"""The figures of the timeline as a table."""

from typing import Final

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.trace.timeline_data import TimelineData, TimelineRow
from planner.gui.theme import Theme
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, numbers, words
from planner.present.trace.view import short_place

_COLUMNS: Final[tuple[Column[TimelineRow], ...]] = (
    numbers("time", "Moment", lambda row: row.moment.time, show=lambda value: fmt.integer(round(value)), width=9),
    numbers(
        "bytes",
        "Alive",
        lambda row: row.moment.bytes,
        show=lambda value: fmt.size(round(value)),
        tooltip=lambda row: fmt.exact_bytes(row.moment.bytes),
        meter=True,
    ),
    words("phase", "When", lambda row: row.moment.phase, width=24),
    words("operator", "Last made by", lambda row: row.moment.operator, unknown="", width=24),
    words("module", "Module", lambda row: row.moment.module, unknown="", width=24),
    words(
        "line",
        "Line",
        lambda row: short_place(row.moment.line),
        unknown="",
        width=20,
        tooltip=lambda row: row.moment.line,
    ),
)


class TimelineTable(QWidget):
    """A row a moment, with the peak marked."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._data: TimelineData | None = None
        self._model = RecordTableModel(_COLUMNS, lambda row: str(row.point), self)
        self._table = RecordTable(self._model, theme)
        self._table.setAccessibleName("Live memory over the run")
        self.setFocusProxy(self._table)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._table)

    @property
    def rows(self) -> tuple[TimelineRow, ...]:
        """Return the rows in the table's order."""
        return self._model.records

    def set_data(self, data: TimelineData) -> None:
        """Show another timeline."""
        if data is not self._data:
            self._data = data
            self._model.set_records([data.row(point) for point in range(len(data.times))])
            self._table.mark(str(data.peak_point))
