"""Record types of a recording: header, updates, plan, marks and end.

Samples and inventories are encoded as in `wire`. A file may come from anywhere, so all records are validated.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME
from planner.monitor.readings.reading import Reading, is_number
from planner.monitor.readings.sample import Readings, Sample
from planner.monitor.readings.wire import BadLineError, Message, inventory_line, parse_message, sample_line
from planner.parsing import parse_json
from planner.storage import UnreadableFileError

MAX_CARDS_PER_MACHINE: Final = 1024
"""Maximum number of GPUs in one machine; a line with more GPUs is not valid."""
_CARD_METRIC_NAMES: Final = frozenset(BY_NAME)
_HOST_METRIC_NAMES: Final = frozenset(HOST_BY_NAME)
# Far above any time or reading, but sums of such numbers are still finite.
_MAX_MAGNITUDE: Final = 1e24
_MAX_SECONDS: Final = 2e10
"""Longest time, 634 years: a date that is calculated from three of them is one that calendars know."""


def validate_message(message: Message) -> Inventory | Sample:
    """Return a sample or inventory with validated types, without metrics of later versions.

    Raises:
        BadLineError: If the message is of another kind, or a value has the wrong type.
    """
    if not isinstance(message, Sample | Inventory):
        raise BadLineError("neither a sample nor an inventory")
    if len(message.devices) > MAX_CARDS_PER_MACHINE:
        raise BadLineError(f"no machine has {len(message.devices):,} GPUs")
    _check_type(message, type(message))
    return _without_unknown_metrics(message) if isinstance(message, Sample) else message


def check_numbers(values: Iterable[object]) -> None:
    """Check that all values are finite numbers of plausible size.

    Raises:
        BadLineError: If a value is text, infinite, not a number, or too large to be a measurement.
    """
    for value in values:
        # NaN fails every comparison.
        if not is_number(value) or not -_MAX_MAGNITUDE < value < _MAX_MAGNITUDE:
            raise BadLineError(f"{str(value)[:40]!r} is not a number")


def check_times(values: Iterable[float]) -> None:
    """Check that times in seconds are far from the ends of the calendar.

    Raises:
        BadLineError: If a time is not finite or too large to be one.
    """
    for value in values:
        if not -_MAX_SECONDS < value < _MAX_SECONDS:
            raise BadLineError(f"{value!r} seconds are not a time")


def check_texts(values: Iterable[object]) -> None:
    """Check that all values are text.

    Raises:
        BadLineError: If a value is not text.
    """
    if not all(isinstance(value, str) for value in values):
        raise BadLineError("a value that should be text is not")


def _without_unknown_metrics(sample: Sample) -> Sample:
    if sample.host.keys() <= _HOST_METRIC_NAMES and all(
        readings.keys() <= _CARD_METRIC_NAMES for readings in sample.devices.values()
    ):
        return sample
    devices = {uuid: _select_readings(readings, _CARD_METRIC_NAMES) for uuid, readings in sample.devices.items()}
    return replace(sample, devices=devices, host=_select_readings(sample.host, _HOST_METRIC_NAMES))


def _select_readings(readings: Readings, names: frozenset[str]) -> Readings:
    return {name: reading for name, reading in readings.items() if name in names}


def _check_type(value: object, kind: object) -> None:
    """Check a value and all its fields against the declared type; int and float are interchangeable."""
    origin, inner, fields = _type_structure(kind)
    if origin is UnionType:
        if value is not None:
            _check_type(value, inner[0])
    elif origin is tuple and isinstance(value, tuple):
        _check_values(value, inner[0])
    elif origin is Mapping and isinstance(value, Mapping):
        _check_values(value.values(), inner[1])
    elif kind is str:
        check_texts([value])
    elif kind in (int, float):
        check_numbers([value])
    elif not (isinstance(value, kind) if isinstance(kind, type) else value in inner):
        raise BadLineError(f"{str(value)[:40]!r} is none of {inner or kind}")
    for name, declared in fields.items():
        _check_type(field := getattr(value, name), declared)
        if name.endswith("_seconds"):
            check_times([field])


def _check_values(values: Iterable[Any], kind: object) -> None:
    # Numbers are checked in bulk: a day of recording has a hundred million readings.
    if kind is Reading:
        check_numbers(reading.value for reading in values if reading.value is not None)
    elif kind is float:
        check_numbers(values)
    else:
        for value in values:
            _check_type(value, kind)


@cache
def _type_structure(kind: object) -> tuple[object, tuple[Any, ...], dict[str, Any]]:
    """Return origin and arguments of a declared type, and for record types also the types of the fields."""
    fields = get_type_hints(kind) if is_dataclass(kind) or hasattr(kind, "_fields") else {}
    return get_origin(kind), get_args(kind), fields


FORMAT_VERSION: Final = 1
"""Format version that this program writes, and the latest that it reads."""


class RecordingHeader(NamedTuple):
    """Format version of a recording, the program that wrote it, and its start in seconds since 1970."""

    version: int
    program: str
    wall_seconds: float


class RecordedMark(NamedTuple):
    """A user's note at a time."""

    monotonic_seconds: float
    wall_seconds: float
    text: str


