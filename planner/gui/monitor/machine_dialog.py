"""Dialog that asks for another machine to watch over SSH, with those that were watched before."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QWidget

from planner.errors import SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
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
        self.address = QLineEdit(next(iter(recent), ""))
        self.address.setPlaceholderText("gpu-box, or ssh://me@gpu-box:22")
        self.address.setAccessibleName("Machine")
        self.address.setToolTip("ssh://USER@HOST:PORT, or the name of a host alone")
        label = make_label("&Machine")
        label.setBuddy(self.address)
        self.recent = ChoiceBox(theme)
        self.recent.addItems(list(recent))
        self.recent.setAccessibleName("Watched before")
        self.recent.setToolTip("Machines that were watched before, the latest first")
        before = make_label("Watched &before")
        before.setBuddy(self.recent)
        for widget in (before, self.recent):
            widget.setVisible(len(recent) > 1)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.watch = push_button("&Watch", "Show the cards of this machine", "primary")
        self.buttons.addButton(self.watch, QDialogButtonBox.ButtonRole.AcceptRole)
        in_column(
            label,
            self.address,
            self.problem,
            before,
            self.recent,
            make_label(_ABOUT, "muted", wrap=True),
            self.buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.address.textEdited.connect(self.problem.hide)
        self.recent.textActivated.connect(self.address.setText)
        self.address.selectAll()
        self.address.setFocus()

    def accept(self) -> None:
        """Close the dialog and tell the address, unless it is none."""
        text = self.address.text().strip()
        try:
            address = RemoteAddress.parse(text if "://" in text else f"{SCHEME}{text}")
        except SpecError as error:
            self.problem.setText(error.explanation)
            self.problem.show()
            self.adjustSize()
            return
        super().accept()
        self.chosen.emit(address)
