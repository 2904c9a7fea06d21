"""How much of a core this process takes."""

from time import monotonic, process_time
from typing import Final

_LEAST_SECONDS: Final = 2.0


class OwnShare:
    """The share since it was last found out, which takes a while: over less than two seconds it would only flicker."""

    def __init__(self) -> None:
        self._at, self._spent = monotonic(), process_time()
        self.fraction: float | None = None

    def look(self) -> float | None:
        """Return the share of a core; none at first."""
        elapsed = monotonic() - self._at
        if elapsed >= _LEAST_SECONDS:
            spent = process_time()
            self.fraction = (spent - self._spent) / elapsed
            self._at, self._spent = monotonic(), spent
        return self.fraction
