"""Evidence for a traced plan: the comparison with the estimate, live-memory timeline and tables, from the recording."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from planner.errors import PlannerError
from planner.gui.memory.trace.tables import TraceTables, trace_text
from planner.gui.memory.trace.timeline import TimelineData, TimelinePanel
from planner.gui.memory.trace.tracer import EstimateCheck, Tracer
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.result import MemoryResult
from planner.paths import traces_dir
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.memory.comparison import ComparisonRow, compare_parts, comparison_sentence
from planner.present.trace.view import TraceView, trace_view
from planner.trace.analysis.memory import traced_memory
from planner.trace.analysis.trace_result import conclude
from planner.trace.files import find_recording
from planner.trace.result import TraceResult


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
        "difference", "Difference", lambda row: row.difference_bytes, fmt.size_difference, about="Trace minus estimate"
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


_TASK: Final = "trace-result"
_TIMELINE_HEIGHT: Final = 340
_RECORDING_MISSING: Final = (
    "The recording of this trace is no longer on this computer. Trace again to see its timeline."
)


@dataclass(frozen=True, slots=True)
class _EvidenceInputs:
    """Inputs from which timeline and tables are computed; `digest` identifies the recording of the trace."""

    digest: str
    gpu: Gpu | None
    usable: UsableMemory | None
    count: int
    other_processes_bytes: int


class TraceEvidence(QWidget):
    """Timeline and tables of the plan's trace; `updated` is emitted when the recording is shown or missing."""

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._inputs: _EvidenceInputs | None = None
        self.result: TraceResult | None = None
        self.view: TraceView | None = None
        self.runs_out = make_label(role="bad", wrap=True)
        self._results = QWidget()
        self._missing = make_label(role="muted", wrap=True)
        in_column(self.runs_out, self._missing, (self._results, 1), owner=self, spacing=theme.spacing.medium)
        self._column = in_column(owner=self._results, spacing=theme.spacing.medium)
        self._show_result(None)

    # Built on first use, to keep the start of the window fast.

    @cached_property
    def timeline(self) -> TimelinePanel:
        """Return the plot of live memory over the traced run, built on first use."""
        widget = TimelinePanel(self._theme)
        widget.setMinimumHeight(_TIMELINE_HEIGHT)
        widget.failed.connect(self._workspace.failed)
        self._column.insertWidget(0, widget, 3)
        return widget

    @cached_property
    def tables(self) -> TraceTables:
        """Return the tables of the trace."""
        widget = TraceTables(self._theme)
        widget.failed.connect(self._workspace.failed)
        self._column.addWidget(widget, 2)
        return widget

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Show the evidence for a traced plan; its recording is loaded in the background."""
        facts = evaluation.traced
        if facts is None:
            self._show_no_evidence()
            return
        usable = self._workspace.catalog.hardware.usable_memory(evaluation.gpu) if evaluation.gpu else None
        plan = evaluation.plan
        inputs = _EvidenceInputs(facts.digest, evaluation.gpu, usable, plan.count, plan.workload.other_processes_bytes)
        if inputs == self._inputs:
            return
        self._inputs = inputs
        self._tasks.run(_TASK, partial(_load_trace_result, inputs), self._show_loaded_result, self._on_error)

    def as_text(self) -> str:
        """Return the tables of the trace as text, for the clipboard."""
        return "" if self.view is None else trace_text(self.view)

    @Slot()
    def _show_no_evidence(self) -> None:
        if self._inputs is not None:
            self._inputs = None
            self._tasks.cancel(_TASK)
            self._show_result(None)

    def _show_loaded_result(self, result: TraceResult | None) -> None:
        self._show_result(result)
        self._missing.setVisible(result is None)
        self._missing.setText(_RECORDING_MISSING)
        self.updated.emit()

    def _on_error(self, error: BaseException) -> None:
        if not isinstance(error, PlannerError):
            raise error
        self._show_result(None)
        self._missing.setText(f"The recording of this trace cannot be read: {error.message}. Trace again.")
        self._missing.show()
        self.updated.emit()

    def _show_result(self, result: TraceResult | None) -> None:
        self.result, self.view = result, None
        self.runs_out.hide()
        self._missing.hide()
        inputs = self._inputs
        if result is None or inputs is None:
            self._results.hide()
            return
        card = inputs.gpu.name if inputs.gpu else None
        self.view = trace_view(result, card, inputs.count)
        self.runs_out.setText(self.view.runs_out)
        self.runs_out.setVisible(bool(self.view.runs_out))
        self.timeline.set_data(TimelineData(result, card))
        self.tables.set_view(self.view)
        self._results.show()


def _load_trace_result(inputs: _EvidenceInputs) -> TraceResult | None:
    recording = find_recording(traces_dir(), inputs.digest)
    if recording is None:
        return None
    return conclude(recording, inputs.gpu, inputs.usable, inputs.count, inputs.other_processes_bytes)
