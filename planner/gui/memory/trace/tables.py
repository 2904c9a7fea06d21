"""What a trace found as tables: modules, what is alive at the peak, reserved memory, and what was assumed."""

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.memory.trace.columns import ALIVE_COLUMNS, MODULE_COLUMNS, alive_id
from planner.gui.memory.trace.pages import BlockPage, difference_blocks, reserved_blocks
from planner.gui.theme import Theme
from planner.gui.widgets.icon_button import IconButton
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.present.record_text import to_csv, to_tsv
from planner.present.trace.view import TraceView
from planner.trace.recording import CATEGORIES

_HEIGHT: Final = 270
_ALWAYS_COLUMNS: Final = 4


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
        self._bar = QHBoxLayout()
        self._bar.setSpacing(theme.spacing.tiny)
        self._add("Modules", self.modules)
        self._add("Alive at the peak", self.alive)
        self._add("Reserved memory", self.reserved)
        self._add("Assumed", self.assumed)
        self._bar.addStretch(1)
        self._bar.addWidget(self._export(theme))
        self._group.buttons()[0].setChecked(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addLayout(self._bar)
        layout.addWidget(self._pages, 1)
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
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        return button


def trace_text(view: TraceView) -> str:
    """Return the tables as text."""
    alive = to_tsv(ALIVE_COLUMNS, view.alive)
    modules = to_tsv(MODULE_COLUMNS[:_ALWAYS_COLUMNS], view.modules)
    blocks = (*reserved_blocks(view), *difference_blocks(view))
    return "\n\n".join((view.subject, alive.rstrip(), modules.rstrip(), *(block.words for block in blocks)))
