"""How often the machine is read."""

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
