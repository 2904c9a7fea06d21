"""The Catalog tab: which cards and systems there are, and which of them the plan fits on."""

from functools import cached_property
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
)

from planner.gui.catalog.export import write_rows
from planner.gui.catalog.gpu_page import GpuPage
from planner.gui.catalog.page import Page
from planner.gui.catalog.system_page import SystemPage
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation, find_fits
from planner.present import format as fmt

_TO_TABLE = (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class CatalogTab(Tab):
    """Two views, accelerators and systems, under one search."""

    key = "catalog"
    title = "Catalog"
    icon_name = "catalog"
    primary_action = "Use this card"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.gpus = GpuPage(workspace, theme, tasks)
        self._answer = make_label(font=theme.font("answer", bold=True), wrap=True)
        self._search = QLineEdit(clearButtonEnabled=True)
        self._count = make_label(role="muted")
        self._count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._columns = QPushButton(self.tr("Col&umns"))
        self._export = QPushButton(self.tr("&Export…"))
        self._pages = QStackedWidget()
        self._switch = QButtonGroup(self)
        self._lay_out()
        self._connect()

    @property
    def page(self) -> Page:
        """Return the view that is shown."""
        return self.gpus if self._pages.currentIndex() == 0 else self.systems

    @cached_property
    def systems(self) -> SystemPage:
        """Return the view of systems, which is built when it is first wanted."""
        page = SystemPage(self.workspace, self.theme)
        self._add_page(page)
        return page

    def refresh(self, evaluation: Evaluation) -> None:
        """Judge the cards by the plan."""
        self._answer.setText(self._say(evaluation))
        self.page.refresh(evaluation)
        self._show_page()

    def copy_result(self) -> str:
        """Return the answer and the details of the chosen record."""
        return "\n\n".join(part for part in (self._answer.text(), self.page.detail.as_text()) if part)

    def focus_search(self) -> None:
        """Put the keyboard into the search."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def run_primary_action(self) -> None:
        """Use the chosen card."""
        self.page.use_current()

    def show_fitting_cards(self) -> None:
        """Show only the cards that the plan fits on."""
        self._switch.button(0).click()
        self.gpus.show_fitting()
        self.gpus.table.setFocus()

    def export_to(self, path: Path) -> None:
        """Write the rows that are shown to `path`; a failure is shown across the window."""
        with self.workspace.reporting():
            write_rows(path, self.page.export_rows())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leave the search for the table with Down or Enter, and clear it with Escape."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _TO_TABLE:
                self.page.table.enter()
                return True
            if event.key() == Qt.Key.Key_Escape and self._search.text():
                self._search.clear()
                return True
        return super().eventFilter(watched, event)

    def _say(self, evaluation: Evaluation) -> str:
        plan, catalog = self.workspace.plan, self.workspace.catalog
        fits, total = find_fits(plan, catalog), fmt.plural(len(catalog.hardware.gpus), "accelerator")
        if not fits:
            return f"{plan.model.id} does not fit on any of {total}{_each(plan.count)} as planned."
        smallest = catalog.hardware.gpu(fits[0].gpu_id).name
        return f"{plan.model.id} fits on {len(fits)} of {total}{_each(plan.count)}; the smallest is {smallest}."

    def _lay_out(self) -> None:
        space = self.theme.spacing
        bar = QHBoxLayout()
        bar.setSpacing(space.small)
        for number, title in enumerate((GpuPage.title, SystemPage.title)):
            button = QToolButton()
            button.setText(title)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._switch.addButton(button, number)
            bar.addWidget(button)
        bar.addWidget(self._search, 1)
        bar.addWidget(self._count)
        bar.addWidget(self._columns)
        bar.addWidget(self._export)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(space.medium, space.medium, space.medium, 0)
        layout.setSpacing(space.medium)
        layout.addWidget(self._answer)
        layout.addLayout(bar)
        layout.addWidget(self._pages, 1)
        self._search.addAction(self.theme.icon("search", "muted"), QLineEdit.ActionPosition.LeadingPosition)

    def _connect(self) -> None:
        self._search.installEventFilter(self)
        self._search.textChanged.connect(self._on_searched)
        self._switch.idClicked.connect(self._on_switched)
        self._columns.clicked.connect(self._open_columns)
        self._export.clicked.connect(self._choose_file)
        self._add_page(self.gpus)

    def _add_page(self, page: Page) -> None:
        self._pages.addWidget(page)
        page.counted.connect(self._show_count)
        page.searched.connect(self._show_search)

    def _show_page(self) -> None:
        self._search.setPlaceholderText(self.tr("Search %1 (Ctrl+F)").replace("%1", self.page.title.lower()))
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
        self.page.search(self._search.text())
        self.page.refresh(self.workspace.evaluation)
        self._show_page()

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
        menu = self.page.table.column_menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._columns.mapToGlobal(self._columns.rect().bottomLeft()))

    @Slot()
    def _choose_file(self) -> None:
        kinds = self.tr("Table (*.csv);;Records (*.json)")
        name, _ = QFileDialog.getSaveFileName(self, self.tr("Export"), f"{self.page.key}.csv", kinds)
        if name:
            self.export_to(Path(name))


def _of(shown: int, every: int, noun: str) -> str:
    return f"{fmt.integer(shown)} of {fmt.plural(every, noun)}"


def _each(count: int) -> str:
    return f", {fmt.integer(count)} of each," if count > 1 else ""
