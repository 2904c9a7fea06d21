"""Sleep of GPUs: an idle GPU is left alone so that it can fall asleep, and a sleeping one is not woken."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from planner.monitor.host.environment import PCI_DEVICES, PowerState, can_runtime_suspend, find_cards

# A GPU falls asleep about six seconds after the last program released it (System Monitor applet for COSMIC, issue 38).
_SUSPEND_DELAY_SECONDS: Final = 15.0
_IDLE_SECONDS: Final = 10.0
_INITIAL_PAUSE_SECONDS: Final = 60.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0


class SleepPolicy:
    """Decides when the driver may be opened and when it should be released; times are monotonic, in seconds.

    `power_states` returns the state of each of its GPUs, by PCI address, and `can_suspend` whether the system suspends
    an unused one.

    A GPU that stays awake although it was released (for example because of a display) is released less and less often.
    """

    def __init__(
        self, power_states: Callable[[], Mapping[str, PowerState]], can_suspend: Callable[[str], bool]
    ) -> None:
        self._power_states, self._can_suspend = power_states, can_suspend
        self._idle_since: float | None = None
        self._released_at: float | None = None
        self._earliest_release = 0.0
        self._pause = _INITIAL_PAUSE_SECONDS

    def asleep(self) -> tuple[str, ...]:
        """Return the PCI addresses of all GPUs if all GPUs are asleep, else an empty tuple."""
        cards = self._power_states()
        return tuple(cards) if cards and all(state == "asleep" for state in cards.values()) else ()

    def may_open(self, now: float) -> bool:
        """Return whether opening the driver now neither wakes a GPU nor keeps a GPU awake."""
        if self.asleep():
            if self._released_at is not None:
                self._pause = _INITIAL_PAUSE_SECONDS
            self._released_at = None
            return False
        if self._released_at is None:
            return True
        if now - self._released_at < _SUSPEND_DELAY_SECONDS:
            return False
        self._released_at = None
        self._earliest_release = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        return True

    def should_release(self, now: float, *, is_idle: bool) -> bool:
        """Return whether to release the driver now, so that an idle GPU can fall asleep."""
        if not is_idle:
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since < _IDLE_SECONDS or now < self._earliest_release:
            return False
        if not self._can_sleep():
            self._earliest_release = now + _INITIAL_PAUSE_SECONDS
            return False
        self._idle_since, self._released_at = None, now
        return True

    def _can_sleep(self) -> bool:
        cards = self._power_states()
        return bool(cards) and all(map(self._can_suspend, cards))


def nvidia_sleep_policy(folder: Path = PCI_DEVICES) -> SleepPolicy:
    """Return the policy for all NVIDIA GPUs, which one driver keeps awake together; `folder` lists PCI devices."""
    return SleepPolicy(lambda: find_cards(folder), lambda name: can_runtime_suspend(folder / name))
