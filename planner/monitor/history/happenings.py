"""The events of the last day, each span once."""

from typing import Final

from planner.monitor.events import Event, EventKind

_Key = tuple[EventKind, str, str, int | None, float]
# Processes that come and go by the dozen must not fill the memory.
_MOST: Final = 10_000


class Happenings:
    """Events by their key in the order in which they began; of very many the latest are kept."""

    def __init__(self) -> None:
        self._events: dict[_Key, Event] = {}

    def note(self, event: Event) -> None:
        """Take down an event, or the end of one that is known."""
        self._events[event.key] = event
        if len(self._events) > _MOST:
            self._events.pop(next(iter(self._events)))

    def forget_before(self, time: float) -> None:
        """Forget what was over before a time; an open one keeps those after it until it is over."""
        while self._events:
            key, oldest = next(iter(self._events.items()))
            if oldest.ended is None or oldest.ended.monotonic_seconds >= time:
                return
            del self._events[key]

    def between(self, start: float, end: float) -> tuple[Event, ...]:
        """Return what reaches into a time, in the order in which it began."""
        return tuple(
            event
            for event in self._events.values()
            if event.began.monotonic_seconds <= end and (event.ended is None or event.ended.monotonic_seconds >= start)
        )
