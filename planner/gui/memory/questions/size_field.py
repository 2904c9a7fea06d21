"""Input for a memory size in bytes, typed with a unit."""

from typing import Final

from planner.errors import SpecError
from planner.gui.widgets.inputs.number_field import TypedNumber
from planner.present import format as fmt
from planner.units import GIB, TIB, parse_bytes

_LARGEST: Final = 1024 * TIB
_EXAMPLE: Final = "Type a size such as 2 GiB or 512 MiB."


class SizeField(TypedNumber):
    """Input for a size such as `2 GiB` or `512 MiB`; a number without a unit is in GiB."""

    def __init__(self) -> None:
        super().__init__()
        self._value: int = 0
        self._lay_out(self._edit)
        self._show_value()

    @property
    def value(self) -> int:
        """Return the memory size in bytes."""
        return self._value

    def _parsed_value(self, text: str) -> tuple[int, str]:
        plain = text.replace(fmt.THIN, " ").strip()
        bare = plain.replace(",", "").replace(".", "", 1)
        try:
            value = parse_bytes(f"{plain} GiB" if bare.isascii() and bare.isdigit() else plain)
        except SpecError:
            return 0, _EXAMPLE
        return (value, "") if value <= _LARGEST else (0, f"Must be at most {fmt.quantity(_LARGEST / GIB, 'GiB')}.")

    def _value_text(self) -> str:
        return fmt.size(self._value) if self._value else "0 GiB"

    def _restores_on_escape(self) -> bool:
        # A number without a unit is a size too; Escape shows it with its unit.
        return True

    def _show_value(self, keep_text: bool = False) -> None:
        super()._show_value(keep_text)
        if not keep_text:
            self._edit.setToolTip(fmt.exact_bytes(self._value))
