"""Notes that a person puts on the time line."""

from typing import NamedTuple


class Mark(NamedTuple):
    """A note at a time, in monotonic seconds."""

    time: float
    text: str
