"""Alerts on temperature, memory, idle GPUs, ended processes, Xid errors, and GPUs that are lost or silent."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from planner.monitor.readings.faults import LINK_FAULTS, Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import CardProcess, Sample
from planner.monitor.settings import AlertRules

# 5 % utilization as idle and 2 °C of hysteresis are all-smi's values; 5 points of memory are chosen to match them.
_IDLE_BELOW: Final = 0.05
_TEMPERATURE_HYSTERESIS: Final = 2.0
_MEMORY_HYSTERESIS: Final = 0.05
# A program that fails in a loop reports the same Xid many times a second.
_SAME_XID_SECONDS: Final = 600.0
# A machine that is silent for seconds may answer again; one whose connection was given up is an event.
_SILENCES: Final = LINK_FAULTS | {
    FaultKind.CARD_NOT_ANSWERING,
    FaultKind.NOT_ANSWERING,
    FaultKind.STUCK,
    FaultKind.SAMPLER_CRASHED,
}
_ENGINE_METRICS: Final = ("utilization_fraction", "encoder_fraction", "decoder_fraction")


class AlertKind(StrEnum):
    """Kind of alert, such as a high temperature; the values are names in recordings and settings."""

    TEMPERATURE = "temperature"
    MEMORY = "memory"
    LOST = "lost"
    IDLE = "idle"
    PROCESS_ENDED = "process-ended"
    XID = "xid"
    SILENT = "silent"


class Alert(NamedTuple):
    """One alert about one GPU, or about all (`device` None), at a monotonic time.

    `seen` is the value that crossed the threshold, or the number of the Xid; `fault` is why there is silence.
    """

    kind: AlertKind
    device: Device | None
    at_seconds: float
    seen: float | None = None
    process: CardProcess | None = None
    fault: Fault | None = None


class _ThresholdState:
    """State of one threshold: one alert after a sustained excess, the next only after the value fell clearly below."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._has_fired = False

    def should_alert(self, now: float, *, is_exceeded: bool, is_left: bool, hold_seconds: float) -> bool:
        """Return whether to alert now: `is_exceeded` for `hold_seconds`; after an alert, not again until `is_left`."""
        if is_left:
            self._since, self._has_fired = None, False
        elif is_exceeded and self._since is None:
            self._since = now
        if self._since is None or self._has_fired or now - self._since < hold_seconds:
            return False
        self._has_fired = True
        return True


