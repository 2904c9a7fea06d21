"""Record types of a recording: header, updates, the plan, marks, and the proper end.

Samples and inventories are those of `wire`. As a file may come from anywhere, everything read is validated.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, get_args

from planner.monitor.readings.events import Moment
from planner.monitor.readings.inventory import Device, DeviceState, Inventory
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME
from planner.monitor.readings.reading import is_number
from planner.monitor.readings.sample import CardProcess, HostProcess, ProcessKind, Readings, Sample
from planner.monitor.readings.wire import BadLineError, Message, inventory_line, read_line, sample_line

MOST_CARDS: Final = 1024
"""Most cards of one machine; a line with more is not valid."""
_STATES: Final = get_args(DeviceState)
_PROCESS_KINDS: Final = get_args(ProcessKind)
_CARD: Final = frozenset(BY_NAME)
_HOST: Final = frozenset(HOST_BY_NAME)
# Far beyond any clock and any reading, and far within what sums of them can hold.
_MOST: Final = 1e24


def validate_message(message: Message) -> Inventory | Sample:
    """Return a sample or an inventory with all types validated; metrics of later versions are dropped.

    Raises:
        BadLineError: If it is anything else, or a value has the wrong type.
    """
    if isinstance(message, Sample):
        _check_sample(message)
        return _without_unknown(message)
    if isinstance(message, Inventory):
        _check_inventory(message)
        return message
    raise BadLineError("neither a sample nor an inventory")


def check_numbers(values: Iterable[object]) -> None:
    """See that all are ordinary numbers.

    Raises:
        BadLineError: If one is a text, infinite, no number, or beyond anything that is measured.
    """
    for value in values:
        # Not-a-number fails every comparison.
        if not is_number(value) or not -_MOST < value < _MOST:
            raise BadLineError(f"{str(value)[:40]!r} is not a number")


def check_texts(values: Iterable[object]) -> None:
    """See that all are texts.

    Raises:
        BadLineError: If one is not.
    """
    if not all(isinstance(value, str) for value in values):
        raise BadLineError("a value that should be text is not")


def _check_sample(sample: Sample) -> None:
    check_numbers((sample.monotonic_seconds, sample.wall_seconds, *sample.cores))
    _check_readings(sample.host)
    _check_count(len(sample.devices))
    for readings in sample.devices.values():
        _check_readings(readings)
    for process in sample.processes or ():
        _check_process(process)
    for xid in sample.xids:
        check_texts([xid.uuid])
        check_numbers([xid.number])
    check_numbers(sample.cost or ())


def _without_unknown(sample: Sample) -> Sample:
    if sample.host.keys() <= _HOST and all(readings.keys() <= _CARD for readings in sample.devices.values()):
        return sample
    devices = {uuid: _only(readings, _CARD) for uuid, readings in sample.devices.items()}
    return replace(sample, devices=devices, host=_only(sample.host, _HOST))


def _only(readings: Readings, names: frozenset[str]) -> Readings:
    return {name: reading for name, reading in readings.items() if name in names}


def _check_readings(readings: Readings) -> None:
    check_numbers(reading.value for reading in readings.values() if reading.value is not None)


def _check_process(process: CardProcess) -> None:
    check_numbers([process.pid])
    check_texts([process.uuid])
    _check_readings(process.quantities)
    _check_choice(process.kind, _PROCESS_KINDS)
    _check_choice(process.is_reliable, (True, False))
    if process.host is not None:
        _check_host(process.host)


def _check_host(host: HostProcess) -> None:
    check_texts((host.name, host.user, host.command))
    check_numbers((host.started_seconds, host.memory_bytes, host.cpu_fraction or 0.0))
    _check_choice(host.is_own, (True, False))


def _check_inventory(inventory: Inventory) -> None:
    check_texts((inventory.driver_version, inventory.nvml_version, inventory.cuda_version))
    _check_count(len(inventory.devices))
    for device in inventory.devices:
        _check_device(device)
    for fault in inventory.faults:
        check_texts((fault.detail, fault.uuid or ""))
        check_numbers([fault.since_seconds])


def _check_device(device: Device) -> None:
    check_texts((device.uuid, device.name, device.pci_bus_id, device.mig_parent or "", device.raw_name or ""))
    check_numbers((device.index, *(device.mig_instance or ())))
    _check_choice(device.state, _STATES)
    _check_readings(device.facts)


def _check_count(cards: int) -> None:
    if cards > MOST_CARDS:
        raise BadLineError(f"no machine has {cards:,} cards")


def _check_choice(value: object, choices: tuple[object, ...]) -> None:
    # 1 equals True, and is no answer.
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise BadLineError(f"{str(value)[:40]!r} is none of {choices}")


VERSION: Final = 1
"""Format version that this program writes, and the latest that it reads."""


class Header(NamedTuple):
    """Format version of a file, the program that wrote it, and when it was begun."""

    version: int
    program: str
    wall_seconds: float


class Mark(NamedTuple):
    """A user's note at a time."""

    monotonic_seconds: float
    wall_seconds: float
    text: str


class RecordedPlan(NamedTuple):
    """The active plan, as plain values."""

    plan: Mapping[str, Any]


class End(NamedTuple):
    """The proper end; a file without it was cut off."""

    wall_seconds: float


Record = Header | Mark | RecordedPlan | End | Moment | Inventory | Sample
"""Content of a line. A moment dates the inventories after it, which have no time of their own."""

SAMPLE_START: Final = b'{"sample"'
"""Start of every line that holds a sample."""
_KINDS: Final[dict[str, type[Header] | type[Mark] | type[End] | type[Moment]]] = {
    "recording": Header,
    "mark": Mark,
    "end": End,
    "at": Moment,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_TEXTS: Final = ("program", "text")
_INVENTORY_START: Final = b'{"inventory"'
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def record_line(record: Record) -> bytes:
    """Return a record as a line."""
    if isinstance(record, Sample):
        return sample_line(record)
    if isinstance(record, Inventory):
        return inventory_line(record)
    kind, body = ("plan", record.plan) if isinstance(record, RecordedPlan) else (_NAMES[type(record)], record._asdict())
    return _encode({kind: body}).encode("utf-8", "backslashreplace") + b"\n"


def read_record(line: bytes) -> Record:
    """Parse a line.

    Raises:
        BadLineError: If it is not a valid record, or holds impossible values: text for a number, infinities, and so on.
    """
    try:
        if line.startswith((SAMPLE_START, _INVENTORY_START)):
            return validate_message(read_line(line))
        ((kind, body),) = json.loads(line).items()
        return _planned_run(body) if kind == "plan" else _note(kind, body)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise BadLineError(str(error)) from error


def _planned_run(body: object) -> RecordedPlan:
    if not isinstance(body, dict):
        raise BadLineError("a plan must be an object")
    return RecordedPlan(body)


def _note(kind: str, body: Mapping[str, Any]) -> Header | Mark | End | Moment:
    note = _KINDS[kind](**body)
    values = note._asdict()
    check_texts(value for name, value in values.items() if name in _TEXTS)
    check_numbers(value for name, value in values.items() if name not in _TEXTS)
    return note
