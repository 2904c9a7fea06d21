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
from planner.monitor.recording.records import MAX_CARDS_PER_MACHINE

DEFAULT_INTERVAL_SECONDS: Final = 1.0
"""Interval of lines without a time: the default of nvidia-smi dmon, dcgmi dmon and nvtop."""
# The log had a driver; an empty text would mean that there was no driver.
_UNKNOWN_DRIVER: Final = "not reported"
_FACTS: Final = frozenset(metric.name for metric in FACTS)


class CardLogLine(NamedTuple):
    """Readings of one card in one log line; `card` is the card's label in the log, empty without one."""

    at: datetime | None
    readings: Mapping[str, Reading]
    card: str = ""
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None


class TooManyCardsError(ValueError):
    """The log names more cards than a machine can have."""


def updates_from_lines(lines: Iterable[CardLogLine], day: date) -> Iterator[tuple[Timestamp, Inventory | Sample]]:
    """Yield the inventories and samples of a log; `day` is the date of a log without times.

    Raises:
        TooManyCardsError: If there are more than `MOST_CARDS`.
    """
    clock, cards = _LogClock(day), _LogCards()
    for lines_by_card in _lines_by_time(lines):
        moment = clock.timestamp(next(iter(lines_by_card.values())).at)
        known = cards.devices
        readings = {cards.uuid(key, line): _without_facts(line.readings) for key, line in lines_by_card.items()}
        if cards.devices != known:
            yield moment, Inventory(_UNKNOWN_DRIVER, devices=cards.devices)
        yield moment, Sample(*moment, readings)


def _lines_by_time(lines: Iterable[CardLogLine]) -> Iterator[dict[str, CardLogLine]]:
    """Group the lines between two mentions of the same card: one line per card at one time."""
    lines_by_card: dict[str, CardLogLine] = {}
    for line in lines:
        key = line.uuid or line.bus_id or line.card or _unnamed_card_key(line, lines_by_card)
        if key in lines_by_card:
            yield lines_by_card
            lines_by_card = {}
            key = line.uuid or line.bus_id or line.card or "0"
        lines_by_card[key] = line
    if lines_by_card:
        yield lines_by_card


def _unnamed_card_key(line: CardLogLine, lines_by_card: dict[str, CardLogLine]) -> str:
    """Return a key for a card that the log does not name: lines with the same time are of different cards."""
    first = next(iter(lines_by_card.values()), None)
    is_same_time = first is not None and line.at is not None and line.at == first.at
    return str(len(lines_by_card)) if is_same_time else "0"


def _without_facts(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Return the readings without a card's fixed properties."""
    return {name: reading for name, reading in readings.items() if name not in _FACTS}


class _LogCards:
    """Cards that were named in the log lines read so far."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def uuid(self, key: str, line: CardLogLine) -> str:
        """Return the UUID of a line's card, or a substitute, and record the card's fixed properties."""
        known = self._devices.get(key) or self._add_card(key, line)
        facts = {name: reading for name, reading in line.readings.items() if name in _FACTS}
        if any(known.facts.get(name) != reading for name, reading in facts.items()):
            known = self._devices[key] = replace(known, facts={**known.facts, **facts})
        return known.uuid

    def _add_card(self, key: str, line: CardLogLine) -> Device:
        count = len(self._devices)
        if count == MAX_CARDS_PER_MACHINE:
            raise TooManyCardsError(f"it names more than {MAX_CARDS_PER_MACHINE:,} cards")
        index = int(line.card) if line.card.isascii() and line.card.isdigit() and len(line.card) < 5 else count
        device = Device(line.uuid or f"log-{key}", line.name or f"Card {line.card or index}", index, line.bus_id or "")
        self._devices[key] = device
        return device


class _LogClock:
    """Assigns strictly increasing times, even if the log's times go backwards."""

    def __init__(self, day: date) -> None:
        self._midnight = datetime(day.year, day.month, day.day)
        self._first: datetime | None = None
        self._shift = 0.0
        self._last: float | None = None
        self._step = DEFAULT_INTERVAL_SECONDS

    def timestamp(self, at: datetime | None) -> Timestamp:
        """Return the timestamp for a time in the log, later than all before; None is a default interval later."""
        if at is None:
            seconds = 0.0 if self._last is None else self._last + DEFAULT_INTERVAL_SECONDS
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
