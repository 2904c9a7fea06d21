"""Tests of one record that expressions are put together from: it passes, it does not, or that is not known.

A comparison with an unknown value is not known, and nor is its opposite; `and` and `or` are where the known side does
not settle them (Kleene's three-valued logic). A record is found only where it passes.
"""

from collections.abc import Callable
from typing import Any

from planner.hardware.vocabulary import AnyRecord, Known, QueryField, Value

Test = Callable[[AnyRecord, Known], bool | None]


def _read(field: QueryField[AnyRecord]) -> Callable[[AnyRecord, Known], Value]:
    """Return a reader whose text compares without regard to case."""
    if field.kind not in ("text", "version"):
        return field.read

    def lowered(record: AnyRecord, known: Known) -> Value:
        value = field.read(record, known)
        return value.lower() if isinstance(value, str) else value

    return lowered


def flag(field: QueryField[AnyRecord]) -> Test[AnyRecord]:
    """Return a test that the flag is set."""

    def test(record: AnyRecord, known: Known) -> bool | None:
        value = field.read(record, known)
        return None if value is None else value is True

    return test


def equal(field: QueryField[AnyRecord], holds: Callable[[Any, Any], bool], wanted: Value) -> Test[AnyRecord]:
    """Return a test that the field equals, or differs from, the wanted value."""
    read = _read(field)

    def test(record: AnyRecord, known: Known) -> bool | None:
        value = read(record, known)
        return None if value is None else holds(value, wanted)

    return test


def ordered(field: QueryField[AnyRecord], holds: Callable[[Any, Any], bool], wanted: Value) -> Test[AnyRecord]:
    """Return a test that the field stands before or after the wanted value.

    Text and versions have no common order: which comes first is not known.
    """
    read, kind = field.read, type(wanted)

    def test(record: AnyRecord, known: Known) -> bool | None:
        value = read(record, known)
        return holds(value, wanted) if value is not None and isinstance(value, str) == (kind is str) else None

    return test


def contains(field: QueryField[AnyRecord], part: str) -> Test[AnyRecord]:
    """Return a test that the field's text has `part`, which is in lower case, in it."""
    read = _read(field)

    def test(record: AnyRecord, known: Known) -> bool | None:
        value = read(record, known)
        return None if value is None else part in (value if isinstance(value, str) else _version_text(value))

    return test


def one_of(field: QueryField[AnyRecord], values: frozenset[Value]) -> Test[AnyRecord]:
    """Return a test that the field has one of `values`."""
    read = _read(field)

    def test(record: AnyRecord, known: Known) -> bool | None:
        value = read(record, known)
        return None if value is None else value in values

    return test


def opposite(test: Test[AnyRecord]) -> Test[AnyRecord]:
    """Return the test that passes where it is known that `test` does not."""

    def opposed(record: AnyRecord, known: Known) -> bool | None:
        passes = test(record, known)
        return None if passes is None else not passes

    return opposed


def any_of(tests: list[Test[AnyRecord]]) -> Test[AnyRecord]:
    """Return the test that passes where any of `tests` does."""
    return _joined(tests, settled=True)


def all_of(tests: list[Test[AnyRecord]]) -> Test[AnyRecord]:
    """Return the test that passes where all of `tests` do."""
    return _joined(tests, settled=False)


def _joined(tests: list[Test[AnyRecord]], *, settled: bool) -> Test[AnyRecord]:
    """Return the test that is settled by the first that says `settled`, else unknown where any is."""
    if len(tests) == 1:
        return tests[0]

    def joined(record: AnyRecord, known: Known) -> bool | None:
        unknown = False
        for test in tests:
            passes = test(record, known)
            if passes is settled:
                return settled
            unknown = unknown or passes is None
        return None if unknown else not settled

    return joined


def _version_text(value: Value) -> str:
    """Return a version as it is written: 8.9."""
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)
