"""The ways to rent; apart from the offers, which what only names them need not load."""

from typing import Final, Literal

RentMode = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
RENT_MODES: Final[tuple[RentMode, ...]] = ("on-demand", "spot", "reserved-1y", "reserved-3y")
