"""The ways to rent; apart from the offers, which what only names them need not load."""

from typing import Final, Literal, get_args

RentMode = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
RENT_MODES: Final[tuple[RentMode, ...]] = get_args(RentMode)