class RecordedPlan(NamedTuple):
    """The active plan as JSON values."""

    plan: Mapping[str, Any]


class RecordingEnd(NamedTuple):
    """End of a recording; a file without this record was cut off."""

    wall_seconds: float


Record = RecordingHeader | RecordedMark | RecordedPlan | RecordingEnd | Timestamp | Inventory | Sample
"""Content of a line. A `Timestamp` dates the inventories after it, which have no time."""

SAMPLE_START: Final = b'{"sample"'
"""First bytes of every line that holds a sample."""
_NOTE_TYPES: Final[dict[str, type[RecordingHeader] | type[RecordedMark] | type[RecordingEnd] | type[Timestamp]]] = {
    "recording": RecordingHeader,
    "mark": RecordedMark,
    "end": RecordingEnd,
    "at": Timestamp,
}
_NOTE_NAMES: Final = {kind: name for name, kind in _NOTE_TYPES.items()}
_TEXT_FIELDS: Final = ("program", "text")
_UPDATE_KINDS: Final = ("sample", "inventory")
_encode_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def record_line(record: Record) -> bytes:
    """Return a record as a JSON line."""
    if isinstance(record, Sample):
        return sample_line(record)
    if isinstance(record, Inventory):
        return inventory_line(record)
    kind, body = (
        ("plan", record.plan) if isinstance(record, RecordedPlan) else (_NOTE_NAMES[type(record)], record._asdict())
    )
    return _encode_json({kind: body}).encode("utf-8", "backslashreplace") + b"\n"


def read_record(line: bytes) -> Record:
    """Parse the JSON line of a record.

    Raises:
        BadLineError: If the line is not a valid record, or has invalid values, such as text for a number or infinities.
    """
    try:
        content = parse_json(line, allow_surrogates=True)
        ((kind, body),) = content.items()
        if kind in _UPDATE_KINDS:
            return validate_message(parse_message(content))
        return _parse_plan_record(body) if kind == "plan" else _parse_small_record(kind, body)
    except (UnreadableFileError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise BadLineError(str(error)) from error


def _parse_plan_record(body: object) -> RecordedPlan:
    if not isinstance(body, dict):
        raise BadLineError("a plan must be an object")
    return RecordedPlan(body)


def _parse_small_record(
    kind: str, body: Mapping[str, Any]
) -> RecordingHeader | RecordedMark | RecordingEnd | Timestamp:
    note = _NOTE_TYPES[kind](**body)
    values = note._asdict()
    check_texts(value for name, value in values.items() if name in _TEXT_FIELDS)
    check_numbers(value for name, value in values.items() if name not in _TEXT_FIELDS)
    check_times(value for name, value in values.items() if name.endswith("_seconds"))
    return note
