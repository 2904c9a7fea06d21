"""Base classes of tabs, the list of tabs, and the buttons for the pinned plan."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent, QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QPushButton, QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton, link_button
from planner.gui.widgets.layout import STRETCH, hairline, in_column, in_row, scrolled
from planner.gui.widgets.result_menu import ResultFormats, ResultMenu, picture_of
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation


class Tab(QWidget):
    """Tab of the window. Subclasses build their widgets in `__init__` and override `refresh`.

    The window creates a tab while it is idle, or when the tab is first shown. `refresh` is called after every change of
    the plan while the tab is visible, and otherwise when it is shown again.
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
        workspace.changed.connect(self._on_plan_changed)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show `evaluation` with the widgets' signals blocked."""
        raise NotImplementedError

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """Return the parts of the tab between which F6 moves."""
        return (self,)

    def prepare(self) -> Iterator[object]:
        """Create in short steps the parts that are otherwise created on first use; none by default."""
        yield from ()

    def copy_result(self) -> str:
        """Return the tab's result as text for the clipboard."""
        raise NotImplementedError

    def focus_search(self) -> None:
        """Move the keyboard focus to the tab's search field."""
        raise NotImplementedError

    def show_fitting_cards(self) -> None:
        """Show only the cards on which the plan fits; does nothing in tabs without cards."""

    def run_primary_action(self) -> None:
        """Run the tab's main action, named by `primary_action`; does nothing in tabs without a main action."""

    def set_narrow(self, is_narrow: bool) -> None:
        """Lay out the tab for a window that is narrow or not; does nothing in tabs that always look the same."""

    def open_questions(self) -> None:
        """Show the questions that a narrow window hides; does nothing in tabs without questions."""

    def shut_down(self) -> None:
        """Stop background work because the window is closing."""

    def showEvent(self, event: QShowEvent) -> None:
        """Refresh the tab if the plan changed while it was hidden."""
        super().showEvent(event)
        self.catch_up()

    def catch_up(self) -> None:
        """Refresh the tab if the plan changed while it was hidden."""
        if self._stale:
            self._refresh_now()

    @Slot(object, object)
    def _on_plan_changed(self, _old: object, _new: object) -> None:
        self._stale = True
        if self.isVisible():
            self._refresh_now()

    def _refresh_now(self) -> None:
        self._stale = False
        self.refresh(self.workspace.evaluation)


