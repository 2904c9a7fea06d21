"""Dialog that asks for another machine to watch over SSH, with those that were watched before."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QWidget

from planner.errors import SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.monitor.supervisor.remote import SCHEME, RemoteAddress

_WIDTH: Final = 560
_ABOUT: Final = (
    "GPU Planner must be installed there, and your SSH key must be accepted: no password is asked for. Names and "
    "settings of ~/.ssh/config apply. If gpu-planner is not on the path there, add where it is: "
    "ssh://gpu-box/~/venv/bin/gpu-planner"
)


class MachineDialog(QDialog):
    """Dialog for the address of a machine; `chosen` carries a `RemoteAddress`."""

    chosen = Signal(object)

    def __init__(self, recent: Sequence[str], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Another machine")
        self.setMinimumWidth(_WIDTH)
        self.address = QComboBox(editable=True)
        self.address.addItems(list(recent))
        self.address.setAccessibleName("Machine")
        self.address.setToolTip("ssh://USER@HOST:PORT, or the name of a host alone; the list has those watched before")
        line = self.address.lineEdit()
        assert line is not None  # of an editable box
        line.setPlaceholderText("gpu-box, or ssh://me@gpu-box:22")
        label = make_label("&Machine")
        label.setBuddy(self.address)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.watch = self.buttons.addButton("&Watch", QDialogButtonBox.ButtonRole.AcceptRole)
        in_column(
            label,
            self.address,
            self.problem,
            make_label(_ABOUT, "muted", wrap=True),
            self.buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.address.editTextChanged.connect(self._forget_problem)
        self.address.setFocus()
        line.selectAll()

    def accept(self) -> None:
        """Close the dialog and tell the address, unless it is none."""
        text = self.address.currentText().strip()
        try:
            address = RemoteAddress.parse(text if "://" in text else f"{SCHEME}{text}")
        except SpecError as error:
            self.problem.setText(error.explanation)
            self.problem.show()
            return
        super().accept()
        self.chosen.emit(address)

    @Slot()
    def _forget_problem(self) -> None:
        self.problem.hide()
