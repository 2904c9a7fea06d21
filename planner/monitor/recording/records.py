"""Record types of a recording: header, updates, the plan, marks, and the proper end.

Samples and inventories are those of `wire`. As a file may come from anywhere, everything read is validated.
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
from planner.monitor.readings.wire import BadLineError, Message, inventory_line, read_line, sample_line

MOST_CARDS: Final = 1024
"""Most cards of one machine; a line with more is not valid."""
_CARD: Final = frozenset(BY_NAME)
_HOST: Final = frozenset(HOST_BY_NAME)
# Far beyond any clock and any reading, and far within what sums of them can hold.
_MOST: Final = 1e24


def validate_message(message: Message) -> Inventory | Sample:
    """Return a sample or an inventory with all types validated; metrics of later versions are dropped.

    Raises:
        BadLineError: If it is anything else, or a value has the wrong type.
    """
    if not isinstance(message, Sample | Inventory):
        raise BadLineError("neither a sample nor an inventory")
    if len(message.devices) > MOST_CARDS:
        raise BadLineError(f"no machine has {len(message.devices):,} cards")
    _check_type(message, type(message))
    return _without_unknown(message) if isinstance(message, Sample) else message


def check_numbers(values: Iterable[object]) -> None:
    """Check that all values are finite numbers of plausible size.

    Raises:
        BadLineError: If one is a text, infinite, not a number, or beyond anything that is measured.
    """
    for value in values:
        # Not-a-number fails every comparison.
        if not is_number(value) or not -_MOST < value < _MOST:
            raise BadLineError(f"{str(value)[:40]!r} is not a number")


def check_texts(values: Iterable[object]) -> None:
    """Check that all values are texts.

    Raises:
        BadLineError: If one is not.
    """
    if not all(isinstance(value, str) for value in values):
        raise BadLineError("a value that should be text is not")


def _without_unknown(sample: Sample) -> Sample:
    if sample.host.keys() <= _HOST and all(readings.keys() <= _CARD for readings in sample.devices.values()):
        return sample
    devices = {uuid: _only(readings, _CARD) for uuid, readings in sample.devices.items()}
    return replace(sample, devices=devices, host=_only(sample.host, _HOST))


def _only(readings: Readings, names: frozenset[str]) -> Readings:
    return {name: reading for name, reading in readings.items() if name in names}


def _check_type(value: object, kind: object) -> None:
    """Check a value, with everything inside it, against its declared type; any number may be whole or not."""
    origin, inner, fields = _form(kind)
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
        _check_type(getattr(value, name), declared)


def _check_values(values: Iterable[Any], kind: object) -> None:
    # Numbers all at once: a day of cards has a hundred million readings.
    if kind is Reading:
        check_numbers(reading.value for reading in values if reading.value is not None)
    elif kind is float:
        check_numbers(values)
    else:
        for value in values:
            _check_type(value, kind)


@cache
def _form(kind: object) -> tuple[object, tuple[Any, ...], dict[str, Any]]:
    """Return the origin and the arguments of a declared type, and the types of its fields if it is a record."""
    fields = get_type_hints(kind) if is_dataclass(kind) or hasattr(kind, "_fields") else {}
    return get_origin(kind), get_args(kind), fields


VERSION: Final = 1
"""Format version that this program writes, and the latest that it reads."""


class RecordingHeader(NamedTuple):
    """Format version of a file, the program that wrote it, and when it was begun."""

    version: int
    program: str
    wall_seconds: float


class RecordedMark(NamedTuple):
    """A user's note at a time."""

    monotonic_seconds: float
    wall_seconds: float
    text: str


class RecordedPlan(NamedTuple):
    """The active plan, as plain values."""

    plan: Mapping[str, Any]


class RecordingEnd(NamedTuple):
    """The proper end; a file without it was cut off."""

    wall_seconds: float


Record = RecordingHeader | RecordedMark | RecordedPlan | RecordingEnd | Timestamp | Inventory | Sample
"""Content of a line. A moment dates the inventories after it, which have no time of their own."""

SAMPLE_START: Final = b'{"sample"'
"""Start of every line that holds a sample."""
_KINDS: Final[dict[str, type[RecordingHeader] | type[RecordedMark] | type[RecordingEnd] | type[Timestamp]]] = {
    "recording": RecordingHeader,
    "mark": RecordedMark,
    "end": RecordingEnd,
    "at": Timestamp,
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


def _note(kind: str, body: Mapping[str, Any]) -> RecordingHeader | RecordedMark | RecordingEnd | Timestamp:
    note = _KINDS[kind](**body)
    values = note._asdict()
    check_texts(value for name, value in values.items() if name in _TEXTS)
    check_numbers(value for name, value in values.items() if name not in _TEXTS)
    return note
