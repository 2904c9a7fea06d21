"""One of a few values, in words."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Slot
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

from planner.gui.theme import Theme
from planner.gui.widgets.field import Field, message_line, stack_up, tell


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
        icon = self._theme.icon("chevron-down", "muted")
        painter.drawPixmap(left, (self.height() - side) // 2, icon.pixmap(QSize(side, side), self.devicePixelRatio()))
        painter.end()
