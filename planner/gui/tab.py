"""The pages of the window: what a tab is, those that ask on the left and answer on the right, and which there are."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPixmap, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.layout import hairline, in_column, in_row, scrolled
from planner.gui.widgets.result_menu import picture_of
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation


class Tab(QWidget):
    """A page of the window. Subclasses build their widgets in `__init__` and override `refresh`.

    The window makes a tab when it is first shown. `refresh` is called when the tab is shown and, while it is visible,
    after every change of the plan; a hidden tab only notes that it is out of date.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    icon_name: ClassVar[str]
    primary_action: ClassVar[str] = ""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self.workspace = workspace
        self.theme = theme
        self.tasks = tasks
        self._stale = True
        self.setAccessibleName(self.title)
        workspace.changed.connect(self._on_changed)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show `evaluation`; widgets are set with their signals blocked."""
        raise NotImplementedError

    def copy_result(self) -> str:
        """Return the tab's answer as text for the clipboard."""
        raise NotImplementedError

    def focus_search(self) -> None:
        """Put the keyboard into the tab's search field."""
        raise NotImplementedError

    def show_fitting_cards(self) -> None:
        """Narrow the tab down to cards that the plan fits on; tabs without cards have nothing to do."""

    def run_primary_action(self) -> None:
        """Do what `primary_action` says; tabs without one need not override it."""

    def shut_down(self) -> None:
        """Put away what runs beside the window; it is closed for good."""

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what changed while the tab was hidden."""
        super().showEvent(event)
        if self._stale:
            self._draw()

    @Slot(object, object)
    def _on_changed(self, _old: object, _new: object) -> None:
        self._stale = True
        if self.isVisible():
            self._draw()

    def _draw(self) -> None:
        self._stale = False
        self.refresh(self.workspace.evaluation)


class QuestionTab(Tab):
    """Questions beside a column that scrolls, which is drawn anew when another plan is pinned.

    Subclasses fill `_column` with the answer and its evidence, and then lay out the tab.
    """

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self._body = QWidget()
        space = theme.spacing
        margins = (space.large, space.medium, space.large, space.small)
        self._column = in_column(owner=self._body, margins=margins, spacing=space.medium)
        workspace.pin.changed.connect(self._on_pinned)

    def _lay_out(self, questions: QWidget, *fixed: QWidget) -> None:
        """Set `questions` beside the column; `fixed` stays above it wherever that is scrolled to."""
        self.results = scrolled(self._body)
        in_row(
            questions,
            hairline(Qt.Orientation.Vertical),
            (in_column(*fixed, (self.results, 1), spacing=0), 1),
            owner=self,
            spacing=0,
        )

    def _picture_of(self, first: QWidget, last: QWidget) -> QPixmap:
        """Return the column from `first` to `last` as it is shown."""
        return picture_of(self._body, first.geometry().united(last.geometry()), self.theme.spacing.medium)

    @Slot()
    def _on_pinned(self) -> None:
        self._on_changed(None, None)


@dataclass(frozen=True, slots=True)
class TabPlace:
    """Where a tab's class is; it is imported and built when the tab is first shown."""

    key: str
    title: str
    icon: str
    module: str
    name: str

    def build(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> Tab:
        """Import the class and make the tab."""
        make: Callable[[Workspace, Theme, TaskRunner], Tab] = getattr(import_module(self.module), self.name)
        return make(workspace, theme, tasks)


TABS: Final = (
    TabPlace("catalog", "Catalog", "catalog", "planner.gui.catalog.tab", "CatalogTab"),
    TabPlace("memory", "Memory", "memory", "planner.gui.memory.tab", "MemoryTab"),
    TabPlace("cost", "Cost", "cost", "planner.gui.cost.tab", "CostTab"),
    TabPlace("monitor", "Monitor", "monitor", "planner.gui.monitor.tab", "MonitorTab"),
)


class PinButtons(QWidget):
    """Swap and unpin; `last` takes the comparison away, to the clipboard or into a file."""

    def __init__(self, workspace: Workspace, theme: Theme, last: QAbstractButton) -> None:
        super().__init__()
        self._workspace = workspace
        self.swap = link_button("Swap", "Plan with the pinned one, and pin this one.")
        self.unpin = link_button("Unpin", "Show the plan alone again.")
        row = in_row(owner=self, spacing=theme.spacing.small)
        for button in (self.swap, self.unpin, last):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        self.swap.clicked.connect(self._swap)
        self.unpin.clicked.connect(self._unpin)

    def refresh(self) -> None:
        """Offer to swap only plans that differ."""
        self.swap.setEnabled(self._workspace.plan != self._workspace.pin.plan)

    @Slot()
    def _swap(self) -> None:
        with self._workspace.reporting():
            self._workspace.pin.swap()

    @Slot()
    def _unpin(self) -> None:
        self._workspace.pin.put(None)
