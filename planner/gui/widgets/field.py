"""What every input of a form has in common."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QLayout, QVBoxLayout, QWidget

from planner.gui.widgets.label import make_label


class Field(QWidget):
    """An input with one value.

    `edited` carries a value that the person chose, and only allowed ones; `finished` ends the gesture (release, focus
    out, Return); `shown` follows every change of the value, the program's too.
    """

    edited = Signal(object)
    finished = Signal()
    shown = Signal()

    @property
    def value(self) -> object:
        """Return the value that is set; what is half typed does not count."""
        raise NotImplementedError

    def set_value(self, value: object) -> None:
        """Show `value` without telling anyone that it was edited."""
        raise NotImplementedError

    def set_name(self, name: str) -> None:
        """Tell screen readers what the input is for."""
        raise NotImplementedError

    def show_problem(self, message: str) -> None:
        """Say beside the input why its value is not allowed; an empty message takes it back."""
        raise NotImplementedError


def message_line() -> QLabel:
    """Return the line under an input that says why its value is not allowed; hidden while there is nothing to say."""
    line = make_label(role="bad", wrap=True)
    line.hide()
    return line


def stack_up(field: Field, line: QLayout | QWidget, message: QLabel) -> None:
    """Lay out `field`: its input, and under it the message."""
    column = QVBoxLayout(field)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(2)
    if isinstance(line, QWidget):
        column.addWidget(line)
    else:
        column.addLayout(line)
    column.addWidget(message)


def tell(message: QLabel, words: str) -> None:
    """Say why a value is not allowed; empty words take it back."""
    message.setText(words)
    message.setVisible(bool(words))
