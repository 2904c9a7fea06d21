"""What a trace found as tables: modules, what is alive at the peak, reserved memory, and what was assumed."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QGridLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import ScrollColumn, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, numbers, words
from planner.present.record_text import to_csv, to_tsv
from planner.present.trace.view import CATEGORY_TITLES, AliveRow, ModuleRow, TraceView
from planner.trace.facts import CATEGORIES, Category

_NOTHING: Final = "–"
_HEIGHT: Final = 270
_ALWAYS_COLUMNS: Final = 4


def _size(value: float) -> str:
    return fmt.size(round(value))


def _held(row: ModuleRow, category: Category) -> int | None:
    return dict(row.shares).get(category)


def _of_category(category: Category) -> Column[ModuleRow]:
    return numbers(
        category,
        CATEGORY_TITLES[category],
        partial(_held, category=category),
        show=_size,
        unknown=_NOTHING,
        width=11,
        meter=True,
        shown=False,
    )


MODULE_COLUMNS: Final[tuple[Column[ModuleRow], ...]] = (
    words("module", "Module", lambda row: row.title, width=24, tooltip=lambda row: row.title),
    words("class", "Class", lambda row: row.class_name, width=16),
    numbers(
        "own",
        "Own parameters",
        lambda row: row.parameters,
        show=lambda value: fmt.parameters(round(value)),
        width=12,
    ),
    numbers(
        "bytes",
        "At the peak",
        lambda row: row.bytes,
        show=_size,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak\n{row.holds}".strip(),
    ),
    *map(_of_category, CATEGORIES),
)

ALIVE_COLUMNS: Final[tuple[Column[AliveRow], ...]] = (
    words("operator", "Made by", lambda row: row.operator, width=28),
    numbers(
        "bytes",
        "Bytes",
        lambda row: row.bytes,
        show=_size,
        width=12,
        meter=True,
        tooltip=lambda row: f"{row.exact}, {row.share_text} of the peak",
    ),
    words("category", "What", lambda row: row.title, width=16),
    words("shape", "Shape", lambda row: row.shape, unknown=_NOTHING, width=24),
    words("module", "Module", lambda row: row.module, unknown=_NOTHING, width=24),
    words("line", "Line", lambda row: row.place, unknown=_NOTHING, width=20, tooltip=lambda row: row.line),
)


def alive_id(row: AliveRow) -> str:
    """Return what tells a row of what is alive from the others."""
    return "\t".join((row.category, row.module, row.operator, row.line, row.shape))


@dataclass(frozen=True, slots=True)
class Block:
    """Something to say; `pairs` are figures with their names, each with what its tooltip says."""

    heading: str = ""
    text: str = ""
    source: str = ""
    pairs: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """Return all of it as text."""
        figures = (f"{title}: {text}{f' ({exact})' if exact else ''}" for title, text, exact in self.pairs)
        return "\n".join(part for part in (self.heading, *figures, self.text, self.source) if part)


class BlockPage(ScrollColumn):
    """Shows blocks one under the other; their text can be selected."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._blocks: tuple[Block, ...] = ()
        self.setAccessibleName(name)

    @property
    def text(self) -> str:
        """Return what is shown."""
        return "\n\n".join(block.words for block in self._blocks)

    def set_blocks(self, blocks: tuple[Block, ...]) -> None:
        """Show other blocks."""
        self._blocks = blocks
        body = QWidget()
        column = in_column(owner=body, margins=(0, self._theme.spacing.tiny, 0, 0), spacing=self._theme.spacing.medium)
        for block in blocks:
            column.addLayout(self._lay(block))
        column.addStretch(1)
        self.setWidget(body)
        self.setAccessibleDescription(self.text)

    def minimumSizeHint(self) -> QSize:
        """Ask for no room of its own."""
        return QSize()

    def _lay(self, block: Block) -> QVBoxLayout:
        layout = in_column(spacing=2)
        if block.heading:
            layout.addWidget(make_label(block.heading, font=self._theme.font(bold=True), wrap=True, selectable=True))
        if block.pairs:
            layout.addLayout(self._grid(block))
        if block.text:
            layout.addWidget(make_label(block.text, wrap=True, selectable=True))
        if block.source:
            layout.addWidget(make_label(block.source, "muted", self._theme.font("small"), wrap=True, selectable=True))
        return layout

    def _grid(self, block: Block) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(self._theme.spacing.huge)
        grid.setVerticalSpacing(self._theme.spacing.tiny)
        grid.setColumnStretch(1, 1)
        for row, (title, text, exact) in enumerate(block.pairs):
            grid.addWidget(make_label(title, "muted"), row, 0)
            figure = make_label(text, selectable=True)
            figure.setToolTip(exact)
            grid.addWidget(figure, row, 1)
        return grid


def reserved_blocks(view: TraceView) -> tuple[Block, ...]:
    """Return what the caching allocator takes, and where it would run out of memory."""
    pairs = tuple((row.title, row.text, row.exact) for row in view.reservation)
    runs_out = (Block(text=view.runs_out),) if view.runs_out else ()
    return (*runs_out, Block(pairs=pairs), Block(source=view.traced_with))


