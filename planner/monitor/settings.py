"""How often the machine is read, and how long an answer is waited for."""

from typing import Final, NamedTuple

FASTEST_SECONDS: Final = 0.1
SLOWEST_SECONDS: Final = 10.0


class Settings(NamedTuple):
    """Seconds between looks: at what changes quickly, at what the driver takes long to tell, and at processes.

    `driver_after_seconds` is how long the driver is left alone at first. Where it cannot be opened it is tried again
    after `retry_seconds`, and a lost card is looked for after `look_again_seconds`; both grow with each time.
    """

    fast_seconds: float = 1.0
    slow_seconds: float = 4.0
    process_seconds: float = 3.0
    driver_after_seconds: float = 0.0
    retry_seconds: float = 1.0
    look_again_seconds: float = 10.0


def bounded(seconds: float) -> float:
    """Return the nearest interval that can be kept."""
    return min(max(seconds, FASTEST_SECONDS), SLOWEST_SECONDS)


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
