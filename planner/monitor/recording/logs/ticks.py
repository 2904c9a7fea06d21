"""Puts the lines of a log together into samples: one for each time that all its cards were told."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Final, NamedTuple

from planner.monitor.readings.events import Moment
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import FACTS
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.records import MOST_CARDS

DEFAULT_SECONDS: Final = 1.0
"""How far apart lines without a time are: what nvidia-smi dmon, dcgmi dmon and nvtop do by themselves."""
# There was a driver; an empty text would say that there was none.
_NOT_TOLD: Final = "not told"
_FACTS: Final = frozenset(metric.name for metric in FACTS)


class Line(NamedTuple):
    """What one line says of one card; `card` is what it calls the card, empty where it names none."""

    at: datetime | None
    readings: Mapping[str, Reading]
    card: str = ""
    name: str | None = None
    uuid: str | None = None
    place: str | None = None


class TooManyCardsError(ValueError):
    """A log names more cards than a machine has."""


def updates_of(lines: Iterable[Line], day: date) -> Iterator[tuple[Moment, Inventory | Sample]]:
    """Yield what lines say as updates; `day` dates a log without times.

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


def _ticks(lines: Iterable[Line]) -> Iterator[dict[str, Line]]:
    """Yield the lines from one telling of a card to the next of the same."""
    tick: dict[str, Line] = {}
    for line in lines:
        key = line.uuid or line.place or line.card or _unnamed(line, tick)
        if key in tick:
            yield tick
            tick = {}
            key = line.uuid or line.place or line.card or "0"
        tick[key] = line
    if tick:
        yield tick


def _unnamed(line: Line, tick: dict[str, Line]) -> str:
    """Return the number of a card that the log does not name: lines of the very same time are of one card each."""
    first = next(iter(tick.values()), None)
    same = first is not None and line.at is not None and line.at == first.at
    return str(len(tick)) if same else "0"


def _without_facts(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    return {name: reading for name, reading in readings.items() if name not in _FACTS}


class _Cards:
    """The cards that were named so far."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def uuid(self, key: str, line: Line) -> str:
        """Return the card's UUID, or what stands for it, and take down what the line says of it."""
        known = self._devices.get(key) or self._new(key, line)
        facts = {name: reading for name, reading in line.readings.items() if name in _FACTS}
        if any(known.facts.get(name) != reading for name, reading in facts.items()):
            known = self._devices[key] = replace(known, facts={**known.facts, **facts})
        return known.uuid

    def _new(self, key: str, line: Line) -> Device:
        count = len(self._devices)
        if count == MOST_CARDS:
            raise TooManyCardsError(f"it names more than {MOST_CARDS:,} cards")
        index = int(line.card) if line.card.isascii() and line.card.isdigit() and len(line.card) < 5 else count
        device = Device(line.uuid or f"log-{key}", line.name or f"Card {line.card or index}", index, line.place or "")
        self._devices[key] = device
        return device


class _Clock:
    """Gives each tick a time that is later than the last, whatever the log's own clock did."""

    def __init__(self, day: date) -> None:
        self._midnight = datetime(day.year, day.month, day.day)
        self._first: datetime | None = None
        self._shift = 0.0
        self._last: float | None = None
        self._step = DEFAULT_SECONDS

    def moment(self, at: datetime | None) -> Moment:
        if at is None:
            seconds = 0.0 if self._last is None else self._last + DEFAULT_SECONDS
            self._last = seconds
            return Moment(seconds, self._midnight.timestamp() + seconds)
        self._first = self._first or at
        seconds = (at - self._first).total_seconds() + self._shift
        if self._last is not None:
            if seconds <= self._last:
                self._shift += self._last + self._step - seconds
                seconds = self._last + self._step
            self._step = seconds - self._last
        self._last = seconds
        return Moment(seconds, at.timestamp())
