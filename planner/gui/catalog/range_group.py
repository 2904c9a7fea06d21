"""A lower and an upper bound, each of which may be left open, to type or to drag."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from planner.gui.catalog.range_slider import RangeSlider
from planner.gui.theme import Theme
from planner.gui.widgets.decimal_field import DecimalField
from planner.present import format as fmt

_MOST: Final = 1e9
_NARROW: Final = 40


class RangeGroup(QWidget):
    """Two numbers with a slider above them; `chosen` carries `(low, high)`, none where a bound is open.

    `stops` are where the slider halts, from the lowest to the highest. Years are not `grouped` by thousands.
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, name: str, stops: Sequence[float], *, grouped: bool = True) -> None:
        super().__init__()
        self._slider = RangeSlider(theme, stops)
        written = fmt.plain if grouped else "{:.0f}".format
        self._low, self._high = (
            DecimalField(0, _MOST, placeholder=written(end), grouped=grouped) for end in (stops[0], stops[-1])
        )
        for field in (self._low, self._high):
            for edit in field.findChildren(QLineEdit):
                edit.setMinimumWidth(_NARROW)
        self._low.set_name(f"{name} from")
        self._high.set_name(f"{name} to")
        line = QHBoxLayout()
        line.setSpacing(theme.spacing.tiny)
        line.addWidget(self._low, 1)
        line.addWidget(QLabel("–"))
        line.addWidget(self._high, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        column.addWidget(self._slider)
        column.addLayout(line)
        self._low.edited.connect(self._on_typed)
        self._high.edited.connect(self._on_typed)
        self._slider.slid.connect(self._on_slid)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Return the two bounds."""
        return self._low.value, self._high.value

    def set_bounds(self, low: float | None, high: float | None) -> None:
        """Show other bounds."""
        self._low.set_value(low)
        self._high.set_value(high)
        self._slider.set_bounds(low, high)

    @Slot(object)
    def _on_typed(self, _value: object) -> None:
        self._slider.set_bounds(*self.bounds)
        self.chosen.emit(self.bounds)

    @Slot(object)
    def _on_slid(self, bounds: tuple[float | None, float | None]) -> None:
        self._low.set_value(bounds[0])
        self._high.set_value(bounds[1])
        self.chosen.emit(bounds)
