"""A lower and an upper bound, each of which may be left open."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.number_field import NumberField


class RangeGroup(QWidget):
    """Two numbers; `chosen` carries `(low, high)`, none where a bound is open."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, name: str, limits: tuple[int, int], unit: str = "") -> None:
        super().__init__()
        self._low = NumberField(*limits, placeholder=str(limits[0]))
        self._high = NumberField(*limits, placeholder=str(limits[1]))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(theme.spacing.tiny)
        for row, (words, field) in enumerate(((self.tr("from"), self._low), (self.tr("to"), self._high))):
            label = QLabel(words)
            label.setBuddy(field)
            field.set_name(f"{name} {words}")
            field.edited.connect(self._on_edited)
            grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1)
            grid.addWidget(QLabel(unit), row, 2)
        grid.setColumnStretch(1, 1)

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Return the two bounds."""
        return self._low.value, self._high.value

    def set_bounds(self, low: int | None, high: int | None) -> None:
        """Show other bounds."""
        self._low.set_value(low)
        self._high.set_value(high)

    @Slot(object)
    def _on_edited(self, _value: object) -> None:
        self.chosen.emit(self.bounds)
