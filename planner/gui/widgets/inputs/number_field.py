"""Fields for whole and decimal numbers, typed in every spelling that `planner.numbers` knows."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QSlider

from planner.errors import SpecError
from planner.gui.widgets.inputs.field import TypedField
from planner.gui.widgets.layout import in_row
from planner.numbers import AMOUNT, COUNT, NumberKind, number_text, parse_number
from planner.present import format as fmt


class TypedNumber(TypedField):
    """Field for a number that takes effect while it is typed and is reformatted when the field loses the focus.

    While the text is no allowed number, the value is the one before typing began, never that of a part of the text.
    The value is the displayed number, from `minimum` to `maximum`, times `scale`. With `placeholder` the field may be
    empty, which means `None`. Subclasses call `_show_value` once they are laid out.
    """

    _value: float | None

    def __init__(
        self, kind: NumberKind, minimum: float, maximum: float, placeholder: str = "", scale: float = 1
    ) -> None:
        super().__init__(placeholder)
        self.kind, self.minimum, self.maximum, self.scale = kind, minimum, maximum, scale
        self.is_optional, self._open_text = bool(placeholder), placeholder
        self._value = self._before = None if self.is_optional else minimum * scale
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
        if self.is_optional and not text.strip():
            return None, ""
        try:
            return parse_number(text, self.kind, self.minimum, self.maximum) * self.scale, ""
        except SpecError as error:
            return None, f"{self.name}: {error.explanation}" if self.name else error.explanation

    def _value_text(self) -> str:
        """Return the text that shows the current value."""
        return "" if self._value is None else number_text(self._value / self.scale, self.kind)

    def _restores_on_escape(self) -> bool:
        """Return whether Escape restores the last valid number."""
        return bool(self._message.text())

    def set_value(self, value: object) -> None:
        """Show a number, or None as an empty field; a text that is being typed stays if it has the same value."""
        if not (value is None or isinstance(value, int | float)):
            raise TypeError(f"a number field cannot show {value!r}")
        parsed, problem = self._parsed_value(self._edit.text())
        typing_the_same = self._edit.hasFocus() and (self._value if problem else parsed) == value
        self._value = value
        if not typing_the_same:
            self._before = value
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
        if problem:
            value = self._before
        if value != self._value:
            self._value = value
            self._show_value(keep_text=True)
            self.edited.emit(value)

    @Slot()
    def _on_editing_finished(self) -> None:
        if not self._message.text():
            self._before = self._value
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

    With `stops` it has a slider that moves from stop to stop.
    """

    _value: int | None

    def __init__(
        self,
        minimum: int = 1,
        maximum: int = 100_000_000,
        placeholder: str = "",
        stops: Sequence[int] = (),
        kind: NumberKind = COUNT,
    ) -> None:
        super().__init__(kind, minimum, maximum, placeholder)
        self._stops = tuple(stops)
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
        self.set_placeholder(self._open_text if value is None else fmt.integer(value))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Change the number with the arrow and page keys."""
        if watched is self._edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _STEPS.get(Qt.Key(event.key()))
            start = self._implied if self._value is None else self._value
            if step is not None and start is not None:
                self._choose_number(min(int(self.maximum), max(int(self.minimum), step(start))))
                return True
        return super().eventFilter(watched, event)

    @Slot(int)
    def _on_slider_moved(self, position: int) -> None:
        self._choose_number(self._stops[position])

    def _choose_number(self, value: int) -> None:
        self.show_problem("")
        changed = value != self._value
        self._value = self._before = value
        self._show_value()
        if changed:
            self.edited.emit(value)

    def _show_value(self, keep_text: bool = False) -> None:
        with QSignalBlocker(self._slider):
            number = self._value or self._implied or 0
            self._slider.setValue(max(0, bisect_right(self._stops, number) - 1))
        super()._show_value(keep_text)


class _Slider(QSlider):
    """Slider that ignores the mouse wheel."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the enclosing scroll area."""
        event.ignore()


class DecimalField(TypedNumber):
    """Field for a number that need not be whole, such as a price; a percentage has the scale 0.01."""

    def __init__(
        self,
        minimum: float,
        maximum: float,
        placeholder: str = "",
        scale: float = 1.0,
        kind: NumberKind = AMOUNT,
    ) -> None:
        super().__init__(kind, minimum, maximum, placeholder, scale)
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
