"""Fields for whole and decimal numbers, typed with or without thousands separators."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QSlider

from planner.gui.widgets.inputs.field import TypedField
from planner.gui.widgets.layout import in_row
from planner.present import format as fmt

_SEPARATORS: Final = str.maketrans("", "", ",_ \u2009\u00a0\u202f")
_DECIMAL_SEPARATORS: Final = str.maketrans("", "", ",_ \u2009\u00a0\u202f$%")
_NUMBER: Final = re.compile(r"([-\u2212]?(?:\d*\.?\d+|\d+\.))(e\d{1,2})?([kmbt])?", re.IGNORECASE | re.ASCII)
_MULTIPLES: Final = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MINUS: Final = "\u2212"
_LONGEST: Final = 40


class TypedNumber(TypedField):
    """Field for a number that takes effect while it is typed and is reformatted when the field loses the focus.

    Subclasses implement `_parsed_value` and `_value_text`, and call `_show_value` once they are laid out.
    """

    _value: float | None

    def __init__(self, placeholder: str = "") -> None:
        super().__init__(placeholder)
        self._edit.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._edit.installEventFilter(self)
        self._edit.textEdited.connect(self._on_text_typed)
        self._edit.editingFinished.connect(self._on_editing_finished)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Restore the last valid number on Escape."""
        escape = (
            isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape
        )
        if watched is self._edit and escape and self._restores_on_escape():
            self._show_value()
            return True
        return super().eventFilter(watched, event)

    def _parsed_value(self, text: str) -> tuple[float | None, str]:
        """Parse `text`; return the value and an empty string, or why the text is not allowed."""
        raise NotImplementedError

    def _value_text(self) -> str:
        """Return the text that shows the current value."""
        raise NotImplementedError

    def _restores_on_escape(self) -> bool:
        """Return whether Escape restores the last valid number."""
        return bool(self._message.text())

    def set_value(self, value: object) -> None:
        """Show a number, or None as an empty field; a text that is being typed stays if it has the same value."""
        if not (value is None or isinstance(value, int | float)):
            raise TypeError(f"a number field cannot show {value!r}")
        typing_the_same = self._edit.hasFocus() and self._parsed_value(self._edit.text()) == (value, "")
        self._value = value
        self._show_value(keep_text=typing_the_same)

    def _show_value(self, keep_text: bool = False) -> None:
        if not keep_text:
            self.show_problem("")
            self._edit.setText(self._value_text())
        self.shown.emit()

    @Slot(str)
    def _on_text_typed(self, text: str) -> None:
        value, problem = self._parsed_value(text)
        self.show_problem(problem)
        if not problem and value != self._value:
            self._value = value
            self._show_value(keep_text=True)
            self.edited.emit(value)

    @Slot()
    def _on_editing_finished(self) -> None:
        if not self._message.text():
            self._show_value()
        self.finished.emit()


_STEPS: Final = {
    Qt.Key.Key_Up: lambda value: value + 1,
    Qt.Key.Key_Down: lambda value: value - 1,
    Qt.Key.Key_PageUp: lambda value: value * 2,
    Qt.Key.Key_PageDown: lambda value: value // 2,
}


