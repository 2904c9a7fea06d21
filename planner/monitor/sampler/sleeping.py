"""Lets a laptop's card sleep: it is not woken to be read, and it is let go when nothing uses it."""

from pathlib import Path
from typing import Final

from planner.monitor.pci import PCI_DEVICES, find_cards, sleeps_by_itself

# A card falls asleep about six seconds after the last program let it go (System Monitor applet for COSMIC, issue 38).
_TIME_TO_SLEEP_SECONDS: Final = 15.0
_IDLE_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 60.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0


class SleepWatch:
    """Decides when the driver may be opened and when it should be let go; times are monotonic, in seconds.

    A card that stays awake although it was let go (it drives a display, say) is let go ever more rarely.
    """

    def __init__(self, folder: Path = PCI_DEVICES) -> None:
        self._folder = folder
        self._idle_since: float | None = None
        self._let_go_at: float | None = None
        self._not_before = 0.0
        self._pause = _FIRST_PAUSE_SECONDS

    def asleep(self) -> tuple[str, ...]:
        """Return the cards that sleep, if none is awake."""
        cards = find_cards(self._folder)
        return tuple(cards) if cards and all(state == "asleep" for state in cards.values()) else ()

    def may_open(self, now: float) -> bool:
        """Return whether the driver may be opened without waking a card, or keeping one from its sleep."""
        if self.asleep():
            if self._let_go_at is not None:
                self._pause = _FIRST_PAUSE_SECONDS
            self._let_go_at = None
            return False
        if self._let_go_at is None:
            return True
        if now - self._let_go_at < _TIME_TO_SLEEP_SECONDS:
            return False
        self._let_go_at = None
        self._not_before = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        return True

    def should_let_go(self, now: float, *, is_idle: bool) -> bool:
        """Return whether to let the driver go now, so that an idle card can fall asleep."""
        if not is_idle:
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since < _IDLE_SECONDS or now < self._not_before:
            return False
        if not self._can_sleep():
            self._not_before = now + _FIRST_PAUSE_SECONDS
            return False
        self._idle_since, self._let_go_at = None, now
        return True

    def _can_sleep(self) -> bool:
        cards = find_cards(self._folder)
        return bool(cards) and all(sleeps_by_itself(self._folder / name) for name in cards)
