"""What stands in place of the cards while there are none, and what can be seen instead."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label


class Nothing(QWidget):
    """A sentence and three ways on; each has a signal."""

    open_wanted = Signal()
    demo_wanted = Signal()
    doctor_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._title = make_label(font=theme.font("answer", bold=True), wrap=True)
        self._more = make_label(
            self.tr("The machine itself is watched all the same, and a recording shows everything else."), "muted"
        )
        self.replay = QPushButton(self.tr("&Replay a recording…"))
        self.demo = QPushButton(self.tr("Show a &demo"))
        self.doctor = QPushButton(self.tr("&What works here"))
        mark(self.replay, "primary")
        self._lay_out(theme)
        self.replay.clicked.connect(self.open_wanted)
        self.demo.clicked.connect(self.demo_wanted)
        self.doctor.clicked.connect(self.doctor_wanted)

    @property
    def text(self) -> str:
        """Return what is said in place of cards; empty while there are some."""
        return "" if self.isHidden() else self._title.text()

    def explain(self, title: str) -> None:
        """Say what stands in place of cards; why that is so is a fault of its own."""
        self._title.setText(title)

    def _lay_out(self, theme: Theme) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.spacing.small)
        for button in (self.replay, self.demo, self.doctor):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.spacing.medium, 0, theme.spacing.medium)
        column.setSpacing(theme.spacing.medium)
        for label in (self._title, self._more):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(label)
        column.addLayout(buttons)
