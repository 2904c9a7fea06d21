"""Which call into the driver is under way."""

from typing import NamedTuple


class Busy(NamedTuple):
    """The call, the card it is about (empty: none), and since when by the monotonic clock."""

    call: str
    subject: str
    since_seconds: float
