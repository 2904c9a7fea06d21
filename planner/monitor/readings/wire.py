"""JSON lines of samples and inventories: the sampler's messages, and the contents of recordings.

A line is an object with one key, the kind of message. Input is validated: a process that dies while writing leaves an
incomplete line.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import JsonReading, Reading, reading_from_json, reading_to_json
from planner.monitor.readings.sample import (
    PROCESS_QUANTITIES,
    CardProcess,
    HostProcess,
    Link,
    Readings,
    Sample,
    SamplingCost,
    Xid,
)


class PendingCall(NamedTuple):
    """A driver call in progress, its GPU (`subject`, or empty), and its start by the monotonic clock."""

    call: str
    subject: str
    since_seconds: float


WIRE_VERSION: Final = 1
"""Version of the messages between machines; another one is not read."""


class Hello(NamedTuple):
    """First message from another machine: the version of its messages, its program and its name."""

    wire: int
    program: str
    machine: str


class ClockAnswer(NamedTuple):
    """Another machine's clocks, and when it was asked by the monotonic clock of the one who asked, all in seconds."""

    asked_seconds: float
    monotonic_seconds: float
    wall_seconds: float


Message = Inventory | Sample | PendingCall | Hello | ClockAnswer | None
"""Content of a line; None means that no driver call is in progress."""

# Created once: json.dumps would create an encoder for each line.
_encode_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


# Recordings of earlier versions lack the other quantities of processes.
_REQUIRED: Final = PROCESS_QUANTITIES[:3]


class BadLineError(ValueError):
    """Error: a line is not a valid message."""


def inventory_line(inventory: Inventory) -> bytes:
    """Return an inventory as a JSON line."""
    return _json_line("inventory", inventory_object(inventory))


def sample_line(sample: Sample) -> bytes:
    """Return a sample as a JSON line."""
    body: dict[str, Any] = {
        "at": sample.monotonic_seconds,
        "wall": sample.wall_seconds,
        "devices": {uuid: _json_readings(readings) for uuid, readings in sample.devices.items()},
        "host": _json_readings(sample.host),
        "cores": sample.cores,
    }
    if sample.processes is not None:
        body["processes"] = [
            {
                "pid": process.pid,
                "uuid": process.uuid,
                "kind": process.kind,
                **_json_readings(process.quantities),
                "host": None if process.host is None else process.host._asdict(),
                "is_reliable": process.is_reliable,
            }
            for process in sample.processes
        ]
    if sample.xids:
        body["xids"] = sample.xids
    if sample.links:
        body["links"] = sample.links
    if sample.cost is not None:
        body["cost"] = sample.cost
    return _json_line("sample", body)


def pending_call_line(pending_call: PendingCall | None) -> bytes:
    """Return the driver call in progress as a JSON line."""
    return _json_line("busy", pending_call)


def hello_line(hello: Hello) -> bytes:
    """Return a greeting as a JSON line."""
    return _json_line("hello", hello._asdict())


def clock_line(answer: ClockAnswer) -> bytes:
    """Return the clocks of this machine as a JSON line."""
    return _json_line("clock", answer)


def read_line(line: bytes) -> Message:
    """Parse a JSON line of the sampler, which may hold any number.

    Raises:
        BadLineError: If the line is not a valid message.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLineError(str(error)) from error
    return parse_message(content)


def parse_message(content: Any) -> Message:  # noqa: ANN401  # any JSON value
    """Return the message that the JSON value of a line holds.

    Raises:
        BadLineError: If it is not a valid message.
    """
    try:
        ((kind, body),) = content.items()
        if kind == "sample":
            return _parse_sample(body)
        if kind == "inventory":
            return _parse_inventory(body)
        if kind == "busy":
            return None if body is None else PendingCall(str(body[0]), str(body[1]), float(body[2]))
        if kind == "clock":
            return ClockAnswer(*map(float, body))
        if kind == "hello":
            # Of another version, nothing but the version is known to be there.
            return Hello(int(body["wire"]), str(body.get("program", "")), str(body.get("machine", "")))
    except KeyError as error:
        raise BadLineError(f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise BadLineError(str(error)) from error
    raise BadLineError(f"unknown kind of message: {kind!r}")


def inventory_object(inventory: Inventory) -> dict[str, Any]:
    """Return an inventory as JSON values."""
    return {
        "driver": inventory.driver_version,
        "nvml": inventory.nvml_version,
        "cuda": inventory.cuda_version,
        "devices": [{**_device_fields(device), "facts": _json_readings(device.facts)} for device in inventory.devices],
        "faults": [
            {name: value for name, value in asdict(fault).items() if name != "login"} for fault in inventory.faults
        ],
        **({"machine": inventory.machine} if inventory.machine else {}),
    }


def _device_fields(device: Device) -> dict[str, Any]:
    return {field.name: getattr(device, field.name) for field in fields(device) if field.name != "facts"}


def _json_line(kind: str, body: object) -> bytes:
    # Text from the operating system may contain bytes that are not valid UTF-8.
    return _encode_json({kind: body}).encode("utf-8", "backslashreplace") + b"\n"


def _json_readings(readings: Readings) -> dict[str, JsonReading]:
    return {name: reading_to_json(reading) for name, reading in readings.items()}


def _parse_sample(body: Mapping[str, Any]) -> Sample:
    processes = body.get("processes")
    cost = body.get("cost")
    return Sample(
        monotonic_seconds=float(body["at"]),
        wall_seconds=float(body["wall"]),
        devices={uuid: _parse_readings(readings) for uuid, readings in body["devices"].items()},
        host=_parse_readings(body["host"]),
        cores=tuple(body["cores"]),
        processes=None if processes is None else tuple(map(_parse_process, processes)),
        xids=tuple(Xid(uuid, number) for uuid, number in body.get("xids", ())),
        links={uuid: tuple(Link(*link) for link in links) for uuid, links in body.get("links", {}).items()},
        cost=None if cost is None else SamplingCost(*cost),
    )


def _parse_readings(body: Mapping[str, JsonReading]) -> dict[str, Reading]:
    return {name: reading_from_json(value) for name, value in body.items()}


def _parse_process(body: Mapping[str, Any]) -> CardProcess:
    host = body["host"]
    return CardProcess(
        pid=body["pid"],
        uuid=body["uuid"],
        kind=body["kind"],
        **{name: reading_from_json(body[name]) for name in PROCESS_QUANTITIES if name in _REQUIRED or name in body},
        host=None if host is None else HostProcess(**host),
        is_reliable=body["is_reliable"],
    )


def _parse_inventory(body: Mapping[str, Any]) -> Inventory:
    return Inventory(
        driver_version=body["driver"],
        nvml_version=body["nvml"],
        cuda_version=body["cuda"],
        devices=tuple(map(_parse_device, body["devices"])),
        faults=tuple(Fault(**{**fault, "kind": FaultKind(fault["kind"])}) for fault in body["faults"]),
        machine=body.get("machine", ""),
    )


def _parse_device(body: Mapping[str, Any]) -> Device:
    instance = body["mig_instance"]
    changed = {"facts": _parse_readings(body["facts"]), "mig_instance": None if instance is None else tuple(instance)}
    return Device(**{**body, **changed})
