"""Detection of timeline events in samples and inventories, live and in recordings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from planner.monitor.readings.clock_reasons import slowing
from planner.monitor.readings.intervals import LATE
from planner.monitor.readings.inventory import DeviceState, Inventory
from planner.monitor.readings.sample import CardProcess, Readings, Sample, Xid


class EventKind(StrEnum):
    """Kind of event; the values are names in recordings."""

    XID = "xid"
    SLOWED = "slowed"
    GAP = "gap"
    ADDED = "added"
    LOST = "lost"
    RETURNED = "returned"
    ASLEEP = "asleep"
    PROCESS_STARTED = "process-started"
    PROCESS_ENDED = "process-ended"
    ECC = "ecc"
    DRIVER_CHANGED = "driver-changed"
    FAULT = "fault"
    DIAGNOSIS = "diagnosis"


class Timestamp(NamedTuple):
    """A time by both the monotonic and the wall clock."""

    monotonic_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one card, or to all (`uuid` empty).

    A span is emitted twice: when it begins, without an end, and when it ends; both have the same `key`. An
    instantaneous event ends when it begins. `what` is a name (a reason's, a fault's), `number` an Xid or a PID.
    """

    kind: EventKind
    began: Timestamp
    ended: Timestamp | None
    uuid: str = ""
    what: str = ""
    number: int | None = None

    @property
    def key(self) -> tuple[EventKind, str, str, int | None, float]:
        """Return the identity of the event, which its end does not change."""
        return self.kind, self.uuid, self.what, self.number, self.began.monotonic_seconds


_STATE_EVENTS: Final[dict[DeviceState, EventKind]] = {
    "running": EventKind.RETURNED,
    "lost": EventKind.LOST,
    "asleep": EventKind.ASLEEP,
}
_ECC: Final = ("ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected")


class EventDetector:
    """Detects events by comparing each sample and inventory with the previous one.

    Samples are expected every `interval_seconds`; a much longer pause is a gap.
    """

    def __init__(self, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self._open: dict[tuple[EventKind, str, str], Event] = {}
        self._last_seen: dict[str, tuple[Timestamp, float]] = {}
        self._counts: dict[tuple[str, str], float] = {}
        self._processes: dict[tuple[str, int], CardProcess] | None = None
        self._states: dict[str, DeviceState] = {}
        self._driver = ""
        self._now = Timestamp(0.0, 0.0)
        self._is_dated = False
        self._undated: Inventory | None = None

    def note_sample(self, sample: Sample) -> tuple[Event, ...]:
        """Return the events that a sample reveals."""
        self._now, self._is_dated = Timestamp(sample.monotonic_seconds, sample.wall_seconds), True
        found: list[Event] = []
        if self._undated is not None:
            found += self.note_inventory(self._undated)
            self._undated = None
        for uuid, readings in sample.devices.items():
            found += self._gaps(uuid)
            found += self._slowed(uuid, readings)
            found += self._errors(uuid, readings)
        found += map(self._xid, sample.xids)
        if sample.processes is not None:
            found += self._process_changes(sample.processes)
        return tuple(found)

    def note_inventory(self, inventory: Inventory) -> tuple[Event, ...]:
        """Return the events that an inventory reveals; before the first sample they wait for its time."""
        if not self._is_dated:
            self._undated = inventory
            return ()
        found = [*self._driver_changes(inventory), *self._state_changes(inventory)]
        faults = {(fault.kind.value, fault.uuid or "") for fault in inventory.faults}
        found += self._spans(EventKind.FAULT, faults)
        return tuple(found)

    def _gaps(self, uuid: str) -> Iterator[Event]:
        seen, self._last_seen[uuid] = self._last_seen.get(uuid), (self._now, self.interval_seconds)
        if seen is None:
            return
        # Late by what was usual then: while a driver hangs nothing comes, and what is usual now is no measure.
        last, interval = seen
        if self._now.monotonic_seconds - last.monotonic_seconds > LATE * interval:
            yield Event(EventKind.GAP, last, self._now, uuid)

    def _slowed(self, uuid: str, readings: Readings) -> list[Event]:
        bits = readings.get("clock_reasons")
        if bits is None or bits.value is None:
            return []
        use = readings.get("utilization_fraction")
        reasons = slowing(int(bits.value), None if use is None else use.value)
        return self._spans(EventKind.SLOWED, {(reason.name, uuid) for reason in reasons}, uuid)

    def _spans(self, kind: EventKind, present: set[tuple[str, str]], only: str | None = None) -> list[Event]:
        """Begin spans that are present and not yet open, and end open ones that are no longer present."""
        found = []
        for key, event in list(self._open.items()):
            if key[0] is kind and (only is None or key[1] == only) and (event.what, event.uuid) not in present:
                del self._open[key]
                found.append(replace(event, ended=self._now))
        for what, uuid in sorted(present):
            if (kind, uuid, what) not in self._open:
                event = self._open[kind, uuid, what] = Event(kind, self._now, None, uuid, what)
                found.append(event)
        return found

    def _errors(self, uuid: str, readings: Readings) -> Iterator[Event]:
        for name in _ECC:
            reading = readings.get(name)
            if reading is None or reading.value is None:
                continue
            before = self._counts.get((uuid, name))
            self._counts[uuid, name] = reading.value
            if before is not None and reading.value > before:
                yield self._instant(EventKind.ECC, uuid, name, int(reading.value - before))

    def _xid(self, xid: Xid) -> Event:
        return self._instant(EventKind.XID, xid.uuid, number=xid.number)

    def _process_changes(self, processes: Iterable[CardProcess]) -> Iterator[Event]:
        before = self._processes
        self._processes = {(process.uuid, process.pid): process for process in processes}
        if before is None:
            return
        for key in self._processes.keys() - before.keys():
            yield self._of_process(EventKind.PROCESS_STARTED, self._processes[key])
        for key in before.keys() - self._processes.keys():
            yield self._of_process(EventKind.PROCESS_ENDED, before[key])

    def _of_process(self, kind: EventKind, process: CardProcess) -> Event:
        return self._instant(kind, process.uuid, "" if process.host is None else process.host.name, process.pid)

    def _driver_changes(self, inventory: Inventory) -> Iterator[Event]:
        if inventory.driver_version and self._driver and inventory.driver_version != self._driver:
            yield self._instant(EventKind.DRIVER_CHANGED, "", f"{self._driver} → {inventory.driver_version}")
        self._driver = inventory.driver_version or self._driver

    def _state_changes(self, inventory: Inventory) -> Iterator[Event]:
        is_first = not self._states
        for device in inventory.devices:
            before = self._states.get(device.uuid)
            self._states[device.uuid] = device.state
            if before is None:
                if not is_first:
                    yield self._instant(EventKind.ADDED, device.uuid, device.name)
            elif before != device.state:
                yield self._instant(_STATE_EVENTS[device.state], device.uuid, device.name)

    def _instant(self, kind: EventKind, uuid: str, what: str = "", number: int | None = None) -> Event:
        return Event(kind, self._now, self._now, uuid, what, number)
