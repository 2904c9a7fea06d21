"""Form fields for choosing one of several values: a drop-down list, radio buttons, or a searchable list."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
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
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.layout import in_row
from planner.gui.widgets.popover import Choice, SearchPopover, TypedChoice

_LIST_WIDTH: Final = 560


class ChoiceField(Field):
    """Field with a drop-down list of `(value, text)` pairs."""

    def __init__(self, theme: Theme, options: Sequence[tuple[object, str]]) -> None:
        super().__init__()
        self._values: list[object] = []
        self._box = ChoiceBox(theme)
        self._lay_out(self._box)
        self.set_options(options)
        self._box.activated.connect(lambda index: self.choose(self._values[index]))

    @property
    def value(self) -> object:
        """Return the chosen value."""
        index = self._box.currentIndex()
        return self._values[index] if index >= 0 else None

    @property
    def text(self) -> str:
        """Return the text of the chosen value."""
        return self._box.currentText()

    def set_options(self, options: Sequence[tuple[object, str]]) -> None:
        """Replace the options; the chosen value is kept if it is one of the new options."""
        chosen = [self.value] if self._values else []
        with QSignalBlocker(self._box):
            self._box.clear()
            self._box.addItems([text for _, text in options])
        self._values = [value for value, _ in options]
        for value in chosen:
            if value in self._values:
                self.set_value(value)

    def set_value(self, value: object) -> None:
        """Show `value`, which must be one of the options."""
        with QSignalBlocker(self._box):
            self._box.setCurrentIndex(self._values.index(value))
        self.show_problem("")
        self.shown.emit()


class ChoiceBox(QComboBox):
    """Combo box with the theme's arrow that ignores the mouse wheel."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)

    def sizeHint(self) -> QSize:
        """Return the size that shows every choice in full, if the box shall adjust to its contents."""
        hint = super().sizeHint()
        if self.sizeAdjustPolicy() == QComboBox.SizeAdjustPolicy.AdjustToContents:
            widest = max(map(self.fontMetrics().horizontalAdvance, map(self.itemText, range(self.count()))), default=0)
            # Advances are rounded, so that a little more is needed.
            hint.setWidth(max(hint.width(), widest + self.width() - self._room + self._theme.spacing.tiny))
        return hint

    @property
    def _room(self) -> int:
        """Return the width that the arrow and the margins leave to the text."""
        space = self._theme.spacing
        return self.width() - self._theme.icon_side - space.tiny - 2 * space.small

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the enclosing scroll area."""
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the list with Return, too."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.showPopup()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the elided text, and the arrow, which the style sheet cannot color."""
        side = self._theme.icon_side
        left = self.width() - side - self._theme.spacing.tiny
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        option.currentText = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, self._room)
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        arrow = self._theme.pixmap("chevron-down", "muted", self.devicePixelRatio())
        painter.drawPixmap(left, (self.height() - side) // 2, arrow)
        painter.end()


class RadioField(Field):
    """Field with a row of radio buttons."""

    def __init__(self, theme: Theme, options: Sequence[tuple[object, str]]) -> None:
        super().__init__()
        self._value: object = None
        self._buttons = {value: QRadioButton(text) for value, text in options}
        self._group = QButtonGroup(self)
        layout = in_row(spacing=theme.spacing.medium)
        for value, button in self._buttons.items():
            self._group.addButton(button)
            layout.addWidget(button)
            button.toggled.connect(partial(self._on_button_toggled, value))
        layout.addStretch(1)
        self._lay_out(layout, *self._buttons.values())

    @property
    def value(self) -> object:
        """Return the chosen value."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show `value`, which must be one of the options."""
        self._value = value
        self._buttons[value].setChecked(True)
        self.setFocusProxy(self._buttons[value])
        for each in self._buttons.values():
            # As Qt does once a button has the focus: Tab goes to the checked one, the arrow keys to the others.
            each.setFocusPolicy(Qt.FocusPolicy.StrongFocus if each.isChecked() else Qt.FocusPolicy.ClickFocus)
        self.show_problem("")
        self.shown.emit()

    def set_offered(self, value: object, offered: bool) -> None:
        """Show or hide the radio button of the option `value`."""
        self._buttons[value].setVisible(offered)

    def set_name(self, name: str) -> None:
        """Set the accessible name of each button."""
        for button in self._buttons.values():
            button.setAccessibleName(f"{name}: {button.text()}")

    def _on_button_toggled(self, value: object, checked: bool) -> None:
        if checked and value != self._value:
            self.choose(value)


class PickerField(Field):
    """Field that opens a searchable list of choices.

    `choices` is called whenever the list opens, `text_of` returns the text of a value, and `typed` may turn typed text
    into a further choice.
    """

    def __init__(
        self,
        theme: Theme,
        choices: Callable[[], Sequence[Choice]],
        text_of: Callable[[object], str],
        placeholder: str,
        typed: TypedChoice = lambda _: None,
    ) -> None:
        super().__init__()
        self._theme, self._choices, self._text_of = theme, choices, text_of
        self._placeholder, self._typed = placeholder, typed
        self._value: object = None
        self._box = _PickerBox(theme)
        self._lay_out(self._box)
        self._box.opened.connect(self.open)

    @cached_property
    def _search_popover(self) -> SearchPopover:
        # Created when first opened, so that it does not delay the start of the window.
        popover = SearchPopover(self, self._theme, self._placeholder, typed=self._typed)
        popover.chosen.connect(self._on_list_choice)
        return popover

    @property
    def value(self) -> object:
        """Return the chosen value."""
        return self._value

    @property
    def text(self) -> str:
        """Return the text of the chosen value."""
        return self._box.currentText()

    def set_value(self, value: object) -> None:
        """Show the choice `value`."""
        self._value = value
        self._box.setItemText(0, self._text_of(value))
        self._box.setToolTip(self._text_of(value))
        self.show_problem("")
        self.shown.emit()

    @Slot(str)
    def open(self, words: str = "") -> None:
        """Open the list below the field, searched for `words`."""
        self._search_popover.offer(self._box, self._choices(), self._value, _LIST_WIDTH)
        self._search_popover.list.search(words)

    @Slot(object)
    def _on_list_choice(self, value: object) -> None:
        self.choose(value)
        self._box.setFocus()


class _PickerBox(ChoiceBox):
    """Combo box that emits `opened`, with what was typed, instead of opening its own list."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.addItem("")

    def showPopup(self) -> None:
        """Emit `opened`, on which the field opens its searchable list."""
        self.opened.emit("")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the list with Return, Down, or the first letter of the search."""
        typed = event.text() if event.text().isprintable() else ""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down) or typed.strip():
            self.opened.emit(typed)
        else:
            super().keyPressEvent(event)
