"""What every tab is: one question, drawn from the workspace's evaluation."""

from typing import ClassVar

from PySide6.QtCore import Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
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
