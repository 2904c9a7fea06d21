"""One of several values: from a drop-down list, as radio buttons, or from a list that can be searched."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QRadioButton,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
)

from planner.gui.theme import Theme
from planner.gui.widgets.inputs.field import Field, message_line, stack_up, tell
from planner.gui.widgets.layout import in_row
from planner.gui.widgets.popover import SearchPopover
from planner.gui.widgets.search_list import Choice, Typed

_LIST_WIDTH: Final = 560


class ChoiceField(Field):
    """A drop-down list of `(value, words)` pairs."""

    def __init__(self, theme: Theme, options: Sequence[tuple[object, str]]) -> None:
        super().__init__()
        self._values: list[object] = []
        self._box = ChoiceBox(theme)
        self._message = message_line()
        self.setFocusProxy(self._box)
        stack_up(self, self._box, self._message)
        self.set_options(options)
        self._box.activated.connect(self._on_activated)

    @property
    def value(self) -> object:
        """Return the chosen value."""
        index = self._box.currentIndex()
        return self._values[index] if index >= 0 else None

    @property
    def text(self) -> str:
        """Return the words of the chosen value."""
        return self._box.currentText()

    def set_options(self, options: Sequence[tuple[object, str]]) -> None:
        """Offer other options; the chosen value stays where it is still offered."""
        chosen = [self.value] if self._values else []
        with QSignalBlocker(self._box):
            self._box.clear()
            self._box.addItems([words for _, words in options])
        self._values = [value for value, _ in options]
        for value in chosen:
            if value in self._values:
                self.set_value(value)

    def set_value(self, value: object) -> None:
        """Show `value`, which has to be among the options."""
        with QSignalBlocker(self._box):
            self._box.setCurrentIndex(self._values.index(value))
        self.show_problem("")
        self.shown.emit()

    def set_name(self, name: str) -> None:
        """Tell screen readers what is chosen here."""
        self._box.setAccessibleName(name)

    def show_problem(self, message: str) -> None:
        """Say under the list why the choice is not allowed."""
        tell(self._message, message)
        self._box.setAccessibleDescription(message)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        self.show_problem("")
        self.shown.emit()
        self.edited.emit(self._values[index])
        self.finished.emit()


class ChoiceBox(QComboBox):
    """A combo box with the theme's arrow, which the wheel does not change by accident."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to whatever scrolls."""
        event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Shorten words that are too long, and add the arrow, which the style sheet cannot tint."""
        side = self._theme.icon_side
        left = self.width() - side - self._theme.spacing.tiny
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        room = left - 2 * self._theme.spacing.small
        option.currentText = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        arrow = self._theme.pixmap("chevron-down", "muted", self.devicePixelRatio())
        painter.drawPixmap(left, (self.height() - side) // 2, arrow)
        painter.end()


class RadioField(Field):
    """A row of radio buttons."""

    def __init__(self, theme: Theme, options: Sequence[tuple[object, str]]) -> None:
        super().__init__()
        self._value: object = None
        self._buttons = {value: QRadioButton(words) for value, words in options}
        self._group = QButtonGroup(self)
        self._message = message_line()
        layout = in_row(spacing=theme.spacing.medium)
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
