"""A whole number of any size, typed with or without thousands separators.

Qt's own spin box ends at 2³¹ − 1, and it changes what one is still typing.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QSlider

from planner.gui.widgets.field import stack_up
from planner.gui.widgets.typed_number import TypedNumber
from planner.present import format as fmt

_STEPS: Final = {
    Qt.Key.Key_Up: lambda value: value + 1,
    Qt.Key.Key_Down: lambda value: value - 1,
    Qt.Key.Key_PageUp: lambda value: value * 2,
    Qt.Key.Key_PageDown: lambda value: value // 2,
}
_SEPARATORS: Final = str.maketrans("", "", ",_ \u2009\u00a0\u202f")


class NumberField(TypedNumber):
    """A whole number within bounds; the arrow keys add and take one, Page up and Page down double and halve.

    With `placeholder` the field may be empty, which means `None`: the placeholder says what applies then. With `stops`
    a slider stands beside it that goes from stop to stop.
    """

    def __init__(
        self, minimum: int = 1, maximum: int = 100_000_000, placeholder: str = "", stops: Sequence[int] = ()
    ) -> None:
        super().__init__(placeholder)
        self._minimum, self._maximum = minimum, maximum
        self._optional = bool(placeholder)
        self._stops = tuple(stops)
        self._value: int | None = None if self._optional else minimum
        self._implied: int | None = None
        self._slider = _Slider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, max(0, len(self._stops) - 1))
        self._slider.setVisible(bool(self._stops))
        self._lay_out()
        self._slider.valueChanged.connect(self._on_slid)
        self._slider.sliderReleased.connect(self.finished)
        self._show_value()

    @property
    def value(self) -> int | None:
        """Return the number, or `None` where the field may be empty and is."""
        return self._value

    def set_value(self, value: object) -> None:
        """Show `value`; a number that is being typed right now is left alone if it means the same."""
        if not (value is None or isinstance(value, int)):
            raise TypeError(f"a number field cannot show {value!r}")
        self._set(value)

    def set_name(self, name: str) -> None:
        """Tell screen readers what the number is."""
        super().set_name(name)
        self._slider.setAccessibleName(f"{name}, slider")

    def set_implied(self, value: int | None) -> None:
        """Say which number applies while the field is empty; the slider and the arrow keys start from it."""
        self._implied = value
        self.set_placeholder(fmt.UNKNOWN if value is None else fmt.integer(value))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Step on the arrow and page keys."""
        if watched is self._edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _STEPS.get(Qt.Key(event.key()))
            start = self._implied if self._value is None else self._value
            if step is not None and start is not None:
                self._choose(min(self._maximum, max(self._minimum, step(start))))
                return True
        return super().eventFilter(watched, event)

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self._choose(self._stops[position])

    def _choose(self, value: int) -> None:
        self.show_problem("")
        changed = value != self._value
        self._value = value
        self._show_value()
        if changed:
            self.edited.emit(value)

    def _read(self, text: str) -> tuple[int | None, str]:
        digits = text.translate(_SEPARATORS)
        if not digits:
            return None, "" if self._optional else f"Type a number from {self._bounds()}."
        if not (digits.isascii() and digits.isdigit()):
            return None, f"Type a whole number from {self._bounds()}."
        if len(digits) > len(str(self._maximum)) or not self._minimum <= int(digits) <= self._maximum:
            return None, f"Must be from {self._bounds()}."
        return int(digits), ""

    def _bounds(self) -> str:
        return f"{fmt.integer(self._minimum)} to {fmt.integer(self._maximum)}"

    def _show_value(self, keep_text: bool = False) -> None:
        with QSignalBlocker(self._slider):
            number = self._value or self._implied or 0
            self._slider.setValue(max(0, bisect_right(self._stops, number) - 1))
        super()._show_value(keep_text)

    def _written(self) -> str:
        return "" if self._value is None else fmt.integer(self._value)

    def _lay_out(self) -> None:
        line = QHBoxLayout()
        line.addWidget(self._edit, 1)
        line.addWidget(self._slider, 1)
        stack_up(self, line, self._message)


class _Slider(QSlider):
    """A slider that the wheel does not move by accident."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to whatever scrolls."""
        event.ignore()
