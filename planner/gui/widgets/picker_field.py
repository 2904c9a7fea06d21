"""One of many values, chosen from a list that can be searched."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent

from planner.gui.theme import Theme
from planner.gui.widgets.choice_field import ChoiceBox
from planner.gui.widgets.field import Field, message_line, stack_up, tell
from planner.gui.widgets.popover import SearchPopover
from planner.gui.widgets.search_list import Choice, Typed

_LIST_WIDTH: Final = 560


class PickerField(Field):
    """Says the choice and opens the list; `choices` is asked when it opens, `words` says a value."""

    def __init__(
        self,
        theme: Theme,
        choices: Callable[[], Sequence[Choice]],
        words: Callable[[object], str],
        placeholder: str,
        typed: Typed = lambda _: None,
    ) -> None:
        super().__init__()
        self._theme, self._choices, self._words = theme, choices, words
        self._placeholder, self._typed = placeholder, typed
        self._value: object = None
        self._box = _PickerBox(theme)
        self.setFocusProxy(self._box)
        self._message = message_line()
        stack_up(self, self._box, self._message)
        self._box.opened.connect(self.open)

    @cached_property
    def _popover(self) -> SearchPopover:
        # Made when it is first opened: the start of the window does not wait for it.
        made = SearchPopover(self, self._theme, self._placeholder, typed=self._typed)
        made.chosen.connect(self._on_chosen)
        return made

    @property
    def value(self) -> object:
        """Return the chosen value."""
        return self._value

    @property
    def text(self) -> str:
        """Return the words of the chosen value."""
        return self._box.currentText()

    def set_value(self, value: object) -> None:
        """Show `value`."""
        self._value = value
        self._box.setItemText(0, self._words(value))
        self._box.setToolTip(self._words(value))
        self.show_problem("")
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Tell screen readers what is chosen here."""
        self._box.setAccessibleName(name)

    def show_problem(self, message: str) -> None:
        """Say under the field why the choice is not allowed."""
        tell(self._message, message)
        self._box.setAccessibleDescription(message)

    @Slot()
    def open(self) -> None:
        """Open the list under the field."""
        self._popover.offer(self._box, self._choices(), self._value, _LIST_WIDTH)

    @Slot(object)
    def _on_chosen(self, value: object) -> None:
        self.set_value(value)
        self.edited.emit(value)
        self.finished.emit()
        self._box.setFocus()


class _PickerBox(ChoiceBox):
    """Looks like every other drop-down list, but leaves its list to the popover."""

    opened = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.addItem("")

    def showPopup(self) -> None:
        """Ask for the popover."""
        self.opened.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open on Return and Down too."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.opened.emit()
        else:
            super().keyPressEvent(event)
