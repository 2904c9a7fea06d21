"""One of two or three values, all of them in view."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton

from planner.gui.theme import Theme
from planner.gui.widgets.field import Field, message_line, stack_up, tell


class RadioField(Field):
    """A row of radio buttons."""

    def __init__(self, theme: Theme, options: Sequence[tuple[object, str]]) -> None:
        super().__init__()
        self._value: object = None
        self._buttons = {value: QRadioButton(words) for value, words in options}
        self._group = QButtonGroup(self)
        self._message = message_line()
        layout = QHBoxLayout()
        layout.setSpacing(theme.spacing.medium)
        for value, button in self._buttons.items():
            self._group.addButton(button)
            layout.addWidget(button)
            button.toggled.connect(partial(self._on_toggled, value))
        layout.addStretch(1)
        stack_up(self, layout, self._message)

    @property
    def value(self) -> object:
        """Return the chosen value."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show `value`, which has to be among the options."""
        self._value = value
        self._buttons[value].setChecked(True)
        self.setFocusProxy(self._buttons[value])
        self.show_problem("")
        self.shown.emit()

    def set_offered(self, value: object, offered: bool) -> None:
        """Show one of the options only where it makes sense."""
        self._buttons[value].setVisible(offered)

    def set_name(self, name: str) -> None:
        """Tell screen readers what is chosen here."""
        for button in self._buttons.values():
            button.setAccessibleName(f"{name}: {button.text()}")

    def show_problem(self, message: str) -> None:
        """Say under the buttons why the choice is not allowed."""
        tell(self._message, message)
        for button in self._buttons.values():
            button.setAccessibleDescription(message)

    def _on_toggled(self, value: object, checked: bool) -> None:
        if checked and value != self._value:
            self.set_value(value)
            self.edited.emit(value)
            self.finished.emit()
