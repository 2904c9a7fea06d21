"""The lines of a recording: what it is, what was seen and when, the plan, marks, and its proper end.

Samples and inventories are those of `wire`. Since a file may come from anywhere, what is read is checked in full.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from planner.monitor.readings.events import Moment
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import BadLineError, inventory_line, read_line, sample_line
from planner.monitor.recording.checks import check_numbers, check_texts, checked

VERSION: Final = 1
"""What this program writes; it reads no later one."""


class Header(NamedTuple):
    """What a file is: the version of its form, the program that wrote it, and when it was begun."""

    version: int
    program: str
    wall_seconds: float


class Mark(NamedTuple):
    """A note that someone made at a time."""

    monotonic_seconds: float
    wall_seconds: float
    text: str


class PlannedRun(NamedTuple):
    """The plan that stood beside the readings, as plain values."""

    plan: Mapping[str, Any]


class End(NamedTuple):
    """The proper end; a file without it was cut off."""

    wall_seconds: float


Record = Header | Mark | PlannedRun | End | Moment | Inventory | Sample
"""What a line says. A moment dates the inventories after it, which have no time of their own."""

SAMPLE_START: Final = b'{"sample"'
"""How every line that holds a sample starts."""
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
    kind, body = ("plan", record.plan) if isinstance(record, PlannedRun) else (_NAMES[type(record)], record._asdict())
    return _encode({kind: body}).encode("utf-8", "backslashreplace") + b"\n"


def read_record(line: bytes) -> Record:
    """Return what a line says.

    Raises:
        BadLineError: If it is none of ours, or holds what cannot be: texts in place of numbers, infinities, and so on.
    """
    try:
        if line.startswith((SAMPLE_START, _INVENTORY_START)):
            return checked(read_line(line))
        ((kind, body),) = json.loads(line).items()
        return _planned_run(body) if kind == "plan" else _note(kind, body)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise BadLineError(str(error)) from error


def _planned_run(body: object) -> PlannedRun:
    if not isinstance(body, dict):
        raise BadLineError("a plan is an object")
    return PlannedRun(body)


def _note(kind: str, body: Mapping[str, Any]) -> Header | Mark | End | Moment:
    note = _KINDS[kind](**body)
    values = note._asdict()
    check_texts(value for name, value in values.items() if name in _TEXTS)
    check_numbers(value for name, value in values.items() if name not in _TEXTS)
    return note
