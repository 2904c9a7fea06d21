"""The ways to rent, and how long an offer holds: apart from the offers, which what only names them need not load."""

from typing import Final, Literal, get_args

RentMode = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
RENT_MODES: Final[tuple[RentMode, ...]] = get_args(RentMode)
HISTORY_DAYS: Final = 365
"""From this age on an offer is history: what was once asked, not what is asked."""
