"""One of two or three values, all of them in view."""

from functools import partial

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton

from planner.gui.memory.words import Options
from planner.gui.theme import Theme
from planner.gui.widgets.field import Field


class RadioField(Field):
    """A row of radio buttons."""

    def __init__(self, theme: Theme, options: Options) -> None:
        super().__init__()
        self._buttons = {value: QRadioButton(words) for value, words in options}
        self._group = QButtonGroup(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.large)
        for value, button in self._buttons.items():
            self._group.addButton(button)
            layout.addWidget(button)
            button.clicked.connect(partial(self._on_clicked, value))
        layout.addStretch(1)

    @property
    def value(self) -> object:
        """Return the chosen value."""
        return next((value for value, button in self._buttons.items() if button.isChecked()), None)

    def set_value(self, value: object) -> None:
        """Show `value`, which has to be among the options."""
        self._buttons[value].setChecked(True)
        self.setFocusProxy(self._buttons[value])
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Tell screen readers what is chosen here."""
        for button in self._buttons.values():
            button.setAccessibleName(f"{name}: {button.text()}")

    def show_problem(self, message: str) -> None:
        """Say why the choice is not allowed."""
        for button in self._buttons.values():
            button.setToolTip(message)

    def _on_clicked(self, value: object, _checked: bool = True) -> None:
        self.setFocusProxy(self._buttons[value])
        self.shown.emit()
        self.edited.emit(value)
        self.finished.emit()
