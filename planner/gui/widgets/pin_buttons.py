"""What can be done with the pinned plan wherever it stands beside the present one."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.link_button import link_button
from planner.gui.workspace import Workspace


class PinButtons(QWidget):
    """Swap and unpin; `last` takes the comparison away, to the clipboard or into a file."""

    def __init__(self, workspace: Workspace, theme: Theme, last: QAbstractButton) -> None:
        super().__init__()
        self._workspace = workspace
        self.swap = link_button("Swap", "Plan with the pinned one, and pin this one.")
        self.unpin = link_button("Unpin", "Show the plan alone again.")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.spacing.small)
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
