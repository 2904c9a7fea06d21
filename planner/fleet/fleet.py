"""A fleet over time: its GPUs with their latest readings, those that fell silent, and the diagnosis of each."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from planner.errors import PlannerError
from planner.fleet.cards import FleetCard, metric_rows, read_cards
from planner.fleet.connection import FleetConnection
from planner.fleet.last_day import CardDay, read_last_day
from planner.fleet.prometheus import names_selector
from planner.fleet.serving import FleetServer, read_servers
from planner.fleet.sources import FleetSource, Poll, PrometheusSource, open_source
from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.readings.inventory import Inventory, sort_devices
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.protocols import ReadingSeries
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.parsing.metrics import MetricSample

_KEPT: Final = 64
"""Readings of each quantity that are kept: a quarter of an hour at the usual interval."""
_LEAST_WINDOW_SECONDS: Final = 120.0
_WINDOW_SCRAPES: Final = 8
_SILENT_SCRAPES: Final = 2.5
_FORGOTTEN_SECONDS: Final = 86_400.0
_DAY_EVERY_SECONDS: Final = 600.0
_MOST_DIGITS: Final = 100
"""Digits of a number in a host's name; Python reads no longer ones than 4,300."""
_HOST: Final = "host"
_FOLLOWED: Final = frozenset(
    (
        *("utilization_fraction", "graphics_active_fraction", "sm_active_fraction", "tensor_active_fraction"),
        *("dram_active_fraction", "memory_controller_fraction", "memory_used_bytes", "memory_free_bytes"),
        *("power_watts", "power_limit_watts", "sm_clock_mhz", "clock_reasons", "temperature_celsius"),
        *("memory_temperature_celsius", "encoder_fraction", "decoder_fraction", "ecc_uncorrected"),
        *("hardware_thermal_fraction", "software_thermal_fraction", "power_capped_fraction"),
    )
)
"""Quantities of GPUs whose last minutes the diagnosis needs."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The state of a fleet at `at_seconds` (since 1970, by its server's clock).

    `verdicts` are the diagnoses by the GPU's key, as far as there are any yet, `days` its last 24 hours, as far as a
    Prometheus holds them. `notes` say what is unusual.
    """

    title: str
    at_seconds: float
    interval_seconds: float
    cards: tuple[FleetCard, ...] = ()
    hosts: Mapping[str, Mapping[str, Reading]] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    servers: tuple[FleetServer, ...] = ()
    notes: tuple[str, ...] = ()
    days: Mapping[str, CardDay] = field(default_factory=dict)

    @property
    def host_names(self) -> tuple[str, ...]:
        """Return the hosts of the GPUs, in order."""
        return tuple(dict.fromkeys(card.host for card in self.cards))

    def cards_of(self, host: str) -> tuple[FleetCard, ...]:
        """Return the GPUs of a host, in order."""
        return tuple(card for card in self.cards if card.host == host)


class _Ring(NamedTuple):
    """The latest readings of one quantity, oldest first."""

    times: "array[float]"
    values: "array[float]"

    def note(self, at: float, value: float) -> None:
        if self.times and at <= self.times[-1]:
            return
        self.times.append(at)
        self.values.append(value)
        if len(self.times) > _KEPT:
            del self.times[0], self.values[0]


_NO_READINGS: Final = _Ring(array("d"), array("d"))


class _LastMinutes(NamedTuple):
    """The GPUs of one host over the last minutes, as a source for the diagnosis.

    `end` is unknown, since the processes on a GPU are: the diagnosis then does without them.
    """

    latest: Latest
    rings: Mapping[tuple[str, str], _Ring]
    host: str
    end: float | None = None

    @property
    def inventory(self) -> Inventory:
        return self.latest.inventory

    def series(self, owner: str, metric: str, /) -> ReadingSeries:
        return self.rings.get((f"{_HOST} {self.host}" if owner == _HOST else owner, metric), _NO_READINGS)


def read_fleet(connections: Sequence[FleetConnection], environment: Mapping[str, str]) -> Fleet:
    """Return the GPUs of a fleet as they are now, with their diagnoses as far as their last minutes are known.

    `environment` holds the secret, if a connection says so.

    Raises:
        NetworkError: If a server cannot be reached or does not answer as Prometheus or an exporter does.
        PlannerError: If an address, a secret or a file is wrong, or the server has no metrics of GPUs.
    """
    watch = FleetWatch(open_source(connections, environment))
    watch.poll()
    watch.load_last_minutes()
    watch.read_last_day()
    return watch.diagnose()


