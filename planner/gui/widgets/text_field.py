"""A line of text that says at once why it is not understood."""

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from planner.errors import SpecError
from planner.gui.widgets.field import stack_up
from planner.gui.widgets.typed_field import TypedField


def anything(_text: str) -> None:
    """Take every text."""


class TextField(TypedField):
    """A text; `check` raises a `SpecError` for one that is not allowed. `typed` follows every letter."""

    typed = Signal()

    def __init__(self, check: Callable[[str], object] = anything, placeholder: str = "") -> None:
        super().__init__(placeholder)
        self.check = check
        self._value = ""
        self._line = QHBoxLayout()
        self._line.addWidget(self._edit, 1)
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
