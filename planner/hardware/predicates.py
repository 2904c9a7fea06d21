"""Tests of one record that expressions are put together from; an unknown value passes none of the comparisons."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from planner.hardware.fields import Fits, QueryField, Value
from planner.hardware.gpu import Gpu

Test = Callable[[Gpu, Fits], bool]


def _read(field: QueryField) -> Callable[[Gpu, Fits], Value]:
    """Return a reader whose text compares without regard to case."""
    if field.kind not in ("text", "version"):
        return field.read

    def lowered(gpu: Gpu, fits: Fits) -> Value:
        value = field.read(gpu, fits)
        return value.lower() if isinstance(value, str) else value

    return lowered


def flag(field: QueryField) -> Test:
    """Return a test that the flag is set."""
    return lambda gpu, fits: field.read(gpu, fits) is True


def equal(field: QueryField, holds: Callable[[Any, Any], bool], wanted: Value) -> Test:
    """Return a test that the field equals, or differs from, the wanted value."""
    read = _read(field)

    def test(gpu: Gpu, fits: Fits) -> bool:
        value = read(gpu, fits)
        return value is not None and holds(value, wanted)

    return test


def ordered(field: QueryField, holds: Callable[[Any, Any], bool], wanted: Value) -> Test:
    """Return a test that the field stands before or after the wanted value; text and versions have no common order."""
    read, kind = field.read, type(wanted)

    def test(gpu: Gpu, fits: Fits) -> bool:
        value = read(gpu, fits)
        return value is not None and isinstance(value, str) == (kind is str) and holds(value, wanted)

    return test


def contains(field: QueryField, part: str) -> Test:
    """Return a test that the field's text has `part`, which is in lower case, in it."""
    read = _read(field)

    def test(gpu: Gpu, fits: Fits) -> bool:
        value = read(gpu, fits)
        return isinstance(value, str) and part in value

    return test


def one_of(field: QueryField, values: frozenset[Value]) -> Test:
    """Return a test that the field has one of `values`."""
    read = _read(field)
    return lambda gpu, fits: read(gpu, fits) in values


def none_of(field: QueryField, values: frozenset[Value]) -> Test:
    """Return a test that the field is known and has none of `values`."""
    read = _read(field)

    def test(gpu: Gpu, fits: Fits) -> bool:
        value = read(gpu, fits)
        return value is not None and value not in values

    return test


def opposite(test: Test) -> Test:
    """Return the test that passes where `test` does not."""
    return lambda gpu, fits: not test(gpu, fits)


def any_of(tests: list[Test]) -> Test:
    """Return the test that passes where any of `tests` does."""
    return reduce(lambda one, other: lambda gpu, fits: one(gpu, fits) or other(gpu, fits), tests)


def all_of(tests: list[Test]) -> Test:
    """Return the test that passes where all of `tests` do."""
    return reduce(lambda one, other: lambda gpu, fits: one(gpu, fits) and other(gpu, fits), tests)
