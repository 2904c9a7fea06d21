"""The base class of form inputs, and fields of one line of text."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QLabel, QLayout, QLineEdit, QWidget

from planner.errors import SpecError
from planner.gui.theme import set_style_role
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row


class Field(QWidget):
    """Form input with one value, and below it a message that is shown while the value is not allowed.

    `edited` carries a valid value that the user chose; `finished` ends the gesture (release, focus out, Return);
    `shown` follows every change of the value, by the user or by the program. Subclasses call `_lay_out`.
    """

    edited = Signal(object)
    finished = Signal()
    shown = Signal()

    def __init__(self) -> None:
        super().__init__()
        # A label's underlined letter leads only to a widget that takes the focus, not to its focus proxy.
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._message = message_line()
        self._note: QLabel | None = None  # few fields need one
        self._inputs: tuple[QWidget, ...] = ()

    @property
    def value(self) -> object:
        """Return the last valid value; text that is not valid yet does not count."""
        raise NotImplementedError

    def set_value(self, value: object) -> None:
        """Show `value` without emitting `edited`."""
        raise NotImplementedError

    @property
    def problem(self) -> str:
        """Return why the value is not allowed; empty for an allowed value."""
        return self._message.text()

    def set_name(self, name: str) -> None:
        """Set the accessible name of the input."""
        for widget in self._inputs:
            widget.setAccessibleName(name)

    def show_problem(self, message: str) -> None:
        """Show below the input why its value is not allowed; an empty message hides the line."""
        show_message(self._message, message)
        for widget in self._inputs:
            widget.setAccessibleDescription(message)

    def show_note(self, text: str) -> None:
        """Show below the input what its value amounts to; an empty text hides the line."""
        if self._note is None and text:
            self._note = make_label(role="muted", wrap=True)
            self._column.addWidget(self._note)
        if self._note is not None:
            show_message(self._note, text)

    @property
    def note(self) -> str:
        """Return what is shown below the input about its value."""
        return "" if self._note is None else self._note.text()

    def choose(self, value: object) -> None:
        """Show `value`, and emit `edited` and `finished` as if the user had chosen it."""
        self.set_value(value)
        self.edited.emit(self.value)
        self.finished.emit()

    def _lay_out(self, line: QLayout | QWidget, *inputs: QWidget) -> None:
        """Place `line`, a widget or a layout that contains `inputs`, above the message."""
        self._column = in_column(line, self._message, owner=self, spacing=2)
        if isinstance(line, QWidget):
            inputs = (line,)
        self._inputs = inputs
        self.setFocusProxy(inputs[0])


def message_line() -> QLabel:
    """Return a hidden label in which an input field shows why its value is not allowed."""
    line = make_label(role="bad", wrap=True)
    line.hide()
    return line


def show_message(message: QLabel, text: str) -> None:
    """Show `text` in the label `message`; an empty text hides the label."""
    message.setText(text)
    message.setVisible(bool(text))


class TypedField(Field):
    """Input field with a line edit."""

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self._edit = QLineEdit(placeholderText=placeholder)

    @property
    def name(self) -> str:
        """Return the accessible name of the input."""
        return self._edit.accessibleName()

    def set_placeholder(self, text: str) -> None:
        """Set the text shown while the field is empty: the value that applies to an empty field."""
        self._edit.setPlaceholderText(text)

    def show_problem(self, message: str) -> None:
        """Show why the value is not allowed, and frame the line edit as invalid."""
        super().show_problem(message)
        set_style_role(self._edit, "true" if message else "", "wrong")


def accept_any(_text: str) -> None:
    """Accept every text."""


class TextField(TypedField):
    """Input field for a text; `check` raises a `SpecError` for an invalid text; each keystroke emits `typed`."""

    typed = Signal()

    def __init__(self, check: Callable[[str], object] = accept_any, placeholder: str = "") -> None:
        super().__init__(placeholder)
        self.check = check
        self._value = ""
        self._line = in_row((self._edit, 1))
        self._lay_out(self._line, self._edit)
        self._edit.textEdited.connect(self._on_typed)
        self._edit.textEdited.connect(self.typed)
        self._edit.editingFinished.connect(self.finished)

    @property
    def value(self) -> str:
        """Return the last valid text."""
        return self._value

    @property
    def text(self) -> str:
        """Return the typed text, valid or not."""
        return self._edit.text().strip()

    def set_value(self, value: object) -> None:
        """Show `value`; a text that is being typed stays if it has the same value."""
        text = "" if value is None else str(value)
        if not (self._edit.hasFocus() and text == self._value):
            self._edit.setText(text)
            self.show_problem("")
        self._value = text
        self.shown.emit()

    def add_beside(self, widget: QWidget) -> None:
        """Add a widget, such as a button, to the right of the line edit."""
        self._line.addWidget(widget)

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        try:
            self.check(text)
        except SpecError as error:
            self.show_problem(error.explanation)
            return
        self.show_problem("")
        if text != self._value:
            self._value = text
            self.shown.emit()
            self.edited.emit(text)
