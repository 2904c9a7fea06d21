"""Comparison of the plan's estimate with a trace of the same run."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from planner.gui.memory.trace.tracer import EstimateCheck, Tracer
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.memory.result import MemoryResult
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.memory.comparison import ComparisonRow, compare_parts, comparison_sentence
from planner.trace.analysis.memory import traced_memory


def _size_column(
    key: str, title: str, get_bytes: Callable[[ComparisonRow], int], format_size: Callable[[int], str], about: str
) -> Column[ComparisonRow]:
    return number_column(
        key,
        title,
        get_bytes,
        show=lambda value: format_size(round(value)),
        width=11,
        tooltip=lambda row: fmt.exact_bytes(get_bytes(row)),
        about=about,
    )


def _difference_text(row: ComparisonRow) -> str:
    fraction = row.difference_fraction
    return "not traced" if fraction is None else fmt.signed_percent(fraction)


_COLUMNS: Final[tuple[Column[ComparisonRow], ...]] = (
    text_column("part", "At the peak", lambda row: row.title, width=30, about="Part of the memory at the peak"),
    _size_column(
        "estimated", "Estimated", lambda row: row.estimated_bytes, fmt.size, about="Size in the plan's estimate"
    ),
    _size_column("traced", "Traced", lambda row: row.traced_bytes, fmt.size, about="Size in the trace"),
    _size_column(
        "difference", "Difference", lambda row: row.difference_bytes, fmt.size_difference, about="Trace less estimate"
    ),
    Column(
        "share",
        "Relative",
        lambda row: row.difference_fraction,
        _difference_text,
        align="right",
        width=11,
        help="Difference as a share of the estimate",
    ),
)


class TraceComparison(QWidget):
    """Comparison of estimate and trace by part, shown while the plan is the plan that was checked."""

    def __init__(self, workspace: Workspace, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self._workspace, self._tracer = workspace, tracer
        self.sentence = make_label(font=theme.font(bold=True), wrap=True)
        self._model = RecordTableModel(_COLUMNS, lambda row: row.title, self)
        self.table = RecordTable(self._model, theme, name="Estimate and trace")
        self.use = link_button("Use the trace", "Use the traced memory in the plan, and show its timeline.")
        in_column(in_row((self.sentence, 1), self.use), self.table, owner=self, spacing=theme.spacing.tiny)
        self.use.clicked.connect(self._use_trace)
        self.refresh()

    @property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """Return the shown rows of the comparison."""
        return self._model.records

    @Slot()
    def refresh(self) -> None:
        """Show the comparison of the plan's estimate with its trace; hide the panel without such a trace."""
        check = self._tracer.check
        is_shown = check is not None and check.plan == self._workspace.plan
        self.setVisible(is_shown)
        if check is None or not is_shown:
            return
        estimate, traced = self._workspace.evaluation.memory, self._traced_memory_result(check)
        self.sentence.setText(comparison_sentence(estimate, traced))
        self._model.set_records(compare_parts(estimate, traced))
        show_rows(self.table, len(self.rows))

    def _traced_memory_result(self, check: EstimateCheck) -> MemoryResult:
        plan, gpu = check.plan, self._workspace.evaluation.gpu
        usable = self._workspace.catalog.hardware.usable_memory(gpu) if gpu else None
        return traced_memory(check.facts, gpu, usable, plan.count, plan.workload.other_processes_bytes)

    @Slot()
    def _use_trace(self) -> None:
        if self._tracer.check is not None:
            with self._workspace.reporting():
                self._workspace.take_trace(self._tracer.check.facts, "use of the trace")
