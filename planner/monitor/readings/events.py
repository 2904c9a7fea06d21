"""Detection of timeline events in samples and inventories, live and in recordings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from planner.monitor.readings.inventory import DeviceState, Inventory
from planner.monitor.readings.metrics import slowing_reasons
from planner.monitor.readings.sample import LATE, CardProcess, Readings, Sample, Xid


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
    """A time on the monotonic clock and on the wall clock, in seconds."""

    monotonic_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Event:
    """Event on one GPU, or on all GPUs (`uuid` empty).

    A span is emitted twice with the same `key`: when it begins, without an end, and when it ends. An instantaneous
    event ends when it begins. `what` is the name of a clock reason,
    fault, metric, GPU or process; `number` is an Xid or a PID.
    """

    kind: EventKind
    began: Timestamp
    ended: Timestamp | None
    uuid: str = ""
    what: str = ""
    number: int | None = None

    @property
    def key(self) -> tuple[EventKind, str, str, int | None, float]:
        """Return the identity of the event, which stays the same when the event ends."""
        return self.kind, self.uuid, self.what, self.number, self.began.monotonic_seconds


_STATE_EVENTS: Final[dict[DeviceState, EventKind]] = {
    "running": EventKind.RETURNED,
    "lost": EventKind.LOST,
    "asleep": EventKind.ASLEEP,
}
_ERROR_COUNTERS: Final = ("ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected")


class EventDetector:
    """Detects events by comparing each sample and inventory with the previous one.

    Samples are expected every `interval_seconds`; a much longer pause is a gap.
    """

    def __init__(self, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self._open: dict[tuple[EventKind, str, str], Event] = {}
        self._last_seen: dict[str, tuple[Timestamp, float]] = {}
        self._error_counts: dict[tuple[str, str], float] = {}
        self._processes: dict[tuple[str, int], CardProcess] | None = None
        self._states: dict[str, DeviceState] = {}
        self._silent: frozenset[str] = frozenset()
        self._driver = ""
        self._now = Timestamp(0.0, 0.0)
        self._has_time = False
        self._undated_inventory: Inventory | None = None

    def note_sample(self, sample: Sample) -> tuple[Event, ...]:
        """Return the events that a sample reveals."""
        self._now, self._has_time = Timestamp(sample.monotonic_seconds, sample.wall_seconds), True
        events: list[Event] = []
        if self._undated_inventory is not None:
            events += self.note_inventory(self._undated_inventory)
            self._undated_inventory = None
        for uuid, readings in sample.devices.items():
            events += self._gap_events(uuid)
            events += self._slowdown_events(uuid, readings)
            events += self._ecc_events(uuid, readings)
        events += map(self._xid_event, sample.xids)
        if sample.processes is not None:
            events += self._process_events(sample.processes)
        return tuple(events)

    def note_inventory(self, inventory: Inventory) -> tuple[Event, ...]:
        """Return the events that an inventory reveals; events before the first sample are postponed to its time."""
        if not self._has_time:
            self._undated_inventory = inventory
            return ()
        self._silent = inventory.silent_uuids
        events = [*self._driver_events(inventory), *self._state_events(inventory)]
        faults = {(fault.kind.value, fault.uuid or "") for fault in inventory.faults}
        events += self._span_changes(EventKind.FAULT, faults)
        return tuple(events)

    def _gap_events(self, uuid: str) -> Iterator[Event]:
        last_seen, self._last_seen[uuid] = self._last_seen.get(uuid), (self._now, self.interval_seconds)
        if last_seen is None:
            return
        # Measured by the interval at the last reading: while a driver hangs, the current interval means nothing.
        last, interval = last_seen
        if self._now.monotonic_seconds - last.monotonic_seconds > LATE * interval:
            yield Event(EventKind.GAP, last, self._now, uuid)

    def _slowdown_events(self, uuid: str, readings: Readings) -> list[Event]:
        bits = readings.get("clock_reasons")
        if bits is None or bits.value is None:
            return []
        use = readings.get("utilization_fraction")
        reasons = slowing_reasons(int(bits.value), None if use is None else use.value)
        return self._span_changes(EventKind.SLOWED, {(reason.name, uuid) for reason in reasons}, uuid)

    def _span_changes(
        self, kind: EventKind, present: set[tuple[str, str]], card_uuid: str | None = None
    ) -> list[Event]:
        """Begin spans that are present and not yet open, and end open spans that are no longer present."""
        events = []
        for key, event in list(self._open.items()):
            if (
                key[0] is kind
                and (card_uuid is None or key[1] == card_uuid)
                and (event.what, event.uuid) not in present
            ):
                del self._open[key]
                events.append(replace(event, ended=self._now))
        for what, uuid in sorted(present):
            if (kind, uuid, what) not in self._open:
                event = self._open[kind, uuid, what] = Event(kind, self._now, None, uuid, what)
                events.append(event)
        return events

    def _ecc_events(self, uuid: str, readings: Readings) -> Iterator[Event]:
        for name in _ERROR_COUNTERS:
            reading = readings.get(name)
            if reading is None or reading.value is None:
                continue
            before = self._error_counts.get((uuid, name))
            self._error_counts[uuid, name] = reading.value
            if before is not None and reading.value > before:
                yield self._instant_event(EventKind.ECC, uuid, name, int(reading.value - before))

    def _xid_event(self, xid: Xid) -> Event:
        return self._instant_event(EventKind.XID, xid.uuid, number=xid.number)

    def _process_events(self, processes: Iterable[CardProcess]) -> Iterator[Event]:
        before = self._processes
        self._processes = {(process.uuid, process.pid): process for process in processes}
        if before is None:
            return
        # The processes on a silent GPU are not listed, but nobody knows that they ended.
        self._processes |= {key: process for key, process in before.items() if key[0] in self._silent}
        for one, other, kind in (
            (self._processes, before, EventKind.PROCESS_STARTED),
            (before, self._processes, EventKind.PROCESS_ENDED),
        ):
            for key, process in one.items():  # in their order: a set's would differ from run to run
                if key not in other:
                    yield self._instant_event(
                        kind, process.uuid, "" if process.host is None else process.host.name, process.pid
                    )

    def _driver_events(self, inventory: Inventory) -> Iterator[Event]:
        if inventory.driver_version and self._driver and inventory.driver_version != self._driver:
            yield self._instant_event(EventKind.DRIVER_CHANGED, "", f"{self._driver} → {inventory.driver_version}")
        self._driver = inventory.driver_version or self._driver

    def _state_events(self, inventory: Inventory) -> Iterator[Event]:
        is_first = not self._states
        for device in inventory.devices:
            before = self._states.get(device.uuid)
            self._states[device.uuid] = device.state
            if before is None:
                if not is_first:
                    yield self._instant_event(EventKind.ADDED, device.uuid, device.name)
            elif before != device.state:
                yield self._instant_event(_STATE_EVENTS[device.state], device.uuid, device.name)

    def _instant_event(self, kind: EventKind, uuid: str, subject: str = "", number: int | None = None) -> Event:
        return Event(kind, self._now, self._now, uuid, subject, number)
