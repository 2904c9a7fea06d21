"""Grouping of log lines into samples, one for each time at which all cards were listed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Final, NamedTuple

from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import FACTS
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.records import MOST_CARDS

DEFAULT_SECONDS: Final = 1.0
"""Interval of lines without a time: the default of nvidia-smi dmon, dcgmi dmon and nvtop."""
# There was a driver; an empty text would say that there was none.
_NOT_TOLD: Final = "not told"
_FACTS: Final = frozenset(metric.name for metric in FACTS)


class LogLine(NamedTuple):
    """Readings of one card in one line; `card` is the log's name for it, empty if it names none."""

    at: datetime | None
    readings: Mapping[str, Reading]
    card: str = ""
    name: str | None = None
    uuid: str | None = None
    place: str | None = None


class TooManyCardsError(ValueError):
    """A log names more cards than a machine can have."""


def updates_from_lines(lines: Iterable[LogLine], day: date) -> Iterator[tuple[Timestamp, Inventory | Sample]]:
    """Yield the inventories and samples of a log; `day` dates a log without times.

    Raises:
        TooManyCardsError: If there are more than `MOST_CARDS`.
    """
    clock, cards = _Clock(day), _Cards()
    for tick in _ticks(lines):
        moment = clock.moment(next(iter(tick.values())).at)
        known = cards.devices
        readings = {cards.uuid(key, line): _without_facts(line.readings) for key, line in tick.items()}
        if cards.devices != known:
            yield moment, Inventory(_NOT_TOLD, devices=cards.devices)
        yield moment, Sample(*moment, readings)


def _ticks(lines: Iterable[LogLine]) -> Iterator[dict[str, LogLine]]:
    """Group lines from one mention of a card to the next mention of the same."""
    tick: dict[str, LogLine] = {}
    for line in lines:
        key = line.uuid or line.place or line.card or _unnamed(line, tick)
        if key in tick:
            yield tick
            tick = {}
            key = line.uuid or line.place or line.card or "0"
        tick[key] = line
    if tick:
        yield tick


def _unnamed(line: LogLine, tick: dict[str, LogLine]) -> str:
    """Return a number for a card that the log does not name: lines of the same time are of different cards."""
    first = next(iter(tick.values()), None)
    same = first is not None and line.at is not None and line.at == first.at
    return str(len(tick)) if same else "0"


def _without_facts(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    return {name: reading for name, reading in readings.items() if name not in _FACTS}


class _Cards:
    """The cards named so far."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def uuid(self, key: str, line: LogLine) -> str:
        """Return the card's UUID, or a substitute, and record the line's fixed properties."""
        known = self._devices.get(key) or self._new(key, line)
        facts = {name: reading for name, reading in line.readings.items() if name in _FACTS}
        if any(known.facts.get(name) != reading for name, reading in facts.items()):
            known = self._devices[key] = replace(known, facts={**known.facts, **facts})
        return known.uuid

    def _new(self, key: str, line: LogLine) -> Device:
        count = len(self._devices)
        if count == MOST_CARDS:
            raise TooManyCardsError(f"it names more than {MOST_CARDS:,} cards")
        index = int(line.card) if line.card.isascii() and line.card.isdigit() and len(line.card) < 5 else count
        device = Device(line.uuid or f"log-{key}", line.name or f"Card {line.card or index}", index, line.place or "")
        self._devices[key] = device
        return device


class _Clock:
    """Assigns strictly increasing times, whatever the log's own clock does."""

    def __init__(self, day: date) -> None:
        self._midnight = datetime(day.year, day.month, day.day)
        self._first: datetime | None = None
        self._shift = 0.0
        self._last: float | None = None
        self._step = DEFAULT_SECONDS

    def moment(self, at: datetime | None) -> Timestamp:
        if at is None:
            seconds = 0.0 if self._last is None else self._last + DEFAULT_SECONDS
            self._last = seconds
            return Timestamp(seconds, self._midnight.timestamp() + seconds)
        self._first = self._first or at
        seconds = (at - self._first).total_seconds() + self._shift
        if self._last is not None:
            if seconds <= self._last:
                self._shift += self._last + self._step - seconds
                seconds = self._last + self._step
            self._step = seconds - self._last
        self._last = seconds
        return Timestamp(seconds, at.timestamp())
