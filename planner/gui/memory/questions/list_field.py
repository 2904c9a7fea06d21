"""Input for several names or numbers separated by commas."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QVBoxLayout

from planner.errors import SpecError
from planner.gui.widgets.inputs.field import Field, TextField
from planner.numbers import COUNT, parse_number

_LARGEST: Final = 10**9


def parse_names(text: str) -> tuple[str, ...]:
    """Return the non-empty parts between commas in `text`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_numbers(text: str) -> tuple[int, ...]:
    """Return the whole numbers between commas in `text`.

    Raises:
        SpecError: If a part is not a whole number.
    """
    try:
        return tuple(int(parse_number(part, COUNT, 0, _LARGEST)) for part in parse_names(text))
    except SpecError as error:
        raise SpecError(
            error.field, error.reason, "Type whole numbers separated by commas, such as 20, 20, 12."
        ) from error


class ListField(Field):
    """Input for a tuple of values; `read` parses the tuple from the text when editing is finished.

    An empty input means an empty tuple; `placeholder` describes the value that applies instead.
    """

    def __init__(self, read: Callable[[str], tuple[object, ...]], placeholder: str) -> None:
        super().__init__()
        self._read = read
        self._value: tuple[object, ...] = ()
        self._line = TextField(read, placeholder)
        self.setFocusProxy(self._line)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._line)
        self._line.finished.connect(self._on_editing_finished)

    @property
    def value(self) -> tuple[object, ...]:
        """Return the parsed tuple of values."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show a tuple of values, separated by commas."""
        if not isinstance(value, tuple):
            raise TypeError(f"a list field cannot show {value!r}")
        if value != self._value or not self._line.hasFocus():
            self._line.set_value(", ".join(map(str, value)))
        self._value = value
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Set the accessible name for screen readers."""
        self._line.set_name(name)

    def show_problem(self, message: str) -> None:
        """Show below the input why its value is not allowed."""
        self._line.show_problem(message)

    @Slot()
    def _on_editing_finished(self) -> None:
        try:
            value = self._read(self._line.text)
        except SpecError:
            return
        if value != self._value:
            self.edited.emit(value)
        self.finished.emit()
