"""Asks before a process is ended, and says why one may not be."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QCheckBox, QMessageBox, QWidget

from planner.errors import PlannerError
from planner.gui.workspace import Workspace
from planner.monitor.process import CardProcess
from planner.monitor.termination import terminate, why_not
from planner.present.monitor.events import clock


class Ending(QObject):
    """The question for one process at a time."""

    def __init__(self, workspace: Workspace, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace, self._parent = workspace, parent
        self.box: QMessageBox | None = None

    def ask(self, process: CardProcess) -> None:
        """Ask whether to end `process`; where that is not allowed, say why across the window."""
        refusal = why_not(process, may_end_others=self._may_end_others)
        if refusal or process.host is None:
            self._workspace.failed.emit(PlannerError(f"Process {process.pid} cannot be ended from here.", refusal))
            return
        started = clock(process.host.started_seconds)
        text = f"End process {process.pid}?\n\n{process.host.command or process.host.name}"
        box = QMessageBox(QMessageBox.Icon.Warning, "End this process?", text, parent=self._parent.window())
        about = f"It belongs to {process.host.user} and was started at {started}."
        box.setInformativeText(f"{about} What it has not saved is lost.")
        force = QCheckBox("Do not let it &tidy up (kill)")
        box.setCheckBox(force)
        end = box.addButton("&End it", QMessageBox.ButtonRole.DestructiveRole)
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        box.buttonClicked.connect(lambda button: self._on_answer(process, button is end, force.isChecked()))
        self.box = box
        box.open()

    @property
    def _may_end_others(self) -> bool:
        return self._workspace.settings.current.monitor.may_end_others

    def _on_answer(self, process: CardProcess, agreed: bool, by_force: bool) -> None:
        box, self.box = self.box, None
        if box is not None:
            box.deleteLater()
        if agreed:
            with self._workspace.reporting():
                terminate(process, may_end_others=self._may_end_others, by_force=by_force)
