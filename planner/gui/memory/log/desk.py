"""What the window asks of the comparison with a log."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace

if TYPE_CHECKING:
    from planner.gui.memory.log.dialog import LogDialog


class LogDesk(QObject):
    """Opens the dialog when the workspace asks for it; the log stays in it until another is read."""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, tab: QWidget) -> None:
        super().__init__(tab)
        self._workspace, self._theme, self._tasks, self._tab = workspace, theme, tasks, tab
        self.dialog: LogDialog | None = None
        workspace.log_requested.connect(self.open_dialog)

    @Slot(object)
    def open_dialog(self, file: object = None) -> None:
        """Show the dialog, with the log in `file` if one is given."""
        from planner.gui.memory.log.dialog import LogDialog  # the readers are not needed before

        if self.dialog is None:
            self.dialog = LogDialog(self._workspace, self._theme, self._tasks, self._tab.window())
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.source.field.setFocus()
        if isinstance(file, Path):
            self.dialog.source.open_file(file)
