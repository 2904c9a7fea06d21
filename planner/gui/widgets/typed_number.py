"""What the fields have in common that a number is typed into."""

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QKeyEvent

from planner.gui.widgets.typed_field import TypedField


class TypedNumber(TypedField):
    """A number that counts as soon as what is typed is allowed, and is written out when the field is left.

    Subclasses read and write it, and show their first value when they are laid out.
    """

    _value: float | None

    def __init__(self, placeholder: str = "") -> None:
        super().__init__(placeholder)
        self._edit.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._edit.installEventFilter(self)
        self._edit.textEdited.connect(self._on_typed)
        self._edit.editingFinished.connect(self._on_finished)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take back what is not allowed on Escape."""
        escape = (
            isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape
        )
        if watched is self._edit and escape and self._takes_back():
            self._show_value()
            return True
        return super().eventFilter(watched, event)

    def _read(self, text: str) -> tuple[float | None, str]:
        """Return the value that `text` means, or why it is not allowed."""
        raise NotImplementedError

    def _written(self) -> str:
        """Return the value as it is written into the field."""
        raise NotImplementedError

    def _takes_back(self) -> bool:
        """Return whether Escape has something to take back."""
        return bool(self._message.text())

    def _set(self, value: float | None) -> None:
        """Show `value`; what is being typed right now is left alone if it means the same."""
        typing_the_same = self._edit.hasFocus() and self._read(self._edit.text()) == (value, "")
        self._value = value
        self._show_value(keep_text=typing_the_same)

    def _show_value(self, keep_text: bool = False) -> None:
        if not keep_text:
            self.show_problem("")
            self._edit.setText(self._written())
        self.shown.emit()

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        value, problem = self._read(text)
        self.show_problem(problem)
        if not problem and value != self._value:
            self._value = value
            self._show_value(keep_text=True)
            self.edited.emit(value)

    @Slot()
    def _on_finished(self) -> None:
        if not self._message.text():
            self._show_value()
        self.finished.emit()