def difference_blocks(view: TraceView) -> tuple[Block, ...]:
    """Return what was assumed, and what no trace sees, each with its bounds and its source."""
    if not view.differences:
        return (Block(text="Nothing was assumed, and nothing is known to have gone unseen."),)
    return tuple(
        Block(
            heading=row.name,
            text=f"{row.explanation[:1].upper()}{row.explanation[1:]}.".replace("..", "."),
            pairs=(("Counted as", row.amount, ""), *((("Lies within", row.range_text, ""),) if row.range_text else ())),
            source=" · ".join(part for part in (row.place, row.source) if part),
        )
        for row in view.differences
    )


class TraceTables(QWidget):
    """One of the tables at a time, chosen by its name; `failed` carries a `PlannerError` that saving met."""

    failed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.modules = RecordTable(RecordTableModel(MODULE_COLUMNS, lambda row: row.path, self), theme)
        self.alive = RecordTable(RecordTableModel(ALIVE_COLUMNS, alive_id, self), theme)
        self.modules.setAccessibleName("Modules and what they hold at the peak")
        self.alive.setAccessibleName("What is alive at the peak")
        self.reserved = BlockPage(theme, "Reserved memory")
        self.assumed = BlockPage(theme, "What was assumed")
        self._pages = QStackedWidget()
        self._group = QButtonGroup(self)
        self._bar = in_row(spacing=theme.spacing.tiny)
        self._add("Modules", self.modules)
        self._add("Alive at the peak", self.alive)
        self._add("Reserved memory", self.reserved)
        self._add("Assumed", self.assumed)
        self._bar.addStretch(1)
        self._bar.addWidget(self._export(theme))
        self._group.buttons()[0].setChecked(True)
        in_column(self._bar, (self._pages, 1), owner=self, spacing=theme.spacing.tiny)
        self.setMinimumHeight(_HEIGHT)

    def set_view(self, view: TraceView) -> None:
        """Show another trace; the columns are those of the categories that hold anything."""
        held = {category for row in view.modules for category, _ in row.shares}
        self.modules.records().set_records(view.modules)
        for category in CATEGORIES:
            self.modules.setColumnHidden(self.modules.records().column_of(category), category not in held)
        self.alive.records().set_records(view.alive)
        self.reserved.set_blocks(reserved_blocks(view))
        self.assumed.set_blocks(difference_blocks(view))

    def show_page(self, number: int) -> None:
        """Show the table of this number."""
        self._group.buttons()[number].setChecked(True)
        self._pages.setCurrentIndex(number)

    @Slot()
    def copy(self) -> None:
        """Put what is shown on the clipboard, tables with tabs between their columns."""
        shown = self._pages.currentWidget()
        if isinstance(shown, BlockPage):
            QGuiApplication.clipboard().setText(shown.text)
        elif isinstance(shown, RecordTable):
            QGuiApplication.clipboard().setText(to_tsv(shown.visible_columns, shown.records().records))

    @Slot()
    def save(self) -> None:
        """Ask for a file and write the modules, or what is alive at the peak, as CSV with exact bytes."""
        name, _ = QFileDialog.getSaveFileName(self, "Save the table", "trace.csv", "Table (*.csv)")
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Write what is alive if that is shown, else the modules; what fails is emitted."""
        table = self.alive if self._pages.currentWidget() is self.alive else self.modules
        columns = table.visible_columns
        rows = [{column.key: column.value(record) for column in columns} for record in table.records().records]
        try:
            path.write_text(to_csv([column.key for column in columns], rows), encoding="utf-8", newline="")
        except OSError as error:
            self.failed.emit(PlannerError(f"{path}: {error.strerror or error}", "Choose another folder."))

    def _add(self, title: str, page: QWidget) -> None:
        button = QToolButton()
        button.setText(title)
        button.setCheckable(True)
        button.clicked.connect(partial(self._on_clicked, self._pages.count()))
        self._group.addButton(button)
        self._bar.addWidget(button)
        self._pages.addWidget(page)

    def _on_clicked(self, number: int, _checked: bool = True) -> None:
        self.show_page(number)

    def _export(self, theme: Theme) -> IconButton:
        button = IconButton(theme, "save", "Copy or save the table")
        menu = QMenu(self)
        menu.addAction("Copy", self.copy)
        menu.addAction("Save…", self.save)
        button.set_menu(menu)
        return button


def trace_text(view: TraceView) -> str:
    """Return the tables as text."""
    alive = to_tsv(ALIVE_COLUMNS, view.alive)
    modules = to_tsv(MODULE_COLUMNS[:_ALWAYS_COLUMNS], view.modules)
    blocks = (*reserved_blocks(view), *difference_blocks(view))
    return "\n\n".join((view.subject, alive.rstrip(), modules.rstrip(), *(block.words for block in blocks)))
