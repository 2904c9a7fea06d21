"""All readings of the last day, of every GPU and of the host, with events, gaps and marks."""

from bisect import bisect_right
from math import inf
from typing import Final, NamedTuple

from planner.monitor.readings.events import Event, EventDetector, EventKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import LATE, Readings, Sample, TypicalInterval
from planner.monitor.series import Gap, Series
from planner.units import SECONDS_PER_DAY


class TimelineMark(NamedTuple):
    """A user's note at a time, in monotonic seconds."""

    time: float
    text: str


_Key = tuple[EventKind, str, str, int | None, float]
# Many short-lived processes must not fill the memory.
_MAX_EVENTS: Final = 10_000


class EventLog:
    """Log of the latest 10,000 events, in the order in which they began; `noted` grows with each change."""

    def __init__(self) -> None:
        self._events: dict[_Key, Event] = {}
        self.noted = 0

    def note(self, event: Event) -> None:
        """Record an event, or the end of a known event."""
        self.noted += 1
        self._events[event.key] = event
        if len(self._events) > _MAX_EVENTS:
            self._events.pop(next(iter(self._events)))

    def forget_before(self, time: float) -> None:
        """Drop events that ended before a time; events after an open event are kept until that event ends."""
        while self._events:
            key, oldest = next(iter(self._events.items()))
            if oldest.ended is None or oldest.ended.monotonic_seconds >= time:
                return
            del self._events[key]

    def between(self, start: float, end: float) -> tuple[Event, ...]:
        """Return the events that overlap a time range, in the order in which they began."""
        return tuple(
            event
            for event in self._events.values()
            if event.began.monotonic_seconds <= end and (event.ended is None or event.ended.monotonic_seconds >= start)
        )


# The clock drifts by less than this in a day; a larger difference means that it was set.
_MIN_CLOCK_CHANGE_SECONDS: Final = 0.5
_MAX_OFFSETS: Final = 1000


class WallClock:
    """Offsets between the wall clock and the monotonic clock, each with the time from which it holds."""

    def __init__(self) -> None:
        self._since: list[float] = []
        self._offsets: list[float] = []

    def note(self, monotonic_seconds: float, wall_seconds: float) -> None:
        """Record simultaneous readings of the monotonic clock and the wall clock."""
        offset = wall_seconds - monotonic_seconds
        if not self._offsets or abs(offset - self._offsets[-1]) > _MIN_CLOCK_CHANGE_SECONDS:
            self._since = [*self._since[-_MAX_OFFSETS:], monotonic_seconds]
            self._offsets = [*self._offsets[-_MAX_OFFSETS:], offset]

    def wall_of(self, monotonic_seconds: float) -> float:
        """Return a monotonic time in seconds since 1970; unchanged before any clock reading was recorded."""
        if not self._since:
            return monotonic_seconds
        index = max(0, bisect_right(self._since, monotonic_seconds) - 1)
        return monotonic_seconds + self._offsets[index]


HOST: Final = "host"
"""Owner name for host quantities; all other owners are GPU UUIDs."""

# Series with different initial capacities reallocate at different times.
_STAGGER: Final = 7
_STAGGERED: Final = 512


