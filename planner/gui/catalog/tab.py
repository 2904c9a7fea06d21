"""The Catalog tab: which cards and systems there are, and which of them the plan fits on."""

from functools import cached_property, partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
)

from planner.gui.catalog.compare.page import ComparePage
from planner.gui.catalog.export import write_rows
from planner.gui.catalog.export_menu import ExportMenu
from planner.gui.catalog.filters import CatalogFilter
from planner.gui.catalog.gpu_page import GpuPage
from planner.gui.catalog.page import Page
from planner.gui.catalog.saved_filters import SavedFilters
from planner.gui.catalog.settings import View
from planner.gui.catalog.system_page import SystemPage
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.hairline import hairline
from planner.gui.widgets.label import make_label
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation, find_fits
from planner.present import format as fmt

VIEWS: Final[dict[View, str]] = {"table": "Table", "scatter": "Scatter", "compare": "Compare"}
_TO_TABLE = (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class CatalogTab(Tab):
    """Accelerators and systems under one search, as a table or a plot, and some of them side by side."""

    key = "catalog"
    title = "Catalog"
    icon_name = "catalog"
    primary_action = "Use this card"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.gpus = GpuPage(workspace, theme, tasks)
        self.compare = ComparePage(workspace, theme, tasks)
        self._answer = make_label(font=theme.font("answer", bold=True), wrap=True)
        self._search = QLineEdit(clearButtonEnabled=True)
        self._count = make_label(role="muted")
        self._count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.saved = SavedFilters(workspace, lambda: self.gpus.filter, self)
        self._saved = QPushButton(self.tr("Fi&lters"))
        self._columns = QPushButton(self.tr("Col&umns"))
        self._export = QPushButton(self.tr("&Export"))
        self._export_menu = ExportMenu(self, self)
        self._stack = QStackedWidget()
        self._pages = QStackedWidget()
        self._switch, self._views = QButtonGroup(self), QButtonGroup(self)
        self._lay_out()
        self._connect()

    @property
    def page(self) -> Page:
        """Return the view that is shown."""
        return self.gpus if self._pages.currentIndex() == 0 else self.systems

    @property
    def view(self) -> View:
        """Return how the records are shown."""
        return tuple(VIEWS)[self._views.checkedId()]

    @cached_property
    def systems(self) -> SystemPage:
        """Return the view of systems, which is built when it is first wanted."""
        page = SystemPage(self.workspace, self.theme, self.gpus.lookups)
        self._add_page(page)
        return page

    def refresh(self, evaluation: Evaluation) -> None:
        """Judge the cards by the plan."""
        self.page.refresh(evaluation)
        self._answer.setText(self._say())
        if self.view == "compare":
            self.compare.refresh()
        self._show_page()

    def copy_result(self) -> str:
        """Return the answer and the details of the chosen record, or what is side by side."""
        if self.view == "compare":
            return self.compare.as_markdown()
        return "\n\n".join(part for part in (self._answer.text(), self.page.detail.as_text()) if part)

    def focus_search(self) -> None:
        """Put the keyboard into the search."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def run_primary_action(self) -> None:
        """Use the chosen card."""
        if self.view == "compare":
            self.compare.use_current()
        else:
            self.page.use_current()

    def show_fitting_cards(self) -> None:
        """Show only the cards that the plan fits on."""
        self._switch.button(0).click()
        self.show_view("table")
        self.gpus.show_fitting()
        self.gpus.table.setFocus()

    def show_view(self, view: View) -> None:
        """Show the records as a table, as a plot, or some of them side by side."""
        self._views.button(tuple(VIEWS).index(view)).setChecked(True)
        self._on_view(tuple(VIEWS).index(view))

    def compare_records(self, names: tuple[str, ...]) -> None:
        """Put records side by side with those that are there."""
        self.compare.add(tuple(f"{self.page.key}:{name}" for name in names))
        self.show_view("compare")

    def apply_filter(self, wanted: CatalogFilter) -> None:
        """Narrow the accelerators as `wanted` says."""
        self._switch.button(0).click()
        self.gpus.narrow(wanted)

    def compare_chosen(self) -> None:
        """Put what is chosen in the table or the plot side by side with what is there."""
        self.page.compare_current()

    def show_columns(self, name: str) -> None:
        """Show a set of columns of the accelerators."""
        self._switch.button(0).click()
        self.show_view("table")
        self.gpus.show_columns(name)

    def swap_page(self) -> None:
        """Show the systems instead of the accelerators, or the other way round."""
        self._switch.button(1 if self.page is self.gpus else 0).click()

    def save(self) -> None:
        """Ask for a file and write what is shown."""
        self._export_menu.save()

    def open_saved(self) -> None:
        """Open the menu of saved filters."""
        self._saved.showMenu()

    def export_to(self, path: Path) -> None:
        """Write the rows that are shown to `path`; a failure is shown across the window."""
        with self.workspace.reporting():
            if self.view == "compare":
                self.compare.save_to(path)
            else:
                write_rows(path, self.page.export_rows())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leave the search for the table with Down or Enter, and clear it with Escape."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _TO_TABLE:
                self.page.enter()
                return True
            if event.key() == Qt.Key.Key_Escape and self._search.text():
                self._search.clear()
                return True
        return super().eventFilter(watched, event)

    def _say(self) -> str:
        if self.page is not self.gpus:
            return self.systems.sentence()
        plan, catalog = self.workspace.plan, self.workspace.catalog
        fits, total = find_fits(plan, catalog), fmt.plural(len(catalog.hardware.gpus), "accelerator")
        if not fits:
            return f"{plan.model.id} does not fit on any of {total}{_each(plan.count)} as planned."
        smallest = catalog.hardware.gpu(fits[0].gpu_id).name
        return f"{plan.model.id} fits on {len(fits)} of {total}{_each(plan.count)}. The smallest is {smallest}."

    def _lay_out(self) -> None:
        space = self.theme.spacing
        bar = QHBoxLayout()
        bar.setSpacing(space.small)
        for number, view in enumerate((GpuPage.title, SystemPage.title)):
            button = QToolButton()
            button.setText(view)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._switch.addButton(button, number)
            bar.addWidget(button)
        bar.addWidget(hairline(Qt.Orientation.Vertical))
        for number, words in enumerate(VIEWS.values()):
            button = QToolButton()
            button.setText(words)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._views.addButton(button, number)
            bar.addWidget(button)
        bar.addWidget(self._search, 1)
        for widget in (self._count, self._saved, self._columns, self._export):
            bar.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(space.medium, space.medium, space.medium, 0)
        layout.setSpacing(space.medium)
        layout.addWidget(self._answer)
        layout.addLayout(bar)
        layout.addWidget(self._stack, 1)
        self._stack.addWidget(self._pages)
        self._stack.addWidget(self.compare)
        self._search.addAction(self.theme.icon("search", "muted"), QLineEdit.ActionPosition.LeadingPosition)

    def _connect(self) -> None:
        self._search.installEventFilter(self)
        self._search.textChanged.connect(self._on_searched)
        self._switch.idClicked.connect(self._on_switched)
        self._views.idClicked.connect(self._on_view)
        self._columns.clicked.connect(self._open_columns)
        self._export.setMenu(self._export_menu)
        self._saved.setMenu(self.saved)
        self.saved.applied.connect(self.apply_filter)
        self.compare.table_wanted.connect(partial(self.show_view, "table"))
        self._add_page(self.gpus)
        self.show_view(self.workspace.settings.current.catalog.view)

    def _add_page(self, page: Page) -> None:
        self._pages.addWidget(page)
        page.counted.connect(self._show_count)
        page.comparison_wanted.connect(self.compare_records)
        page.searched.connect(self._show_search)

    def _show_page(self) -> None:
        hint = self.tr(", or: at least 24 GiB under 2,000 USD") if self.page is self.gpus else ""
        words = self.tr("Search %1 (Ctrl+F)").replace("%1", self.page.title.lower())
        self._search.setPlaceholderText(f"{words}{hint}")
        self._search.setAccessibleName(self.tr("Search %1").replace("%1", self.page.title.lower()))
        self._hold_count()
        self._show_count()

    def _hold_count(self) -> None:
        """Give the count a size of its own, or every letter of a search would lay out the whole window again."""
        every = len(self.page.model.all_records)
        self._count.setMinimumSize(0, 0)
        self._count.setText(_of(every, every, self.page.noun))
        self._count.setFixedSize(self._count.sizeHint())

    @Slot(str)
    def _on_searched(self, text: str) -> None:
        self.page.search(text)

    @Slot(int)
    def _on_switched(self, number: int) -> None:
        self._pages.setCurrentWidget(self.systems if number else self.gpus)
        if self.view != "compare":
            self.page.show_view(self.view)
        self.page.search(self._search.text())
        self.refresh(self.workspace.evaluation)

    @Slot(int)
    def _on_view(self, number: int) -> None:
        view = tuple(VIEWS)[number]
        settings = self.workspace.settings
        settings.update(catalog=settings.current.catalog.evolve(view=view))
        comparing = view == "compare"
        self._stack.setCurrentIndex(1 if comparing else 0)
        for widget in (*self._switch.buttons(), self._search, self._count, self._saved):
            widget.setEnabled(not comparing)
        self._columns.setEnabled(view == "table")
        if comparing:
            self.compare.refresh()
        else:
            self.page.show_view(view)

    @Slot()
    def _show_count(self) -> None:
        shown, every = self.page.model.rowCount(), len(self.page.model.all_records)
        self._count.setText(_of(shown, every, self.page.noun))

    @Slot(str)
    def _show_search(self, text: str) -> None:
        with QSignalBlocker(self._search):
            self._search.setText(text)

    @Slot()
    def _open_columns(self) -> None:
        menu = self.page.column_menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._columns.mapToGlobal(self._columns.rect().bottomLeft()))


def _of(shown: int, every: int, noun: str) -> str:
    return f"{fmt.integer(shown)} of {fmt.plural(every, noun)}"


def _each(count: int) -> str:
    return f" ({fmt.integer(count)} of each)" if count > 1 else ""
