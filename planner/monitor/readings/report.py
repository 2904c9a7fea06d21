"""Current state of GPUs, host and monitor as JSON: `{"devices": [...], "host": {...}, "state": {...}}`.

The names are a stable interface. An unknown quantity is null, and `missing` holds its cause.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from planner.monitor.readings.faults import Fault
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest, card_sharing
from planner.monitor.readings.metrics import CLOCK_REASONS, DEVICE_METRICS, FACTS, HOST_METRICS, Metric
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess

_NOT_YET = missing(Cause.NOT_YET)


def state_report(latest: Latest) -> dict[str, Any]:
    """Return the current state of GPUs, host and monitor as JSON values."""
    inventory = latest.inventory
    return {
        "devices": [_device_object(device, latest) for device in inventory.devices],
        "host": {**_quantities_object(HOST_METRICS, latest.host), "cores": list(latest.cores)},
        "state": {
            "at": None if latest.wall_seconds is None else _iso_time(latest.wall_seconds),
            "monotonic_seconds": latest.monotonic_seconds,
            "machine": inventory.machine or None,
            "driver_version": inventory.driver_version or None,
            "nvml_version": inventory.nvml_version or None,
            "cuda_version": inventory.cuda_version or None,
            "faults": [fault_object(fault) for fault in inventory.faults],
            "sampler": None if latest.cost is None else latest.cost._asdict(),
        },
    }


def fault_object(fault: Fault) -> dict[str, Any]:
    """Return a fault with its description as JSON values."""
    return {
        "kind": fault.kind.value,
        "severity": fault.description.severity,
        "title": fault.description.title,
        "advice": fault.description.advice,
        "detail": fault.detail,
        "uuid": fault.uuid,
        "since": _iso_time(fault.since_seconds),
    }


def _device_object(device: Device, latest: Latest) -> dict[str, Any]:
    readings = {metric.name: latest.reading(device.uuid, metric.name) for metric in DEVICE_METRICS}
    bits = readings["clock_reasons"].value
    facts = _quantities_object(FACTS, device.facts)
    return {
        "uuid": device.uuid,
        "name": device.name,
        "index": device.index,
        "pci_bus_id": device.pci_bus_id or None,
        "mig_parent": device.mig_parent,
        "mig_instance": device.mig_instance,
        "mig_profile": device.mig_profile or None,
        "driver": device.driver or None,
        "sharing": card_sharing(device, latest),
        "state": device.state,
        "facts": facts["metrics"],
        "facts_missing": facts["missing"],
        **_quantities_object(DEVICE_METRICS, readings),
        "clock_reasons": None if bits is None else [reason.name for reason in CLOCK_REASONS if int(bits) & reason.bit],
        "processes": [_process_object(process) for process in latest.processes if process.uuid == device.uuid],
        "nvlinks": [link._asdict() for link in latest.links.get(device.uuid, ())],
        "xids": [
            {"number": xid.number, "at": _iso_time(xid.wall_seconds)} for xid in latest.xids if xid.uuid == device.uuid
        ],
    }


def _quantities_object(metrics: Iterable[Metric], readings: Mapping[str, Reading]) -> dict[str, Any]:
    selected = {metric.name: readings.get(metric.name, _NOT_YET) for metric in metrics}
    return {
        "metrics": {name: reading.value for name, reading in selected.items()},
        "missing": {name: reading.cause for name, reading in selected.items() if reading.value is None},
        "implausible": [name for name, reading in selected.items() if reading.is_implausible],
    }


def _process_object(process: CardProcess) -> dict[str, Any]:
    quantities, host = process.quantities, process.host
    return {
        "pid": process.pid,
        "kind": process.kind,
        **{name: reading.value for name, reading in quantities.items()},
        "missing": {name: reading.cause for name, reading in quantities.items() if reading.value is None},
        "is_reliable": process.is_reliable,
        "host": None if host is None else {**host._asdict(), "started": _iso_time(host.started_seconds)},
    }


def _iso_time(wall_seconds: float) -> str:
    return datetime.fromtimestamp(wall_seconds, UTC).isoformat(timespec="milliseconds")
