"""Evidence for a traced plan: comparison with the estimate, timeline of live memory, and tables of the recording."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QGridLayout,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.memory.trace.timeline import TimelineData, TimelinePanel
from planner.gui.memory.trace.tracer import EstimateCheck, Tracer
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton, link_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import ScrollColumn, in_column, in_grid, in_row
from planner.gui.widgets.result_menu import ExportMenu, FileFormat
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.result import MemoryResult
from planner.paths import traces_dir
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column, to_csv, to_tsv
from planner.present.memory.comparison import ComparisonRow, compare_parts, comparison_sentence
from planner.present.trace import CATEGORY_TITLES, AliveRow, ModuleRow, TraceView, trace_view
from planner.trace.analysis.memory import traced_memory
from planner.trace.analysis.trace_result import conclude
from planner.trace.files import find_recording
from planner.trace.recording import CATEGORIES, Category
from planner.trace.result import TraceResult

_EMPTY_CELL: Final = "–"
_TABLE_HEIGHT: Final = 270
_ALWAYS_COLUMNS: Final = 4


def _size_text(value: float) -> str:
    return fmt.size(round(value))


def _live_category_bytes(row: ModuleRow, category: Category) -> int | None:
    return dict(row.shares).get(category)


def _category_column(category: Category) -> Column[ModuleRow]:
    return number_column(
        category,
        CATEGORY_TITLES[category],
        partial(_live_category_bytes, category=category),
        show=_size_text,
        unknown=_EMPTY_CELL,
        width=11,
        meter=True,
        shown=False,
        about="Memory of this kind at the peak",
    )


MODULE_COLUMNS: Final[tuple[Column[ModuleRow], ...]] = (
    text_column(
        "module",
        "Module",
        lambda row: row.title,
        width=24,
        tooltip=lambda row: row.title,
        about="Module of the network, by its path from the root",
    ),
    text_column("class", "Class", lambda row: row.class_name, width=16, about="Python class of the module"),
    number_column(
        "own",
        "Own parameters",
        lambda row: row.parameters,
        show=lambda value: fmt.parameters(round(value)),
        width=12,
        about="Parameters of the module without those of its children",
    ),
    number_column(
        "bytes",
        "At the peak",
        lambda row: row.bytes,
        show=_size_text,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak\n{row.holds}".strip(),
        about="Memory that is alive at the peak",
    ),
    *map(_category_column, CATEGORIES),
)

ALIVE_COLUMNS: Final[tuple[Column[AliveRow], ...]] = (
    text_column(
        "operator", "Operator", lambda row: row.operator, width=20, about="PyTorch operator that allocated the memory"
    ),
    number_column(
        "bytes",
        "Bytes",
        lambda row: row.bytes,
        show=_size_text,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak",
        about="Memory that is alive at the peak",
    ),
    text_column(
        "category",
        "Category",
        lambda row: row.title,
        width=16,
        about="What the tensor is: parameter, gradient, activation …",
    ),
    text_column(
        "shape",
        "Shape",
        lambda row: row.shape,
        unknown=_EMPTY_CELL,
        width=24,
        about="Size of the tensor in each dimension",
    ),
    text_column(
        "module",
        "Module",
        lambda row: row.module,
        unknown=_EMPTY_CELL,
        width=24,
        about="Module of the network, by its path from the root",
    ),
    text_column(
        "line",
        "Line",
        lambda row: row.place,
        unknown=_EMPTY_CELL,
        width=20,
        tooltip=lambda row: row.line,
        about="Line of the program that allocated the memory",
    ),
)


def alive_id(row: AliveRow) -> str:
    """Return the row id for a tensor alive at the peak."""
    return "\t".join((row.category, row.module, row.operator, row.line, row.shape))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Paragraph about a trace with heading, figures, text and source; `pairs` are (title, figure, tooltip)."""

    heading: str = ""
    text: str = ""
    source: str = ""
    pairs: tuple[tuple[str, str, str], ...] = ()

    @property
    def plain_text(self) -> str:
        """Return the paragraph as plain text."""
        figures = (f"{title}: {text}{f' ({exact})' if exact else ''}" for title, text, exact in self.pairs)
        return "\n".join(part for part in (self.heading, *figures, self.text, self.source) if part)


