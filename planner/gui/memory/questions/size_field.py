"""Input for a memory size in bytes, typed with a unit."""

from typing import Final

from planner.gui.widgets.inputs.number_field import TypedNumber
from planner.numbers import SIZE
from planner.present import format as fmt
from planner.units import TIB

_LARGEST: Final = 1024 * TIB


class SizeField(TypedNumber):
    """Input for a size such as `2 GiB` or `512 MiB`; a number without a unit is in GiB."""

    def __init__(self) -> None:
        super().__init__(SIZE, 0, _LARGEST)
        self._lay_out(self._edit)
        self._show_value()

    @property
    def value(self) -> int:
        """Return the memory size in bytes."""
        return round(self._value or 0)

    def _value_text(self) -> str:
        return fmt.size(self.value) if self._value else "0 GiB"

    def _restores_on_escape(self) -> bool:
        # A number without a unit is a size too; Escape shows it with its unit.
        return True

    def _show_value(self, keep_text: bool = False) -> None:
        super()._show_value(keep_text)
        if not keep_text:
            self._edit.setToolTip(fmt.exact_bytes(self.value))