class NumberField(TypedNumber):
    """Field for a whole number; Up and Down add and subtract one, Page Up and Page Down double and halve the number.

    With `placeholder` the field may be empty, which means `None`. With `stops` it has a slider that moves from stop to
    stop.
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
        if not self._stops:
            self._slider.hide()  # showing it before it has a parent would open a window
        self._lay_out(in_row((self._edit, 1), (self._slider, 1)), self._edit)
        self._slider.valueChanged.connect(self._on_slider_moved)
        self._slider.sliderReleased.connect(self.finished)
        self._show_value()

    @property
    def value(self) -> int | None:
        """Return the number, or None for an empty field."""
        return self._value

    def set_name(self, name: str) -> None:
        """Set the accessible names of the input and its slider."""
        super().set_name(name)
        self._slider.setAccessibleName(f"{name}, slider")

    def set_implied(self, value: int | None) -> None:
        """Set the number that applies to an empty field, where the slider and the arrow keys start."""
        self._implied = value
        self.set_placeholder(fmt.UNKNOWN if value is None else fmt.integer(value))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Change the number with the arrow and page keys."""
        if watched is self._edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _STEPS.get(Qt.Key(event.key()))
            start = self._implied if self._value is None else self._value
            if step is not None and start is not None:
                self._choose_number(min(self._maximum, max(self._minimum, step(start))))
                return True
        return super().eventFilter(watched, event)

    @Slot(int)
    def _on_slider_moved(self, position: int) -> None:
        self._choose_number(self._stops[position])

    def _choose_number(self, value: int) -> None:
        self.show_problem("")
        changed = value != self._value
        self._value = value
        self._show_value()
        if changed:
            self.edited.emit(value)

    def _parsed_value(self, text: str) -> tuple[int | None, str]:
        digits = text.translate(_SEPARATORS)
        if not digits:
            return None, "" if self._optional else f"Type a number from {self._bounds_text()}."
        if not (digits.isascii() and digits.isdigit()):
            return None, f"Type a whole number from {self._bounds_text()}."
        if len(digits) > len(str(self._maximum)) or not self._minimum <= int(digits) <= self._maximum:
            return None, f"Must be from {self._bounds_text()}."
        return int(digits), ""

    def _bounds_text(self) -> str:
        return f"{fmt.integer(self._minimum)} to {fmt.integer(self._maximum)}"

    def _show_value(self, keep_text: bool = False) -> None:
        with QSignalBlocker(self._slider):
            number = self._value or self._implied or 0
            self._slider.setValue(max(0, bisect_right(self._stops, number) - 1))
        super()._show_value(keep_text)

    def _value_text(self) -> str:
        return "" if self._value is None else fmt.integer(self._value)


class _Slider(QSlider):
    """Slider that ignores the mouse wheel."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the enclosing scroll area."""
        event.ignore()


class DecimalField(TypedNumber):
    """Field for a number from `minimum` to `maximum` as displayed; its value is the displayed number times `scale`.

    With `placeholder` the field may be empty, which means `None`. A percentage has the scale 0.01. The suffixes k, M, B
    and T multiply by 10³, 10⁶, 10⁹ and 10¹². Without `grouped` there are no thousands separators, as in years.
    """

    def __init__(
        self, minimum: float, maximum: float, placeholder: str = "", scale: float = 1.0, *, grouped: bool = True
    ) -> None:
        super().__init__(placeholder)
        self._grouped = grouped
        self._minimum, self._maximum, self._scale = minimum, maximum, scale
        self._optional = bool(placeholder)
        self._value: float | None = None if self._optional else minimum * scale
        self._lay_out(self._edit)
        self._show_value()

    @property
    def value(self) -> float | None:
        """Return the number, or None for an empty field."""
        return self._value

    @property
    def text(self) -> str:
        """Return the typed text, valid or not."""
        return self._edit.text()

    def _parsed_value(self, text: str) -> tuple[float | None, str]:
        plain = text.translate(_DECIMAL_SEPARATORS)
        if not plain:
            return None, "" if self._optional else f"Type a number from {self._bounds_text()}."
        match = _NUMBER.fullmatch(plain) if len(plain) <= _LONGEST else None
        if match is None:
            return None, f"Type a number from {self._bounds_text()}."
        number = float(f"{match[1].replace(_MINUS, '-')}{match[2] or ''}") * _MULTIPLES.get(
            (match[3] or "").lower(), 1.0
        )
        if not self._minimum <= number <= self._maximum:
            return None, f"Must be from {self._bounds_text()}."
        return number * self._scale, ""

    def _bounds_text(self) -> str:
        return f"{_number_text(self._minimum)} to {_number_text(self._maximum)}"

    def _value_text(self) -> str:
        if self._value is None:
            return ""
        shown = _number_text(self._value / self._scale)
        return shown if self._grouped else shown.replace(",", "")


def _number_text(value: float) -> str:
    """Return a number as text: a whole number in full, a decimal number with at most ten significant digits."""
    rounded = float(f"{value:.10g}")
    if rounded == int(rounded) and abs(rounded) < 1e15:
        return fmt.integer(int(rounded))
    return f"{rounded:,.10g}"
