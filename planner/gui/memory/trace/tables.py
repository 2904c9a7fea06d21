"""Tables of a trace: modules, tensors alive at the peak, reserved memory, assumptions, and how it was run."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QGridLayout,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import ScrollColumn, in_column, in_grid, in_row
from planner.gui.widgets.result_menu import ExportMenu, FileFormat
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column, to_csv, to_tsv
from planner.present.trace.view import CATEGORY_TITLES, AliveRow, ModuleRow, TraceView
from planner.trace.recording import CATEGORIES, Category

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
        "operator", "Operator", lambda row: row.operator, width=28, about="PyTorch operator that allocated the memory"
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
            text=f"{row.explanation[:1].upper()}{row.explanation[1:]}.".replace("..", "."),
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