class ParagraphPage(ScrollColumn):
    """Scrollable page of paragraphs with selectable text."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._blocks: tuple[Paragraph, ...] = ()
        self.setAccessibleName(name)

    @property
    def text(self) -> str:
        """Return the shown paragraphs as text."""
        return "\n\n".join(block.plain_text for block in self._blocks)

    def set_blocks(self, blocks: tuple[Paragraph, ...]) -> None:
        """Replace the paragraphs."""
        self._blocks = blocks
        body = QWidget()
        column = in_column(owner=body, margins=(0, self._theme.spacing.tiny, 0, 0), spacing=self._theme.spacing.medium)
        for block in blocks:
            column.addLayout(self._make_paragraph_layout(block))
        column.addStretch(1)
        self.setWidget(body)
        self.setAccessibleDescription(self.text)

    def minimumSizeHint(self) -> QSize:
        """Return no minimum size."""
        return QSize()

    def _make_paragraph_layout(self, block: Paragraph) -> QVBoxLayout:
        layout = in_column(spacing=2)
        if block.heading:
            layout.addWidget(make_label(block.heading, font=self._theme.font(bold=True), wrap=True, selectable=True))
        if block.pairs:
            layout.addLayout(self._make_figure_grid(block))
        if block.text:
            layout.addWidget(make_label(block.text, wrap=True, selectable=True))
        if block.source:
            layout.addWidget(make_label(block.source, "muted", self._theme.font("small"), wrap=True, selectable=True))
        return layout

    def _make_figure_grid(self, block: Paragraph) -> QGridLayout:
        space = self._theme.spacing
        grid = in_grid(across=space.huge, down=space.tiny, stretched=1, margins=None)
        for row, (title, text, exact) in enumerate(block.pairs):
            grid.addWidget(make_label(title, "muted"), row, 0)
            figure = make_label(text, selectable=True)
            figure.setToolTip(exact)
            grid.addWidget(figure, row, 1)
        return grid


def reserved_paragraphs(view: TraceView) -> tuple[Paragraph, ...]:
    """Return paragraphs on the memory reserved by the caching allocator and on where memory runs out, if it does."""
    pairs = tuple((row.title, row.text, row.exact) for row in view.reservation)
    runs_out = (Paragraph(text=view.runs_out),) if view.runs_out else ()
    return (*runs_out, Paragraph(pairs=pairs), Paragraph(source=view.traced_with))


def difference_paragraphs(view: TraceView) -> tuple[Paragraph, ...]:
    """Return paragraphs on assumptions and untraced allocations, each with its memory range and its source."""
    if not view.differences:
        return (Paragraph(text="No assumptions were made, and no allocations are known to be missing."),)
    return tuple(
        Paragraph(
            heading=row.name,
            text=fmt.sentence(row.explanation),
            pairs=(("Counted as", row.amount, ""), ("Range", row.range_text, "")),
            source=" · ".join(part for part in (row.place, row.source) if part),
        )
        for row in view.differences
    )


class TraceTables(QWidget):
    """Tables of a trace, one at a time; `failed` carries the `PlannerError` of a failed save."""

    failed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.modules = RecordTable(RecordTableModel(MODULE_COLUMNS, lambda row: row.path, self), theme)
        self.alive = RecordTable(RecordTableModel(ALIVE_COLUMNS, alive_id, self), theme)
        self.modules.setAccessibleName("Memory of the modules at the peak")
        self.alive.setAccessibleName("Tensors alive at the peak")
        self.reserved = ParagraphPage(theme, "Reserved memory")
        self.assumed = ParagraphPage(theme, "Assumptions")
        self.run_notes = ParagraphPage(theme, "How it was run")
        self._pages = QStackedWidget()
        self._group = QButtonGroup(self)
        self._bar = in_row(spacing=theme.spacing.tiny)
        self._add_page("Modules", self.modules)
        self._add_page("Alive at the peak", self.alive)
        self._add_page("Reserved memory", self.reserved)
        self._add_page("Assumptions", self.assumed)
        self._run_notes_button = self._add_page("How it was run", self.run_notes)
        self._bar.addStretch(1)
        self._bar.addWidget(self._make_export_button(theme))
        self._group.buttons()[0].setChecked(True)
        in_column(self._bar, (self._pages, 1), owner=self, spacing=theme.spacing.tiny)
        self.setMinimumHeight(_TABLE_HEIGHT)

    def set_view(self, view: TraceView) -> None:
        """Show a trace, with columns for the categories that occur."""
        held = {category for row in view.modules for category, _ in row.shares}
        self.modules.records().set_records(view.modules)
        for category in CATEGORIES:
            self.modules.setColumnHidden(self.modules.records().column_of(category), category not in held)
        self.alive.records().set_records(view.alive)
        self.reserved.set_blocks(reserved_paragraphs(view))
        self.assumed.set_blocks(difference_paragraphs(view))
        self.run_notes.set_blocks(tuple(Paragraph(text=note) for note in view.run_notes))
        if not view.run_notes and self._run_notes_button.isChecked():
            self.show_page(0)
        self._run_notes_button.setVisible(bool(view.run_notes))

    def show_page(self, number: int) -> None:
        """Show the page `number` of the tables: 0 is the first."""
        self._group.buttons()[number].setChecked(True)
        self._pages.setCurrentIndex(number)

    def _page_text(self) -> str:
        """Return the current page as text; tables are tab-separated."""
        page = self._pages.currentWidget()
        if isinstance(page, RecordTable):
            return to_tsv(page.visible_columns, page.records().records)
        return page.text if isinstance(page, ParagraphPage) else ""

    def _table_csv(self) -> str:
        """Return the shown table (tensors alive at the peak, or else the modules) as CSV with exact sizes in bytes."""
        table = self.alive if self._pages.currentWidget() is self.alive else self.modules
        columns = table.visible_columns
        rows = [{column.key: column.value(record) for column in columns} for record in table.records().records]
        return to_csv([column.key for column in columns], rows)

    def _add_page(self, title: str, page: QWidget) -> QToolButton:
        button = QToolButton()
        button.setText(title)
        button.setCheckable(True)
        button.clicked.connect(partial(self._on_page_chosen, self._pages.count()))
        self._group.addButton(button)
        self._bar.addWidget(button)
        self._pages.addWidget(page)
        return button

    def _on_page_chosen(self, number: int, _checked: bool = True) -> None:
        self.show_page(number)

    def _make_export_button(self, theme: Theme) -> IconButton:
        formats = (FileFormat("Table", ".csv", self._table_csv),)
        self.export = ExportMenu("table", "trace", {"Copy": self._page_text}, formats, self)
        self.export.failed.connect(self.failed)
        button = IconButton(theme, "save", "Copy or save the table")
        button.set_menu(self.export)
        return button


def trace_text(view: TraceView) -> str:
    """Return all tables as text."""
    alive = to_tsv(ALIVE_COLUMNS, view.alive)
    modules = to_tsv(MODULE_COLUMNS[:_ALWAYS_COLUMNS], view.modules)
    blocks = (*reserved_paragraphs(view), *difference_paragraphs(view))
    paragraphs = (*(block.plain_text for block in blocks), *view.run_notes)
    return "\n\n".join((view.subject, alive.rstrip(), modules.rstrip(), *paragraphs))


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
