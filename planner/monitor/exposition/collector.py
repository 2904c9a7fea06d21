"""The latest readings, verdicts, faults and predictions as Prometheus' metrics; a scrape reads nothing anew."""

from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from time import monotonic
from typing import Final, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from planner import __version__
from planner.monitor.diagnosis.verdict import OtherFinding, Verdict
from planner.monitor.exposition.names import (
    AGE,
    BUILD,
    CARD_LABELS,
    CARD_SERIES,
    DIAGNOSIS,
    FAMILIES,
    FAULT,
    HOST_SERIES,
    INFO,
    PLAN_MEMORY,
    PLAN_POWER,
    PROCESSES,
    STATE,
    STATES,
    XIDS,
    ExposedFamily,
    ExposedSeries,
)
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.readings.sample import Sample

_Family = GaugeMetricFamily | CounterMetricFamily
_SILENT_CAUSES: Final = (Cause.NO_ANSWER, Cause.RELEASED)


class Prediction(Protocol):
    """A plan's prediction for a card: memory in bytes, and power in watts if it is known."""

    @property
    def memory_bytes(self) -> int:
        """Return the predicted memory in bytes."""

    @property
    def power_watts(self) -> float | None:
        """Return the predicted power in watts, None if unknown."""


class Exposition(Collector):
    """The current readings, verdicts and predictions for Prometheus, kept by one thread and collected by others.

    Unknown and implausible readings have no series, so that silence is never shown as 0.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest = Latest()
        self._sampled_at: float | None = None
        self._xids: Counter[tuple[str, int]] = Counter()
        self._verdicts: Mapping[str, Verdict] = {}
        self._predictions: Mapping[str, Prediction] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def note(self, update: Inventory | Sample) -> None:
        """Take over an update of the readings."""
        with self._lock:
            if isinstance(update, Sample):
                self._latest.note_sample(update)
                self._sampled_at = monotonic()
                self._xids.update(update.xids)
            else:
                self._latest.note_inventory(update)

    def note_verdicts(self, verdicts: Mapping[str, Verdict]) -> None:
        """Take over the current verdicts, by UUID."""
        self._verdicts = verdicts

    def note_predictions(self, predictions: Mapping[str, Prediction]) -> None:
        """Take over what the plan predicts for each card, by UUID."""
        self._predictions = predictions

    def collect(self) -> Iterator[_Family]:
        """Return all metrics of this instant."""
        with self._lock:
            families = {**self._metric_families(), **self._other_families()}
        return iter(family for family in families.values() if family.samples)

    def _metric_families(self) -> dict[str, _Family]:
        families: dict[str, _Family] = {}
        for series in CARD_SERIES:
            family = _add_family(families, series, CARD_LABELS)
            for device in self._latest.inventory.devices:
                reading = device.facts.get(series.metric.name) or self._latest.reading(device.uuid, series.metric.name)
                _add_reading(family, series, _card_labels(device, self._latest), reading)
        for series in HOST_SERIES:
            if series.metric.name in self._latest.host:
                reading = self._latest.host[series.metric.name]
                _add_reading(_add_family(families, series, ()), series, (), reading)
        return families

    def _other_families(self) -> dict[str, _Family]:
        made = {
            about.name: _family(about.name, about.about, about.kind, (*_card_label_names(about), *about.labels))
            for about in FAMILIES
        }
        inventory = self._latest.inventory
        cards = {device.uuid: _card_labels(device, self._latest) for device in inventory.devices}
        for device in inventory.devices:
            self._add_card(made, device, cards[device.uuid])
        for (uuid, number), count in self._xids.items():
            made[XIDS.name].add_metric((*cards.get(uuid, ("", uuid)), str(number)), count)
        for fault in inventory.faults:
            labels = cards.get(fault.uuid or "", ("", fault.uuid or ""))
            made[FAULT.name].add_metric((*labels, fault.kind.value, fault.description.severity), 1)
        if self._sampled_at is not None:
            made[AGE.name].add_metric((), monotonic() - self._sampled_at)
        made[BUILD.name].add_metric((__version__,), 1)
        return made

    def _add_card(self, made: Mapping[str, _Family], device: Device, labels: tuple[str, str]) -> None:
        inventory, verdict = self._latest.inventory, self._verdicts.get(device.uuid)
        facts = (device.name, device.pci_bus_id, inventory.driver_version, inventory.cuda_version)
        made[INFO.name].add_metric((*labels, *facts, device.mig_parent or "", inventory.machine), 1)
        state = _state(device, self._latest)
        for name in STATES:
            made[STATE.name].add_metric((*labels, name), name == state)
        if state == "ok":
            count = sum(process.uuid == device.uuid for process in self._latest.processes)
            made[PROCESSES.name].add_metric(labels, count)
        # A verdict on a silent card is of readings that are no longer current.
        findings: tuple[Verdict | OtherFinding, ...] = ()
        if verdict is not None and state != "silent":
            findings = (verdict, *verdict.also)
        for found in findings:
            made[DIAGNOSIS.name].add_metric((*labels, found.kind.value, found.severity), 1)
        if (expected := self._predictions.get(device.uuid)) is not None:
            made[PLAN_MEMORY.name].add_metric(labels, expected.memory_bytes)
            if expected.power_watts is not None:
                made[PLAN_POWER.name].add_metric(labels, expected.power_watts)


def _card_label_names(about: ExposedFamily) -> tuple[str, ...]:
    return () if about in (AGE, BUILD) else CARD_LABELS


def _card_labels(device: Device, latest: Latest) -> tuple[str, str]:
    parents = (card.index for card in latest.inventory.devices if card.uuid == device.mig_parent)
    parent = None if device.mig_parent is None else next(parents, None)
    return (str(device.index) if parent is None else f"{parent}:{device.index}"), device.uuid


def _state(device: Device, latest: Latest) -> str:
    if device.state != "running":
        return device.state
    return "silent" if latest.reading(device.uuid, "utilization_fraction").cause in _SILENT_CAUSES else "ok"


def _add_family(families: dict[str, _Family], series: ExposedSeries, labels: tuple[str, ...]) -> _Family:
    """Return the family of a series, which several series may share."""
    if series.name not in families:
        names = (*labels, *(name for name, _value in series.labels))
        families[series.name] = _family(series.name, series.about, series.kind, names)
    return families[series.name]


def _family(name: str, about: str, kind: str, labels: tuple[str, ...]) -> _Family:
    # The class appends `_total` to the name of a counter's samples.
    if kind == "counter":
        return CounterMetricFamily(name.removesuffix("_total"), about, labels=labels)
    return GaugeMetricFamily(name, about, labels=labels)


def _add_reading(family: _Family, series: ExposedSeries, labels: tuple[str, ...], reading: Reading) -> None:
    if reading.value is not None and not reading.is_implausible:
        values = (*labels, *(value for _name, value in series.labels))
        family.add_metric(values, series.to_exposed(reading.value))
