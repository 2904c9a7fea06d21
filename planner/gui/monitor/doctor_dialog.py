"""What works on this machine, what does not, and why, as a dialog whose text can be copied."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.monitor.doctor import Check, binding_version, check_up
from planner.monitor.latest import Latest
from planner.monitor.pci import find_cards
from planner.monitor.surroundings import look_around
from planner.present.monitor.readings import check_lines

_SIZE: Final = QSize(820, 480)
_KEY: Final = "monitor doctor"


class DoctorDialog(QDialog):
    """Shows the checks of what stands now; they are made in the background, since they read files of the system."""

    def __init__(self, latest: Latest, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self.setWindowTitle("What works here")
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setPlainText("Looking…")
        self.text.setAccessibleName("What works, what does not, and why")
        self.copy = QPushButton("&Copy")
        buttons = closing_buttons(self, self.copy)
        layout = QVBoxLayout(self)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(make_label("✓ works, ! in part, ✗ does not, · for your information", "muted"))
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)
        self.resize(_SIZE)
        self.copy.clicked.connect(self._copy_text)
        tasks.run(_KEY, partial(_checks, latest), self._show, self._fail)

    def done(self, result: int) -> None:
        """Wait for nothing any more."""
        self._tasks.cancel(_KEY)
        super().done(result)

    def _show(self, checks: Sequence[Check]) -> None:
        self.text.setPlainText(check_lines(checks))

    def _fail(self, error: BaseException) -> None:
        self.text.setPlainText(error.message if isinstance(error, PlannerError) else repr(error))

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())


def _checks(latest: Latest) -> tuple[Check, ...]:
    return check_up(latest, look_around(), find_cards(), binding_version())
