"""The largest value of one number that still fits, and a button to take it."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.memory.explored import Largest
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label


class LargestRow(QWidget):
    """Says the value; `used` carries it when the button is pressed."""

    used = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._result = Largest(None, "")
        self._title = make_label(role="muted", font=theme.font("small"))
        self._value = make_label(font=theme.font(bold=True), wrap=True)
        self.use = QPushButton(self.tr("Use"))
        line = QHBoxLayout()
        line.addWidget(self._value, 1)
        line.addWidget(self.use)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._title)
        layout.addLayout(line)
        self.use.clicked.connect(self._on_clicked)

    @property
    def words(self) -> str:
        """Return what is said."""
        return f"{self._title.text()}: {self._value.text()}"

    def show_result(self, title: str, result: Largest, current: int) -> None:
        """Say the largest value; it cannot be taken where it is the plan's already, or where there is none."""
        self._result = result
        self._title.setText(title)
        self._value.setText(result.words)
        self.use.setVisible(result.value is not None)
        self.use.setEnabled(result.value != current)
        self.use.setAccessibleName(f"{self.use.text()}: {self.words}")

    @Slot()
    def _on_clicked(self) -> None:
        self.used.emit(self._result.value)
