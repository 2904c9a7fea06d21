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


def _amount(
    key: str, title: str, get: Callable[[ComparisonRow], int], show: Callable[[int], str]
) -> Column[ComparisonRow]:
    return number_column(
        key,
        title,
        get,
        show=lambda value: show(round(value)),
        width=11,
        tooltip=lambda row: fmt.exact_bytes(get(row)),
    )


def _fraction(row: ComparisonRow) -> str:
    share = row.difference_fraction
    return "not traced" if share is None else fmt.signed_percent(share)


_COLUMNS: Final[tuple[Column[ComparisonRow], ...]] = (
    text_column("part", "At the peak", lambda row: row.title, width=30),
    _amount("estimated", "Estimated", lambda row: row.estimated_bytes, fmt.size),
    _amount("traced", "Traced", lambda row: row.traced_bytes, fmt.size),
    _amount("difference", "Difference", lambda row: row.difference_bytes, fmt.size_difference),
    Column("share", "Of the trace", lambda row: row.difference_fraction, _fraction, align="right", width=11),
)


class TraceComparison(QWidget):
    """Panel shown while the plan is the one whose estimate was checked."""

    def __init__(self, workspace: Workspace, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self._workspace, self._tracer = workspace, tracer
        self.sentence = make_label(font=theme.font(bold=True), wrap=True)
        self._model = RecordTableModel(_COLUMNS, lambda row: row.title, self)
        self.table = RecordTable(self._model, theme, name="Estimate and trace")
        self.use = link_button("Use the trace", "Plan with the traced run and show its timeline.")
        in_column(in_row((self.sentence, 1), self.use), self.table, owner=self, spacing=theme.spacing.tiny)
        self.use.clicked.connect(self._use)
        self.refresh()

    @property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """Return the shown rows."""
        return self._model.records

    @Slot()
    def refresh(self) -> None:
        """Show the check of the current plan, if there is one."""
        check = self._tracer.check
        shown = check is not None and check.plan == self._workspace.plan
        self.setVisible(shown)
        if check is None or not shown:
            return
        estimate, traced = self._workspace.evaluation.memory, self._traced(check)
        self.sentence.setText(comparison_sentence(estimate, traced))
        self._model.set_records(compare_parts(estimate, traced))
        show_rows(self.table, len(self.rows))

    def _traced(self, check: EstimateCheck) -> MemoryResult:
        plan, gpu = check.plan, self._workspace.evaluation.gpu
        usable = self._workspace.catalog.hardware.usable_memory(gpu) if gpu else None
        return traced_memory(check.facts, gpu, usable, plan.count, plan.workload.other_processes_bytes)

    @Slot()
    def _use(self) -> None:
        if self._tracer.check is not None:
            with self._workspace.reporting():
                self._workspace.take_trace(self._tracer.check.facts, "use of the trace")
