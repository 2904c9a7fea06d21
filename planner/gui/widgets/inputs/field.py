"""What every input of a form has in common, and the fields that are one line of text."""

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QLabel, QLayout, QLineEdit, QWidget

from planner.errors import SpecError
from planner.gui.theme import mark
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row


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
    column = in_column(owner=field, spacing=2)
    if isinstance(line, QWidget):
        column.addWidget(line)
    else:
        column.addLayout(line)
    column.addWidget(message)


def tell(message: QLabel, words: str) -> None:
    """Say why a value is not allowed; empty words take it back."""
    message.setText(words)
    message.setVisible(bool(words))


class TypedField(Field):
    """A line of text and, under it, why what is typed is not allowed; subclasses lay both out."""

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self._edit = QLineEdit(placeholderText=placeholder)
        self._message = message_line()
        self.setFocusProxy(self._edit)

    @property
    def problem(self) -> str:
        """Return why what is typed is not allowed; empty where it is."""
        return self._message.text()

    @property
    def name(self) -> str:
        """Return what screen readers are told is typed here."""
        return self._edit.accessibleName()

    def set_name(self, name: str) -> None:
        """Tell screen readers what is typed here."""
        self._edit.setAccessibleName(name)

    def set_placeholder(self, text: str) -> None:
        """Say what applies while the field is empty."""
        self._edit.setPlaceholderText(text)

    def show_problem(self, message: str) -> None:
        """Say under the input why its value is not allowed."""
        tell(self._message, message)
        self._edit.setAccessibleDescription(message)
        mark(self._edit, "true" if message else "", "wrong")


def anything(_text: str) -> None:
    """Take every text."""


class TextField(TypedField):
    """A text; `check` raises a `SpecError` for one that is not allowed. `typed` follows every letter."""

    typed = Signal()

    def __init__(self, check: Callable[[str], object] = anything, placeholder: str = "") -> None:
        super().__init__(placeholder)
        self.check = check
        self._value = ""
        self._line = in_row((self._edit, 1))
        stack_up(self, self._line, self._message)
        self._edit.textEdited.connect(self._on_typed)
        self._edit.textEdited.connect(self.typed)
        self._edit.editingFinished.connect(self.finished)

    @property
    def value(self) -> str:
        """Return the last text that was allowed."""
        return self._value

    @property
    def text(self) -> str:
        """Return what is typed, allowed or not."""
        return self._edit.text().strip()

    def set_value(self, value: object) -> None:
        """Show `value`; what is being typed right now is left alone if it means the same."""
        text = "" if value is None else str(value)
        if not (self._edit.hasFocus() and text == self._value):
            self._edit.setText(text)
            self.show_problem("")
        self._value = text
        self.shown.emit()

    def add_beside(self, widget: QWidget) -> None:
        """Show a button that belongs to the text at its right."""
        self._line.addWidget(widget)

    def recheck(self) -> None:
        """Judge the text again, because what is allowed has changed."""
        self._on_typed(self._edit.text())

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        try:
            self.check(text)
        except SpecError as error:
            self.show_problem(error.explained)
            return
        self.show_problem("")
        if text != self._value:
            self._value = text
            self.shown.emit()
            self.edited.emit(text)
