"""Waiting longer after each failure in a row."""


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
