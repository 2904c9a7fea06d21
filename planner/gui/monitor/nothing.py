"""What can be seen instead of cards while there are none."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label


class Nothing(QWidget):
    """A sentence and three ways on; each has a signal. Why there are no cards is a fault of its own."""

    open_wanted = Signal()
    demo_wanted = Signal()
    doctor_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._more = make_label(
            "The machine itself is watched all the same, and a recording shows everything else.", "muted"
        )
        self._more.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.replay = QPushButton("&Open a recording…")
        self.replay.setToolTip("Replay a recording, or a log of nvidia-smi, dmon, nvtop or DCGM.")
        self.demo = QPushButton("Show a &demo")
        self.demo.setToolTip("Replay a quarter of an hour of invented readings of two cards that train.")
        self.doctor = QPushButton("&What works here")
        self.doctor.setToolTip("Check everything between a card and its readings, and say what to do.")
        mark(self.replay, "primary")
        self._lay_out(theme)
        self.replay.clicked.connect(self.open_wanted)
        self.demo.clicked.connect(self.demo_wanted)
        self.doctor.clicked.connect(self.doctor_wanted)

    def _lay_out(self, theme: Theme) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.spacing.small)
        for button in (self.replay, self.demo, self.doctor):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.spacing.tiny, 0, theme.spacing.small)
        column.setSpacing(theme.spacing.small)
        column.addWidget(self._more)
        column.addLayout(buttons)
