"""Tests of one record that expressions are put together from; an unknown value passes none of the comparisons."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from planner.hardware.fields import Known, QueryField, Value
from planner.hardware.gpu import Gpu

Test = Callable[[Gpu, Known], bool]


def _read(field: QueryField) -> Callable[[Gpu, Known], Value]:
    """Return a reader whose text compares without regard to case."""
    if field.kind not in ("text", "version"):
        return field.read

    def lowered(gpu: Gpu, known: Known) -> Value:
        value = field.read(gpu, known)
        return value.lower() if isinstance(value, str) else value

    return lowered


def flag(field: QueryField) -> Test:
    """Return a test that the flag is set."""
    return lambda gpu, known: field.read(gpu, known) is True


def equal(field: QueryField, holds: Callable[[Any, Any], bool], wanted: Value) -> Test:
    """Return a test that the field equals, or differs from, the wanted value."""
    read = _read(field)

    def test(gpu: Gpu, known: Known) -> bool:
        value = read(gpu, known)
        return value is not None and holds(value, wanted)

    return test


def ordered(field: QueryField, holds: Callable[[Any, Any], bool], wanted: Value) -> Test:
    """Return a test that the field stands before or after the wanted value; text and versions have no common order."""
    read, kind = field.read, type(wanted)

    def test(gpu: Gpu, known: Known) -> bool:
        value = read(gpu, known)
        return value is not None and isinstance(value, str) == (kind is str) and holds(value, wanted)

    return test


def contains(field: QueryField, part: str) -> Test:
    """Return a test that the field's text has `part`, which is in lower case, in it."""
    read = _read(field)

    def test(gpu: Gpu, known: Known) -> bool:
        value = read(gpu, known)
        return isinstance(value, str) and part in value

    return test


def one_of(field: QueryField, values: frozenset[Value]) -> Test:
    """Return a test that the field has one of `values`."""
    read = _read(field)
    return lambda gpu, known: read(gpu, known) in values


def none_of(field: QueryField, values: frozenset[Value]) -> Test:
    """Return a test that the field is known and has none of `values`."""
    read = _read(field)

    def test(gpu: Gpu, known: Known) -> bool:
        value = read(gpu, known)
        return value is not None and value not in values

    return test


def opposite(test: Test) -> Test:
    """Return the test that passes where `test` does not."""
    return lambda gpu, known: not test(gpu, known)


def any_of(tests: list[Test]) -> Test:
    """Return the test that passes where any of `tests` does."""
    return reduce(lambda one, other: lambda gpu, known: one(gpu, known) or other(gpu, known), tests)


def all_of(tests: list[Test]) -> Test:
    """Return the test that passes where all of `tests` do."""
    return reduce(lambda one, other: lambda gpu, known: one(gpu, known) and other(gpu, known), tests)
