"""Waiting: how long a sampler may take to answer, and ever longer pauses after failures in a row."""

from typing import NamedTuple


class Timeouts(NamedTuple):
    """How long the supervisor waits, in seconds.

    After `quiet` beyond the interval the sampler is asked where it is, after `kill` it is ended; before its first
    sample after `start`, since opening the driver of many cards without persistence takes long. The driver is tried
    again after `first_retry`, then ever later up to `last_retry`; `healthy` is how long it must go well to forget that.
    """

    start: float = 60.0
    quiet: float = 3.0
    kill: float = 10.0
    end: float = 2.0
    first_retry: float = 1.0
    last_retry: float = 60.0
    healthy: float = 30.0

    @property
    def stop(self) -> float:
        """How long `stop` waits at the most: that long no end takes, unless something holds it up for good."""
        return 5.0 + 4 * self.end


class BackOff:
    """Pauses that double from `first_seconds` to `longest_seconds`, until a success resets them."""

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first, self._longest = first_seconds, longest_seconds
        self._next = first_seconds

    def next_seconds(self) -> float:
        """Return how long to wait now; the next time it is twice as long."""
        now = self._next
        self._next = min(self._next * 2, self._longest)
        return now

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._next = self._first
