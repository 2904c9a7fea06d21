"""The line at the bottom: what the figures rest on, and what was done last."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QProgressBar, QStatusBar

from planner.gui.tasks import TaskRunner
from planner.gui.widgets.label import make_label
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.present.format import date, integer


class StatusLine(QStatusBar):
    """Catalog on the left; progress and the last undo step on the right."""

    def __init__(self, workspace: Workspace, tasks: TaskRunner) -> None:
        super().__init__()
        self.setSizeGripEnabled(False)
        self._workspace = workspace
        self._last_step = make_label()
        self._progress = QProgressBar()
        self._progress.setRange(0, 0)
        self._progress.setMaximumWidth(120)
        self._progress.setTextVisible(False)
        self._progress.setAccessibleName("Working")
        self._progress.hide()
        self.addWidget(make_label(_about(workspace.catalog)))
        self.addPermanentWidget(self._progress)
        self.addPermanentWidget(self._last_step)
        tasks.busy_changed.connect(self._progress.setVisible)
        workspace.undo_stack.undoTextChanged.connect(self._tell_step)

    @Slot(str)
    def _tell_step(self, label: str) -> None:
        self._last_step.setText(f"Undo: {label}" if label else "")


def _about(catalog: Catalog) -> str:
    cards, models = catalog.hardware.gpus, catalog.models.records
    newest = max((gpu.provenance.as_of for gpu in cards), default=None)
    return f"Catalog of {date(newest)}  ·  {integer(len(cards))} accelerators  ·  {integer(len(models))} models"