class QuestionTab(Tab):
    """Tab with a question form on the left and a scrolling column of results on the right.

    Subclasses fill `_column` and then call `_lay_out`. The results are refreshed when another plan is pinned.
    """

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self._body = QWidget()
        space = theme.spacing
        margins = (space.large, space.medium, space.large, space.small)
        self._column = in_column(owner=self._body, margins=margins, spacing=space.medium)
        workspace.pin.changed.connect(self._on_pinned_plan_changed)

    def _lay_out(self, questions: QWidget, *fixed: QWidget) -> None:
        """Place the form `questions` to the left of the results; the `fixed` widgets do not scroll with the results."""
        self.results = scrolled(self._body)
        self._questions = QWidget()
        self._questions.setAutoFillBackground(True)
        in_row(questions, hairline(Qt.Orientation.Vertical), owner=self._questions, spacing=0)
        self.drawer = IconButton(self.theme, "tune", "Show or hide the questions about the plan.")
        self.drawer.setText("Questions")
        self.drawer.setAccessibleName("Questions")
        self.drawer.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.drawer.setCheckable(True)
        self.drawer.toggled.connect(self._questions.setVisible)
        self.drawer.hide()
        space = self.theme.spacing
        handle = in_row(self.drawer, STRETCH, margins=(space.small, space.tiny))
        column = in_column(handle, *fixed, (self.results, 1), spacing=0)
        self._row = in_row(self._questions, (column, 1), owner=self, spacing=0)

    @property
    def panes(self) -> tuple[QWidget, ...]:
        """Return the questions and the results."""
        return self._questions, self.results

    def set_narrow(self, is_narrow: bool) -> None:
        """Hide the questions in a drawer over the results, which a button opens, or show them beside the results."""
        if is_narrow != self.drawer.isHidden():
            return
        self.drawer.setVisible(is_narrow)
        if is_narrow:
            self._row.removeWidget(self._questions)
            self._questions.setVisible(self.drawer.isChecked())
            self._place_drawer()
        else:
            self._row.insertWidget(0, self._questions)
            self._questions.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the drawer the height of the results."""
        super().resizeEvent(event)
        self._place_drawer()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close the drawer."""
        if event.key() == Qt.Key.Key_Escape and self.drawer.isVisible() and self.drawer.isChecked():
            self.drawer.setChecked(False)
            self.drawer.setFocus()
        else:
            super().keyPressEvent(event)

    def _place_drawer(self) -> None:
        if not self.drawer.isHidden():
            top = self.drawer.sizeHint().height()
            self._questions.setGeometry(0, top, self._questions.sizeHint().width(), self.height() - top)
            self._questions.raise_()

    def open_questions(self) -> None:
        """Open the drawer if there is one."""
        self.drawer.setChecked(True)

    def _make_copy_menu(self, button: QPushButton, csv: Callable[[], str], json: Callable[[], str]) -> None:
        """Let `button` copy or save the tab's result."""
        self.copy_menu = ResultMenu(ResultFormats(self.copy_result, csv, json, self.picture), self.key, self)
        self.copy_menu.failed.connect(self.workspace.failed)
        button.setMenu(self.copy_menu)

    def picture(self) -> QPixmap:
        """Return a picture of the answer with its evidence."""
        raise NotImplementedError

    def _picture_of(self, first: QWidget, last: QWidget) -> QPixmap:
        """Return a picture of the column of results from the widget `first` to the widget `last`."""
        return picture_of(self._body, first.geometry().united(last.geometry()), self.theme.spacing.medium)

    @Slot()
    def _on_pinned_plan_changed(self) -> None:
        self._on_plan_changed(None, None)


@dataclass(frozen=True, slots=True)
class TabEntry:
    """A tab's key, title, icon and class, which is imported when the tab is first shown."""

    key: str
    title: str
    icon: str
    module: str
    name: str

    def build(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> Tab:
        """Import the tab's class and create the tab."""
        make: Callable[[Workspace, Theme, TaskRunner], Tab] = getattr(import_module(self.module), self.name)
        return make(workspace, theme, tasks)


TABS: Final = (
    TabEntry("catalog", "Catalog", "catalog", "planner.gui.catalog.tab", "CatalogTab"),
    TabEntry("memory", "Memory", "memory", "planner.gui.memory.tab", "MemoryTab"),
    TabEntry("cost", "Cost", "cost", "planner.gui.cost.tab", "CostTab"),
    TabEntry("monitor", "Monitor", "monitor", "planner.gui.monitor.tab", "MonitorTab"),
)
START: Final = TabEntry("start", "Start", "home", "planner.gui.start_page", "StartPage")
"""The page of the first start, which the window has beside its tabs."""


class PinButtons(QWidget):
    """Row of buttons that swap and unpin the pinned plan, and the button `last`, which exports the comparison."""

    def __init__(self, workspace: Workspace, theme: Theme, last: QAbstractButton) -> None:
        super().__init__()
        self._workspace = workspace
        self.swap = link_button("Swap", "Continue with the pinned plan, and pin the current plan.")
        self.unpin = link_button("Unpin", "End the comparison, and unpin the pinned plan.")
        row = in_row(owner=self, spacing=theme.spacing.small)
        for button in (self.swap, self.unpin, last):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        self.swap.clicked.connect(self._swap_plans)
        self.unpin.clicked.connect(self._unpin_plan)

    def refresh(self) -> None:
        """Enable the *Swap* button if the pinned plan differs from the current plan."""
        self.swap.setEnabled(self._workspace.plan != self._workspace.pin.plan)

    @Slot()
    def _swap_plans(self) -> None:
        with self._workspace.reporting():
            self._workspace.pin.swap()

    @Slot()
    def _unpin_plan(self) -> None:
        self._workspace.pin.put(None)
