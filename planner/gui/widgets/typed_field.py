"""What the fields have in common that are one line of text."""

from PySide6.QtWidgets import QLineEdit

from planner.gui.theme import mark
from planner.gui.widgets.field import Field, message_line, tell


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