class AlertWatch:
    """Checker of every update of the readings against the alert rules; each alert is reported once."""

    def __init__(self, rules: AlertRules) -> None:
        self.rules = rules
        self._threshold_states: dict[tuple[AlertKind, str], _ThresholdState] = {}
        self._lost: frozenset[str] = frozenset()
        self._silent: frozenset[str | None] = frozenset()
        self._xids_at: dict[tuple[str, int], float] = {}
        self._processes: dict[tuple[str, int], CardProcess] | None = None

    def note(self, update: Inventory | Sample, latest: Latest) -> tuple[Alert, ...]:
        """Return the alerts that an update raises; `latest` must already include `update`."""
        if not self.rules.is_on:
            return ()
        now = latest.monotonic_seconds or 0.0
        alerts = [*self._lost_card_alerts(latest, now), *self._silence_alerts(latest, now)]
        if isinstance(update, Sample):
            alerts += self._xid_alerts(update, latest, now)
            for device in latest.inventory.devices:
                if device.uuid in update.devices:
                    alerts += self._threshold_alerts(device, latest, now)
            if update.processes is not None:
                alerts += self._ended_process_alerts(latest, now)
        return tuple(alerts)

    def _threshold_alerts(self, device: Device, latest: Latest, now: float) -> Iterator[Alert]:
        rules = self.rules
        temperature = latest.reading(device.uuid, "temperature_celsius").value
        yield from self._alert_above(
            AlertKind.TEMPERATURE, device, now, temperature, rules.temperature_celsius, _TEMPERATURE_HYSTERESIS
        )
        used_bytes, total_bytes = (
            latest.reading(device.uuid, "memory_used_bytes").value,
            device.fact("memory_total_bytes"),
        )
        share = None if used_bytes is None or not total_bytes else used_bytes / total_bytes
        yield from self._alert_above(AlertKind.MEMORY, device, now, share, rules.memory_fraction, _MEMORY_HYSTERESIS)
        utilization = _highest_utilization(device, latest)
        if utilization is not None and rules.idle_minutes is not None:
            is_idle, seconds = utilization < _IDLE_BELOW, rules.idle_minutes * 60
            if self._threshold_state(AlertKind.IDLE, device).should_alert(
                now, is_exceeded=is_idle, is_left=not is_idle, hold_seconds=seconds
            ):
                yield Alert(AlertKind.IDLE, device, now, utilization)

    def _alert_above(
        self,
        kind: AlertKind,
        device: Device,
        now: float,
        value: float | None,
        threshold: float | None,
        hysteresis: float,
    ) -> Iterator[Alert]:
        if value is None or threshold is None:
            return
        is_exceeded, is_left = value >= threshold, value < threshold - hysteresis
        if self._threshold_state(kind, device).should_alert(
            now, is_exceeded=is_exceeded, is_left=is_left, hold_seconds=self.rules.hold_seconds
        ):
            yield Alert(kind, device, now, value)

    def _threshold_state(self, kind: AlertKind, device: Device) -> _ThresholdState:
        return self._threshold_states.setdefault((kind, device.uuid), _ThresholdState())

    def _lost_card_alerts(self, latest: Latest, now: float) -> Iterator[Alert]:
        before, self._lost = self._lost, frozenset(d.uuid for d in latest.inventory.devices if d.state == "lost")
        for device in latest.inventory.devices:
            if self.rules.lost and device.uuid in self._lost - before:
                yield Alert(AlertKind.LOST, device, now)

    def _silence_alerts(self, latest: Latest, now: float) -> Iterator[Alert]:
        """Yield one alert for each GPU that fell silent, and one if all GPUs did, whatever the reason becomes."""
        faults = {fault.uuid: fault for fault in latest.inventory.faults if fault.kind in _SILENCES}
        before, self._silent = self._silent, frozenset(faults)
        devices = {device.uuid: device for device in latest.inventory.devices}
        for uuid in self._silent - before:
            if self.rules.silent and (uuid is None or uuid in devices):
                yield Alert(AlertKind.SILENT, devices.get(uuid or ""), now, fault=faults[uuid])

    def _xid_alerts(self, sample: Sample, latest: Latest, now: float) -> Iterator[Alert]:
        devices = {device.uuid: device for device in latest.inventory.devices}
        for xid in sample.xids:
            before = self._xids_at.get(xid)
            if self.rules.xid and (before is None or now - before >= _SAME_XID_SECONDS):
                self._xids_at[xid] = now
                yield Alert(AlertKind.XID, devices.get(xid.uuid), now, xid.number)

    def _ended_process_alerts(self, latest: Latest, now: float) -> Iterator[Alert]:
        before, devices = self._processes or {}, {device.uuid: device for device in latest.inventory.devices}
        self._processes = {(process.uuid, process.pid): process for process in latest.processes}
        # The processes on a silent GPU are not listed, but nobody knows that they ended.
        silent = latest.inventory.silent_uuids
        self._processes |= {key: process for key, process in before.items() if key[0] in silent}
        for key in before.keys() - self._processes.keys():
            device = devices.get(key[0])
            if self.rules.process_ended and device is not None and device.state == "running":
                yield Alert(AlertKind.PROCESS_ENDED, device, now, process=before[key])


def _highest_utilization(device: Device, latest: Latest) -> float | None:
    """Return the highest utilization of any engine: a GPU that only encodes video looks idle by the SMs alone."""
    readings = (latest.reading(device.uuid, name).value for name in _ENGINE_METRICS)
    return max((value for value in readings if value is not None), default=None)
