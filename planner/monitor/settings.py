"""Sampling intervals and timeouts of the monitor."""

from typing import Final, NamedTuple

FASTEST_SECONDS: Final = 0.1
SLOWEST_SECONDS: Final = 10.0


class SamplerSettings(NamedTuple):
    """Sampling intervals in seconds: for fast quantities, for slow ones, and for processes.

    The driver is not opened before `driver_after_seconds`. If it cannot be opened, it is retried after `retry_seconds`,
    and lost cards are searched for after `look_again_seconds`; both grow with each attempt.
    """

    fast_seconds: float = 1.0
    slow_seconds: float = 4.0
    process_seconds: float = 3.0
    driver_after_seconds: float = 0.0
    retry_seconds: float = 1.0
    look_again_seconds: float = 10.0


def bounded(seconds: float) -> float:
    """Return the nearest supported interval."""
    return min(max(seconds, FASTEST_SECONDS), SLOWEST_SECONDS)


class Timeouts(NamedTuple):
    """Timeouts of the supervisor, in seconds.

    After `quiet` beyond the interval the sampler is asked for its driver call, after `kill` it is killed; before its
    first sample after `start`, since opening the driver of many cards without persistence is slow. The driver is
    retried after `first_retry`, then ever later up to `last_retry`; after `healthy` without trouble the pause is short
    again.
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
        """Return the longest duration of `stop`; only a process stuck in the kernel takes longer."""
        return 5.0 + 4 * self.end


class BackOff:
    """Pauses that double from `first_seconds` to `longest_seconds`, until a success resets them."""

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first, self._longest = first_seconds, longest_seconds
        self._next = first_seconds

    def next_seconds(self) -> float:
        """Return the next pause, and double the one after it."""
        now = self._next
        self._next = min(self._next * 2, self._longest)
        return now

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._next = self._first
