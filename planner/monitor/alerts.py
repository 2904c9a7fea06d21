"""When to speak up by itself: thresholds that must be passed for a while, and that do not chatter."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from planner.monitor.alert_rules import AlertRules
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import CardProcess, Sample

# 5 % for 15 minutes as idle and 2 °C to take a temperature back are all-smi's own; 5 points of memory follow from them.
_IDLE_BELOW: Final = 0.05
_COOLER_BY: Final = 2.0
_EMPTIER_BY: Final = 0.05
_ENGINES: Final = ("utilization_fraction", "encoder_fraction", "decoder_fraction")


class AlertKind(StrEnum):
    """What an alert is about; the values are names in recordings and settings."""

    TEMPERATURE = "temperature"
    MEMORY = "memory"
    LOST = "lost"
    IDLE = "idle"
    PROCESS_ENDED = "process-ended"


class Alert(NamedTuple):
    """Something to tell, of one card, at a time by the monotonic clock; `seen` is the value that passed."""

    kind: AlertKind
    device: Device
    at_seconds: float
    seen: float | None = None
    process: CardProcess | None = None


class _Level:
    """A threshold that is passed once it holds for a while, and again only after it was clearly left."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._is_told = False

    def passed(self, now: float, *, over: bool, left: bool, seconds: float) -> bool:
        """Return whether to tell now; between `over` and `left` everything stays as it was."""
        if left:
            self._since, self._is_told = None, False
        elif over and self._since is None:
            self._since = now
        if self._since is None or self._is_told or now - self._since < seconds:
            return False
        self._is_told = True
        return True


class AlertWatch:
    """Looks at every update, and tells each alert once."""

    def __init__(self, rules: AlertRules) -> None:
        self.rules = rules
        self._levels: dict[tuple[AlertKind, str], _Level] = {}
        self._lost: frozenset[str] = frozenset()
        self._processes: dict[tuple[str, int], CardProcess] | None = None

    def note(self, update: Inventory | Sample, latest: Latest) -> tuple[Alert, ...]:
        """Return what is to be told now; `latest` has taken `update` over already."""
        if not self.rules.is_on:
            return ()
        now = latest.monotonic_seconds or 0.0
        found = [*self._newly_lost(latest, now)]
        if isinstance(update, Sample):
            for device in latest.inventory.devices:
                if device.uuid in update.devices:
                    found += self._of_levels(device, latest, now)
            if update.processes is not None:
                found += self._ended(latest, now)
        return tuple(found)

    def _of_levels(self, device: Device, latest: Latest, now: float) -> Iterator[Alert]:
        rules = self.rules
        heat = latest.reading(device.uuid, "temperature_celsius").value
        yield from self._above(AlertKind.TEMPERATURE, device, now, heat, rules.temperature_celsius, _COOLER_BY)
        used, total = latest.reading(device.uuid, "memory_used_bytes").value, device.fact("memory_total_bytes")
        share = None if used is None or not total else used / total
        yield from self._above(AlertKind.MEMORY, device, now, share, rules.memory_fraction, _EMPTIER_BY)
        use = _most_used(device, latest)
        if use is not None and rules.idle_minutes is not None:
            idle, seconds = use < _IDLE_BELOW, rules.idle_minutes * 60
            if self._level(AlertKind.IDLE, device).passed(now, over=idle, left=not idle, seconds=seconds):
                yield Alert(AlertKind.IDLE, device, now, use)

    def _above(
        self, kind: AlertKind, device: Device, now: float, value: float | None, threshold: float | None, back: float
    ) -> Iterator[Alert]:
        if value is None or threshold is None:
            return
        over, left = value >= threshold, value < threshold - back
        if self._level(kind, device).passed(now, over=over, left=left, seconds=self.rules.hold_seconds):
            yield Alert(kind, device, now, value)

    def _level(self, kind: AlertKind, device: Device) -> _Level:
        return self._levels.setdefault((kind, device.uuid), _Level())

    def _newly_lost(self, latest: Latest, now: float) -> Iterator[Alert]:
        before, self._lost = self._lost, frozenset(d.uuid for d in latest.inventory.devices if d.state == "lost")
        for device in latest.inventory.devices:
            if self.rules.lost and device.uuid in self._lost - before:
                yield Alert(AlertKind.LOST, device, now)

    def _ended(self, latest: Latest, now: float) -> Iterator[Alert]:
        before, devices = self._processes or {}, {device.uuid: device for device in latest.inventory.devices}
        self._processes = {(process.uuid, process.pid): process for process in latest.processes}
        for key in before.keys() - self._processes.keys():
            device = devices.get(key[0])
            if self.rules.process_ended and device is not None and device.state == "running":
                yield Alert(AlertKind.PROCESS_ENDED, device, now, process=before[key])


def _most_used(device: Device, latest: Latest) -> float | None:
    """Return the use of what is used most: a card that only encodes video looks idle by its utilisation."""
    readings = (latest.reading(device.uuid, name).value for name in _ENGINES)
    return max((value for value in readings if value is not None), default=None)