class History:
    """Time series of every quantity per GPU and host, with gaps, events and marks, over the last `seconds`.

    Unknown and implausible readings leave a gap, and so does a long pause: the first two readings are expected
    `interval_seconds` apart. Times are monotonic seconds. Memory is bounded at any sampling rate, see `Series`. Not
    thread-safe: it belongs to one thread.
    """

    def __init__(self, seconds: float = SECONDS_PER_DAY, interval_seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.latest = Latest()
        self._series: dict[tuple[str, str], Series] = {}
        # A dictionary, because it keeps the order of insertion.
        self._owners: dict[str, None] = {}
        self._known: set[tuple[bool, str]] = set()
        self._sample_times, self._empty_series = Series(seconds), Series(seconds)
        self._clock = WallClock()
        self._interval = TypicalInterval()
        self._detector = EventDetector(interval_seconds)
        self._event_log = EventLog()
        self._marks: list[TimelineMark] = []

    @property
    def inventory(self) -> Inventory:
        """Return the current driver and GPUs."""
        return self.latest.inventory

    @property
    def start(self) -> float | None:
        """Return the time of the oldest kept sample, None without samples."""
        return float(self._sample_times.times[0]) if len(self._sample_times) else None

    @property
    def end(self) -> float | None:
        """Return the time of the latest sample, None without samples."""
        return float(self._sample_times.times[-1]) if len(self._sample_times) else None

    @property
    def owners(self) -> tuple[str, ...]:
        """Return the owners (GPU UUIDs and `HOST`) with readings, in order of their first reading."""
        return tuple(self._owners)

    @property
    def marks(self) -> tuple[TimelineMark, ...]:
        """Return the marks in order of time."""
        return tuple(self._marks)

    @property
    def nbytes(self) -> int:
        """Return the memory allocated for readings, in bytes."""
        return sum(series.nbytes for series in self._series.values())

    def note(self, update: Inventory | Sample) -> None:
        """Record an update; a sample that is not later than the latest sample is ignored."""
        if isinstance(update, Inventory):
            self.latest.note_inventory(update)
            self._add_events(self._detector.note_inventory(update))
        elif self.end is None or update.monotonic_seconds > self.end:
            self._note_sample(update)

    def series(self, owner: str, metric: str) -> Series:
        """Return the readings of one quantity of an owner (a GPU UUID or `HOST`); empty if there are none."""
        return self._series.get((owner, metric), self._empty_series)

    def has_readings_of(self, metric: str, *, of_host: bool) -> bool:
        """Return whether there are readings of a quantity from any GPU or, with `of_host`, from the host."""
        return (of_host, metric) in self._known

    def wall_of(self, time: float) -> float:
        """Return the seconds since 1970 at a monotonic time."""
        return self._clock.wall_of(time)

    def events(self, start: float, end: float) -> tuple[Event, ...]:
        """Return the events that overlap a time range, in order of their beginning."""
        return self._event_log.between(start, end)

    @property
    def event_changes(self) -> int:
        """Return the number of beginnings and ends of events that were recorded so far."""
        return self._event_log.noted

    def add_event(self, event: Event) -> None:
        """Add an event that was detected elsewhere, such as a diagnosis, or the end of a known event."""
        self._event_log.note(event)

    def gaps(self, start: float, end: float) -> tuple[Gap, ...]:
        """Return the periods without samples."""
        return self._sample_times.gaps(start, end)

    def add_mark(self, time: float, text: str) -> None:
        """Add a mark with a note at a time."""
        self._marks = sorted([*self._marks, TimelineMark(time, text)])

    def remove_mark(self, mark: TimelineMark) -> None:
        """Remove a mark; an unknown mark is ignored."""
        self._marks = [other for other in self._marks if other != mark]

    def _note_sample(self, sample: Sample) -> None:
        time = sample.monotonic_seconds
        if self.end is not None:
            self._interval.note(time - self.end)
        self._clock.note(time, sample.wall_seconds)
        self.latest.note_sample(sample)
        # The value is arbitrary: only the time of the sample matters.
        self._sample_times.append(time, 1.0)
        self._note_readings(HOST, time, sample.host)
        for uuid, readings in sample.devices.items():
            self._note_readings(uuid, time, readings)
        self._add_events(self._detector.note_sample(sample))
        if self._interval.late_seconds < inf:
            self._detector.interval_seconds = self._interval.late_seconds / LATE
        self._event_log.forget_before(time - self.seconds)

    def _note_readings(self, owner: str, time: float, readings: Readings) -> None:
        for name, reading in readings.items():
            series = self._series.get((owner, name))
            if reading.value is None or reading.is_implausible:
                if series is not None:
                    series.note_missing()
            else:
                (series or self._add_series(owner, name)).append(time, reading.value)

    def _add_series(self, owner: str, name: str) -> Series:
        stagger = _STAGGER * (1 + len(self._series) % _STAGGERED)
        series = self._series[owner, name] = Series(self.seconds, stagger)
        self._owners.setdefault(owner)
        self._known.add((owner == HOST, name))
        return series

    def _add_events(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._event_log.note(event)
