"""Take the speed that a run prints into the plan: the driver tells how busy a card is, and not what it gets done."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.workspace import Workspace

_WIDTH = 480


class SpeedDialog(QDialog):
    """Each change is one of the plan, and can be undone; time and cost follow it everywhere."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.questions = SpeedQuestions(workspace, theme)
        self.questions.set_open(True)
        self.setWindowTitle("Use measured speed")
        self.setMinimumWidth(_WIDTH)
        about = (
            "Write what your run prints while it does what the plan says, all cards together. It takes the place of "
            "the estimate: time and cost follow it, on other cards by the ratio of both estimates."
        )
        buttons = closing_buttons(self)
        column = QVBoxLayout(self)
        column.setSpacing(theme.spacing.medium)
        column.addWidget(make_label(about, wrap=True))
        column.addWidget(self.questions)
        column.addWidget(buttons)
        workspace.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self.questions.refresh()