class FleetWatch:
    """Keeps a fleet up to date from one poll of its source to the next; memory stays the same however long it runs.

    GPUs that are no longer reported stay, as silent, for a day. Not thread-safe: it belongs to one thread at a time.
    """

    def __init__(self, source: FleetSource) -> None:
        self.source = source
        self.fleet: Fleet | None = None
        self._cards: dict[str, FleetCard] = {}
        self._rings: dict[tuple[str, str], _Ring] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._totals: dict[tuple[str, str], float] = {}
        self._days: Mapping[str, CardDay] = {}
        self._day_at = float("-inf")

    def poll(self) -> Fleet:
        """Poll the source, and return the fleet with the existing diagnoses; `diagnose` makes new ones.

        Raises:
            PlannerError: If the source cannot be read; the fleet stays as it was.
        """
        poll = self.source.poll()
        report = read_cards(poll.samples, poll.rates, poll.at)
        resets = self._note_resets(report.cards)
        for key, card in report.cards.items():
            seen = poll.seen.get(key, poll.at)
            silent = poll.at - seen > _SILENT_SCRAPES * poll.interval_seconds
            before = None if poll.is_whole else self._cards.get(key)
            if before is not None:
                card = replace(before, readings={**before.readings, **card.readings}, xid=card.xid or before.xid)
            self._cards[key] = replace(card, seen_seconds=seen, is_silent=silent)
            if not silent:
                self._note_card(key, seen, card.readings)
        for key in self._cards.keys() - report.cards.keys():
            self._cards[key] = replace(self._cards[key], is_silent=True)
        self._forget(poll.at)
        for host, readings in poll.hosts.items():
            for name, reading in readings.items():
                self._note(f"{_HOST} {host}", name, poll.at, reading)
        notes = [*poll.notes, *report.notes, *resets, *_shared_notes(report.cards)]
        self.fleet = self._state(poll, tuple(notes))
        return self.fleet

    def load_last_minutes(self) -> None:
        """Read the last minutes of all GPUs from a Prometheus, so that the first diagnosis need not wait.

        Raises:
            PlannerError: If the source cannot be read.
        """
        fleet, source = self.fleet, self.source
        if fleet is None or not isinstance(source, PrometheusSource):
            return
        window, step = _window_seconds(fleet.interval_seconds), max(round(fleet.interval_seconds), 1)
        start = fleet.at_seconds - window
        names = [name for name in source.names[0] if any(row.metric.ours in _FOLLOWED for row in metric_rows(name))]
        answer = source.server.query_range(names_selector(names), start, fleet.at_seconds - step, step)
        rounds: dict[float, list[MetricSample]] = {}
        for series in answer.series:
            for at, value in series.values:
                rounds.setdefault(at, []).append(MetricSample(series.labels.get("__name__", ""), series.labels, value))
        rings, self._rings = self._rings, {}
        for at in sorted(rounds):
            for key, card in read_cards(rounds[at]).cards.items():
                self._note_card(key, at, card.readings)
        for (owner, name), ring in rings.items():
            for at, value in zip(ring.times, ring.values, strict=True):
                self._note(owner, name, at, Reading(value))

    def read_last_day(self) -> None:
        """Read the energy and idle time of the last 24 hours from a Prometheus, at most every ten minutes.

        What the server refuses stays unknown, since it needs many samples of large fleets.
        """
        fleet, source = self.fleet, self.source
        if fleet is None or not isinstance(source, PrometheusSource):
            return
        if fleet.at_seconds - self._day_at >= _DAY_EVERY_SECONDS:
            self._day_at = fleet.at_seconds
            with suppress(PlannerError):
                self._days = read_last_day(source.server, source.names[0])
            self.fleet = replace(fleet, days=self._days)

    def diagnose(self, hosts: Sequence[str] | None = None) -> Fleet:
        """Diagnose the GPUs of `hosts`, by default of all, and return the fleet with the new verdicts.

        Raises:
            ValueError: If there was no poll yet.
        """
        if self.fleet is None:
            raise ValueError("a fleet is diagnosed after its first poll")
        fleet = self.fleet
        chosen = fleet.host_names if hosts is None else hosts
        by_host: dict[str, list[FleetCard]] = {host: [] for host in chosen}
        for card in fleet.cards:
            if card.host in by_host and not card.is_silent:
                by_host[card.host].append(card)
            elif card.is_silent:
                self._verdicts.pop(card.key, None)
        for host, cards in by_host.items():
            self._verdicts |= self._diagnosed(host, cards, fleet)
        self.fleet = replace(fleet, verdicts=dict(self._verdicts))
        return self.fleet

    def _diagnosed(self, host: str, cards: Sequence[FleetCard], fleet: Fleet) -> Iterator[tuple[str, Verdict]]:
        devices = tuple(card.device for card in cards)
        latest = Latest()
        latest.note_inventory(Inventory(devices=devices))
        name = next((name for name in fleet.hosts if any(card.is_at(name) for card in cards)), host)
        at = fleet.at_seconds
        latest.note_sample(Sample(at, at, {card.key: card.readings for card in cards}, fleet.hosts.get(name, {})))
        last_minutes = _LastMinutes(latest, self._rings, name)
        seconds = _window_seconds(fleet.interval_seconds)
        for card in cards:
            yield card.key, diagnose(last_minutes, card.key, at, seconds)

    def _note_card(self, key: str, at: float, readings: Mapping[str, Reading]) -> None:
        for name, reading in readings.items():
            if name in _FOLLOWED:
                self._note(key, name, at, reading)

    def _note(self, owner: str, name: str, at: float, reading: Reading) -> None:
        if reading.value is not None and not reading.is_implausible:
            ring = self._rings.get((owner, name))
            if ring is None:
                ring = self._rings[owner, name] = _Ring(array("d"), array("d"))
            ring.note(at, reading.value)

    def _note_resets(self, cards: Mapping[str, FleetCard]) -> list[str]:
        """Return a note on energy counters that fell: the GPU or its driver started anew."""
        reset = 0
        for key, card in cards.items():
            total = card.value("energy_joules")
            if total is not None:
                reset += total < self._totals.get((key, "energy_joules"), 0.0)
                self._totals[key, "energy_joules"] = total
        return [f"{reset:,} GPUs began to count anew: their machine or driver was restarted."] if reset else []

    def _forget(self, at: float) -> None:
        old = [key for key, card in self._cards.items() if at - card.seen_seconds > _FORGOTTEN_SECONDS]
        for key in old:
            del self._cards[key]
            self._verdicts.pop(key, None)
            self._totals.pop((key, "energy_joules"), None)
        if old:
            gone = set(old)
            self._rings = {owner: ring for owner, ring in self._rings.items() if owner[0] not in gone}

    def _state(self, poll: Poll, notes: tuple[str, ...]) -> Fleet:
        order = {
            device.uuid: place for place, device in enumerate(sort_devices(c.device for c in self._cards.values()))
        }
        cards = sorted(self._cards.values(), key=lambda card: (_natural(card.host), order[card.key]))
        servers = read_servers(poll.gauges, poll.growth, poll.growth_seconds)
        verdicts = dict(self._verdicts)
        return Fleet(
            self.source.title,
            poll.at,
            poll.interval_seconds,
            tuple(cards),
            poll.hosts,
            verdicts,
            servers,
            notes,
            self._days,
        )


def _window_seconds(interval_seconds: float) -> float:
    """Return the time that a diagnosis considers: long enough for eight scrapes."""
    return max(_LEAST_WINDOW_SECONDS, _WINDOW_SCRAPES * interval_seconds)


def _shared_notes(cards: Mapping[str, FleetCard]) -> list[str]:
    shared = sum(len(card.work) > 1 for card in cards.values())
    return [f"{shared:,} GPUs are shared by several pods; their readings are those of all together."] if shared else []


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts `node2` before `node10`."""
    parts = [""]
    for character in text:
        if character.isdigit() is parts[-1][-1:].isdigit():
            parts[-1] += character
        else:
            parts.append(character)
    return tuple((int(part), "") if part.isdecimal() and len(part) < _MOST_DIGITS else (-1, part) for part in parts)
