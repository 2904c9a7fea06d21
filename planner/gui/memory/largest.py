"""One thing that was solved for, and a button to take it."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.memory.curves.explored import Found
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row


class LargestRow(QWidget):
    """Says what was found; `used` carries it when the button is pressed."""

    used = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.found: Found | None = None
        self._title = make_label(role="muted", font=theme.font("small"))
        self._value = make_label(font=theme.font(bold=True), wrap=True)
        self.use = QPushButton("Use")
        in_column(self._title, in_row((self._value, 1), self.use), owner=self, spacing=theme.spacing.tiny)
        self.use.clicked.connect(self._on_clicked)

    @property
    def words(self) -> str:
        """Return what is said."""
        return f"{self._title.text()}: {self._value.text()}"

    def show_found(self, found: Found) -> None:
        """Say what was found; it cannot be taken where the plan has it already, or where there is none."""
        self.found = found
        self._title.setText(found.title)
        self._value.setText(found.words)
        self.use.setVisible(found.plan is not None)
        self.use.setEnabled(not found.is_taken)
        self.use.setAccessibleName(f"{self.use.text()}: {self.words}")

    @Slot()
    def _on_clicked(self) -> None:
        self.used.emit(self.found)
