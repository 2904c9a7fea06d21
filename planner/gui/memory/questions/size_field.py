"""A number of bytes, typed with its unit."""

from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

from planner.errors import SpecError
from planner.gui.theme import mark
from planner.gui.widgets.field import Field, message_line, stack_up, tell
from planner.present import format as fmt
from planner.units import GIB, TIB, parse_bytes

_LARGEST: Final = 1024 * TIB
_EXAMPLE: Final = "Type a size such as 2 GiB or 512 MiB."


class SizeField(Field):
    """A size such as `2 GiB` or `512 MiB`; a bare number counts GiB."""

    def __init__(self) -> None:
        super().__init__()
        self._value = 0
        self._edit = _Edit(alignment=Qt.AlignmentFlag.AlignRight)
        self._message = message_line()
        self.setFocusProxy(self._edit)
        stack_up(self, self._edit, self._message)
        self._edit.textEdited.connect(self._on_typed)
        self._edit.editingFinished.connect(self._on_finished)
        self._edit.cancelled.connect(self._show_value)
        self._show_value()

    @property
    def value(self) -> int:
        """Return the bytes."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show `value`; what is being typed right now is left alone if it means the same."""
        if not isinstance(value, int):
            raise TypeError(f"a size field cannot show {value!r}")
        typing_the_same = self._edit.hasFocus() and self._read(self._edit.text()) == (value, "")
        self._value = value
        if not typing_the_same:
            self._show_value()
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Tell screen readers what the size is of."""
        self._edit.setAccessibleName(name)

    def show_problem(self, message: str) -> None:
        """Say under the input why its value is not allowed."""
        tell(self._message, message)
        self._edit.setAccessibleDescription(message)
        mark(self._edit, "true" if message else "", "wrong")

    @staticmethod
    def _read(text: str) -> tuple[int, str]:
        plain = text.replace(fmt.THIN, " ").strip()
        bare = plain.replace(",", "").replace(".", "", 1)
        try:
            value = parse_bytes(f"{plain} GiB" if bare.isascii() and bare.isdigit() else plain)
        except SpecError:
            return 0, _EXAMPLE
        return (value, "") if value <= _LARGEST else (0, f"Must be at most {fmt.quantity(_LARGEST / GIB, 'GiB')}.")

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        value, problem = self._read(text)
        self.show_problem(problem)
        if not problem and value != self._value:
            self._value = value
            self.shown.emit()
            self.edited.emit(value)

    @Slot()
    def _on_finished(self) -> None:
        if not self._message.text():
            self._show_value()
        self.finished.emit()

    @Slot()
    def _show_value(self) -> None:
        self.show_problem("")
        self._edit.setText(fmt.size(self._value) if self._value else "0 GiB")
        self._edit.setToolTip(fmt.exact_bytes(self._value))


class _Edit(QLineEdit):
    """A line that Escape sets back."""

    cancelled = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take back what is half typed on Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)
