"""Samples of exporters as GPUs of a fleet: one GPU for each, whoever reports it, with our quantities and units."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from planner.fleet.exporters import (
    EXPORTER_BY_KEY,
    EXPORTERS,
    HOST_LABELS,
    NOT_AVAILABLE,
    NOT_AVAILABLE_FROM,
    POD_LABELS,
    Exporter,
    FleetMetric,
)
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, DEVICE_METRICS, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.parsing.metrics import MetricSample

_SeriesKey = tuple[str, str, str, str, str]

_READINGS: Final = frozenset(metric.name for metric in DEVICE_METRICS)
_MEMORY_PARTS: Final = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
_NO_UUID: Final = re.compile(r"[0-]*")
_NUMBER: Final = re.compile(r"\d{1,9}")
_PREFIX: Final = re.compile(r"[a-z][a-z0-9]*_")
_MOST_KNOWN: Final = 4_096
_EXPORTERS_OWN_POD: Final = "exporter"


class Work(NamedTuple):
    """The work on a GPU, as its exporter says: the pod with its namespace and container, or the job of Slurm."""

    pod: str = ""
    namespace: str = ""
    container: str = ""
    job: str = ""

    @property
    def title(self) -> str:
        """Return `NAMESPACE/POD`, or the job; empty if neither is known."""
        pod = f"{self.namespace}/{self.pod}" if self.namespace and self.pod else self.pod
        return " ".join(part for part in (pod, self.job and f"job {self.job}") if part)


class _MetricRow(NamedTuple):
    """Our metric for an exporter's. `known` are readings by value: most values come again and again."""

    exporter: Exporter
    metric: FleetMetric
    rank: int
    known: dict[float, Reading]

    def is_of(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series of the metric states it of a whole GPU, by its labels."""
        where = self.metric.where
        return self.exporter.ignored not in labels and (
            not where or all(labels.get(label) == wanted for label, wanted in where)
        )


def _all_metric_rows() -> dict[str, tuple[_MetricRow, ...]]:
    rows: dict[str, tuple[_MetricRow, ...]] = {}
    for exporter in EXPORTERS:
        for metric in exporter.metrics:
            row = _MetricRow(exporter, metric, sum(map(len, rows.values())), {})
            rows[metric.name] = (*rows.get(metric.name, ()), row)
    return rows


_ROWS: Final = _all_metric_rows()


@lru_cache(maxsize=4096)
def metric_rows(name: str) -> tuple[_MetricRow, ...]:
    """Return our metrics for an exporter's metric name, which may have a site's prefix such as `amd_`."""
    if name in _ROWS:
        return _ROWS[name]
    return tuple(row for row in _ROWS.get(_PREFIX.sub("", name, count=1), ()) if row.exporter.prefixed)


@dataclass(frozen=True, slots=True)
class FleetCard:
    """A GPU or MIG instance of a fleet with its latest readings.

    `key` is its UUID, or its address and number where the exporter gives no UUID. `selector` are the labels that
    select its series. `work` is what runs on it, several if it is shared. `seen_seconds` is when it was last read, in
    seconds since 1970. `is_silent`: for more than two scrapes it has not been read since.
    """

    key: str
    host: str
    exporter: str
    device: Device
    readings: Mapping[str, Reading]
    selector: Mapping[str, str]
    instances: tuple[str, ...] = ()
    work: tuple[Work, ...] = ()
    xid: int | None = None
    seen_seconds: float = 0.0
    is_silent: bool = False

    def value(self, name: str) -> float | None:
        """Return the latest value of a quantity of the GPU or of its fixed properties, None if unknown or silent."""
        reading = self.readings.get(name) if name in _READINGS else self.device.facts.get(name)
        return None if reading is None or (self.is_silent and name in _READINGS) else reading.value

    def is_at(self, host: str) -> bool:
        """Return whether the GPU is in `host`, by its name or by an address that was scraped."""
        return host == self.host or any(instance.rpartition(":")[0] == host for instance in self.instances)

    @property
    def use(self) -> float | None:
        """Return the utilization as a fraction: that of the whole GPU, or how long its engine was active."""
        whole = self.value("utilization_fraction")
        return self.value("graphics_active_fraction") if whole is None else whole

    @property
    def memory_fraction(self) -> float | None:
        """Return the used fraction of the memory, None if unknown."""
        used, total = self.value("memory_used_bytes"), self.device.fact("memory_total_bytes")
        return used / total if used is not None and total else None


class CardReport(NamedTuple):
    """The GPUs in a round of samples by key, and notes on what was merged or could not be read."""

    cards: dict[str, FleetCard]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _CardReadings:
    """Readings of one GPU as they come in; `ranks` say which metric each is from: the first in the table wins."""

    exporter: Exporter
    labels: Mapping[str, str]
    mig: tuple[str, str, str] | None
    values: dict[str, Reading] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    info: Mapping[str, str] = field(default_factory=dict)
    instances: dict[str, None] = field(default_factory=dict)
    work: dict[Work, None] = field(default_factory=dict)
    bits: int | None = None
    xid: int | None = None
    is_twice: bool = False


def read_cards(samples: Iterable[MetricSample], rates: Iterable[MetricSample] = (), at: float = 0.0) -> CardReport:
    """Return the GPUs in `samples` with our names and units, read at `at` (seconds since 1970).

    Those in `rates` are per second.

    Of two series that state the same, such as those of two Prometheus servers, the first counts, and a note says so.
    Values that are not finite and those that mean "not available" are missing, never 0.
    """
    gathered: dict[_SeriesKey, _CardReadings] = {}
    unreadable = 0
    for is_rate, source in ((False, samples), (True, rates)):
        for name, labels, value in source:
            for row in metric_rows(name):
                metric, exporter = row.metric, row.exporter
                if (metric.use == "rate") is not is_rate or not row.is_of(labels):
                    continue
                card = _card_of(gathered, exporter, labels)
                if metric.use == "info":
                    card.info = labels
                elif metric.use == "xid":
                    _note_xid(card, labels, value)
                elif metric.use == "bit":
                    card.bits = (card.bits or 0) | (metric.bit if value else 0)
                else:
                    _note_value(card, row, value)
                    unreadable += not math.isfinite(value)
    return _report(_merged(gathered), unreadable, at)


def _card_of(gathered: dict[_SeriesKey, _CardReadings], exporter: Exporter, labels: Mapping[str, str]) -> _CardReadings:
    """Return the GPU of a series; its labels are looked at in full only at the first of them."""
    mig = labels.get(exporter.mig[0], "") if exporter.mig else ""
    instance = labels.get("instance", "")
    work = labels.get("exported_pod") or labels.get("pod", "")
    key = (exporter.key, labels.get(exporter.uuid, labels.get(exporter.number, "")), mig, instance, work)
    card = gathered.get(key)
    if card is None:
        instance_id = (labels.get(exporter.uuid, ""), mig, labels.get(exporter.mig[-1], "")) if mig else None
        card = gathered[key] = _CardReadings(exporter, labels, instance_id)
        card.instances[instance] = None
        found = _work_of(labels)
        if found.title:
            card.work[found] = None
    return card


def _work_of(labels: Mapping[str, str]) -> Work:
    found = {name: next((labels[one] for one in known if labels.get(one)), "") for name, known in POD_LABELS.items()}
    if "exported_pod" not in labels and _EXPORTERS_OWN_POD in found["pod"]:
        # Labels of the target: Prometheus scraped a pod, and the exporter does not know whose the GPU is.
        found |= {"pod": "", "namespace": "", "container": ""}
    return Work(**found)


def _note_xid(card: _CardReadings, labels: Mapping[str, str], value: float) -> None:
    number = labels.get("xid", str(int(value)) if math.isfinite(value) else "")
    if value and _NUMBER.fullmatch(number) and int(number):
        card.xid = int(number)


def _note_value(card: _CardReadings, row: _MetricRow, value: float) -> None:
    ours, before = row.metric.ours, card.ranks.get(row.metric.ours)
    if before is not None and before <= row.rank:
        card.is_twice |= before == row.rank
        return
    card.ranks[ours] = row.rank
    reading = row.known.get(value)
    if reading is None:
        if len(row.known) >= _MOST_KNOWN:
            row.known.clear()
        reading = row.known[value] = _reading(row.metric, value)
    card.values[ours] = reading


def _reading(metric: FleetMetric, value: float) -> Reading:
    if not math.isfinite(value):
        return missing(Cause.UNREADABLE)
    if value >= NOT_AVAILABLE_FROM or value in NOT_AVAILABLE:
        return missing(Cause.NOT_SUPPORTED)
    return checked_reading(BY_NAME[metric.ours], value * metric.scale)


def _merged(gathered: Mapping[_SeriesKey, _CardReadings]) -> dict[str, list[_CardReadings]]:
    """Return what was gathered by the key of the GPU: of a real UUID, whoever reports it; else by its address."""
    merged: dict[str, list[_CardReadings]] = {}
    for card in gathered.values():
        merged.setdefault(card_key(card.exporter, card.labels), []).append(card)
    for several in merged.values():
        several.sort(key=lambda one: EXPORTERS.index(one.exporter))
    return merged


def card_key(exporter: Exporter, labels: Mapping[str, str]) -> str:
    """Return the key of the GPU of a series: its UUID, else its address and number; of a MIG instance with its id."""
    uuid = labels.get(exporter.uuid, "").removeprefix("GPU-").lower()
    if _NO_UUID.fullmatch(uuid):
        number = labels.get(exporter.number) or labels.get(exporter.bus) or uuid
        uuid = f"{labels.get('instance') or _named_host(labels)}/{number}"
    mig = labels.get(exporter.mig[0]) if exporter.mig else None
    return f"{uuid}/{mig}" if mig else uuid


def _named_host(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in HOST_LABELS if labels.get(name)), "")


def host_of_address(address: str) -> str:
    """Return the host of an address that was scraped, without its port."""
    return address.rpartition(":")[0] or address


def _host(card: _CardReadings) -> str:
    """Return the host that a GPU's labels name, or the address that was scraped without its port."""
    named = _named_host(card.info) or _named_host(card.labels)
    return named or host_of_address(card.labels.get("instance", "")) or "unknown host"


def _report(merged: Mapping[str, list[_CardReadings]], unreadable: int, at: float) -> CardReport:
    cards = {key: _fleet_card(key, several, at) for key, several in merged.items() if any(one.ranks for one in several)}
    notes = []
    twice = sum(
        any(one.is_twice for one in several) or _is_reported_twice(several)
        for key, several in merged.items()
        if key in cards
    )
    if twice:
        notes.append(f"{twice:,} GPUs are reported more than once; the first of each two readings counts.")
    if unreadable:
        notes.append(f"{unreadable:,} values are not numbers (NaN) and count as not known.")
    only = {card.device.mig_parent for card in cards.values()} - {None} - cards.keys()
    if only:
        notes.append(f"{len(only):,} GPUs report their MIG instances only, not the GPU itself.")
    return CardReport(cards, tuple(notes))


def _is_reported_twice(several: list[_CardReadings]) -> bool:
    """Return whether two series state one quantity for the same work: pods that share a GPU are no repetition."""
    seen: set[tuple[tuple[Work, ...], str, int]] = set()
    for one in several:
        for ours, rank in one.ranks.items():
            if ((*one.work,), ours, rank) in seen:
                return True
            seen.add(((*one.work,), ours, rank))
    return False


def _fleet_card(key: str, several: list[_CardReadings], at: float) -> FleetCard:
    first = several[0]
    values: dict[str, Reading] = {}
    for one in reversed(several):
        values |= {
            ours: reading for ours, reading in one.values.items() if reading.value is not None or ours not in values
        }
        if one.bits is not None:
            values["clock_reasons"] = Reading(float(one.bits))
    facts = {name: reading for name, reading in values.items() if name not in _READINGS}
    readings = {name: reading for name, reading in values.items() if name in _READINGS}
    parts = [readings[name].value for name in _MEMORY_PARTS if name in readings]
    if "memory_total_bytes" not in facts and "memory_free_bytes" in readings and None not in parts:
        facts["memory_total_bytes"] = Reading(sum(part or 0.0 for part in parts))
    if first.mig is not None and "utilization_fraction" not in readings:
        readings["utilization_fraction"] = missing(Cause.MIG)
    return FleetCard(
        key,
        next((host for one in several if (host := _host(one))), ""),
        first.exporter.key,
        _device(key, several, facts),
        readings,
        _selector(first),
        tuple(dict.fromkeys(name for one in several for name in one.instances if name)),
        tuple(dict.fromkeys(work for one in several for work in one.work)),
        next((one.xid for one in several if one.xid is not None), None),
        at,
    )


def _device(key: str, several: list[_CardReadings], facts: Mapping[str, Reading]) -> Device:
    def label(name: str) -> str:
        texts = (labels.get(name) for one in several for labels in (one.info, one.labels))
        return next((text for text in texts if text), "")

    exporter, mig = several[0].exporter, several[0].mig
    name = next((text for one in several if (text := label(one.exporter.name))), f"unknown GPU ({exporter.title})")
    number, _, part = label(exporter.number).partition(":")
    parent = label("mig_parent").removeprefix("GPU-").lower() or None
    if mig is not None:
        parent, part = key.rpartition("/")[0], mig[1]
        name = f"{name} MIG {mig[2]}" if mig[2] != mig[1] else f"{name} MIG instance {part}"
    digits = _NUMBER.findall(part or number)
    return Device(
        key,
        name,
        int(digits[-1]) if digits else 0,
        label(exporter.bus),
        parent,
        (int(part), 0) if _NUMBER.fullmatch(part) else None,
        facts=facts,
    )


def _selector(card: _CardReadings) -> dict[str, str]:
    wanted = (card.exporter.uuid, card.exporter.number, "instance", *card.exporter.mig[:1])
    return {name: card.labels[name] for name in wanted if card.labels.get(name)}


def missing_evidence(card: FleetCard) -> str:
    """Return what the exporter could report for the diagnosis and does not, and how to add it; empty without any.

    The diagnosis tells more from reasons of lowered clocks, the power limit and how active the units are.
    """
    exporter = EXPORTER_BY_KEY[card.exporter]
    told = {*card.readings, *card.device.facts}
    wanted = {
        metric.ours: metric.name
        for metric in reversed(exporter.metrics)
        if metric.off and metric.ours in _EVIDENCE and metric.ours not in told
    }
    if not wanted:
        return ""
    listed = ", ".join(f"{_in_sentence(BY_NAME[ours].title)} ({name})" for ours, name in reversed(wanted.items()))
    return f"Not exported here, though the diagnosis needs it: {listed}. To export it, {exporter.add}."


def _in_sentence(title: str) -> str:
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


_EVIDENCE: Final = frozenset(
    ("clock_reasons", "power_limit_watts", "sm_active_fraction", "sm_clock_most_mhz", "power_capped_fraction")
)
