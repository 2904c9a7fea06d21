"""A number that need not be whole, typed as people write it: 1,500 · 0.29 · 50e6 · 50 M."""

import re
from typing import Final

from planner.gui.widgets.field import stack_up
from planner.gui.widgets.typed_number import TypedNumber
from planner.present import format as fmt

_SEPARATORS: Final = str.maketrans("", "", ",_ \u2009\u00a0\u202f$%")
_NUMBER: Final = re.compile(r"([-\u2212]?(?:\d*\.?\d+|\d+\.))(e\d{1,2})?([kmbt])?", re.IGNORECASE | re.ASCII)
_MULTIPLES: Final = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MINUS: Final = "\u2212"
_LONGEST: Final = 40


class DecimalField(TypedNumber):
    """A number from `minimum` to `maximum`, both as they are shown; its value is what is shown times `scale`.

    With `placeholder` the field may be empty, which means `None`: the placeholder says what applies then. A share that
    is shown in per cent has the scale 0.01. k, M, B and T multiply by a thousand, a million and so on. Years are not
    `grouped` by thousands.
    """

    def __init__(
        self, minimum: float, maximum: float, placeholder: str = "", scale: float = 1.0, *, grouped: bool = True
    ) -> None:
        super().__init__(placeholder)
        self._grouped = grouped
        self._minimum, self._maximum, self._scale = minimum, maximum, scale
        self._optional = bool(placeholder)
        self._value: float | None = None if self._optional else minimum * scale
        stack_up(self, self._edit, self._message)
        self._show_value()

    @property
    def value(self) -> float | None:
        """Return the number, or `None` where the field may be empty and is."""
        return self._value

    @property
    def text(self) -> str:
        """Return what is typed, allowed or not."""
        return self._edit.text()

    def set_value(self, value: object) -> None:
        """Show `value`; what is being typed right now is left alone if it means the same."""
        if not (value is None or isinstance(value, int | float)):
            raise TypeError(f"a decimal field cannot show {value!r}")
        self._set(value)

    def _read(self, text: str) -> tuple[float | None, str]:
        plain = text.translate(_SEPARATORS)
        if not plain:
            return None, "" if self._optional else f"Type a number from {self._bounds()}."
        match = _NUMBER.fullmatch(plain) if len(plain) <= _LONGEST else None
        if match is None:
            return None, f"Type a number from {self._bounds()}."
        number = float(f"{match[1].replace(_MINUS, '-')}{match[2] or ''}") * _MULTIPLES.get(
            (match[3] or "").lower(), 1.0
        )
        if not self._minimum <= number <= self._maximum:
            return None, f"Must be from {self._bounds()}."
        return number * self._scale, ""

    def _bounds(self) -> str:
        return f"{_shown(self._minimum)} to {_shown(self._maximum)}"

    def _written(self) -> str:
        if self._value is None:
            return ""
        shown = _shown(self._value / self._scale)
        return shown if self._grouped else shown.replace(",", "")


def _shown(value: float) -> str:
    """Return a number as it is written into the field: whole ones in full, others as short as they can be."""
    rounded = float(f"{value:.10g}")
    if rounded == int(rounded) and abs(rounded) < 1e15:
        return fmt.integer(int(rounded))
    return f"{rounded:,.10g}"
