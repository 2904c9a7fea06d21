"""The schema of queries: versions, suggestions for unknown fields, and fields in their units."""

from dataclasses import dataclass

import pytest

from planner.hardware.query_fields import GPU_QUERY_SCHEMA
from planner.hardware.query_schema import FieldFactory, PlanOutcome, QueryContext, parse_version


@dataclass(frozen=True)
class Box:
    id: str = "box"
    search_text: str = "box"
    kind_words: frozenset[str] = frozenset()
    watts: float | None = 1_500.0


@pytest.mark.parametrize(
    ("text", "version"), [("8.9", (8, 9)), ("9", (9, 0)), ("12.0.1", (12, 0, 1)), ("gfx942", None), ("", None)]
)
def test_versions_are_parsed_into_numbers(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_numbers_are_scaled_to_the_unit_and_unknown_stays_unknown() -> None:
    field = FieldFactory[Box]().number("power", "Power", "kW", "board power", lambda box: box.watts, 1_000)
    assert field.read(Box(), QueryContext()) == 1.5
    assert field.read(Box(watts=None), QueryContext()) is None


def test_prices_and_verdicts_are_read_by_record_id() -> None:
    factory, known = FieldFactory[Box](), QueryContext({"box": PlanOutcome("fits", hours=2.0)}, {"box": {"rent": 3.0}})
    assert factory.price("rent", "Rent", "per hour").read(Box(), known) == 3.0
    assert factory.verdict().read(Box(), known) == "fits"
    assert factory.outcome("hours", "Hours", "h", "of the job", lambda outcome: outcome.hours).read(Box(), known) == 2.0
    assert factory.verdict().read(Box(), QueryContext()) is None


def test_an_unknown_field_suggests_similar_ones() -> None:
    assert "Did you mean memory_gib" in GPU_QUERY_SCHEMA.unknown_field_hint("memory")
    assert "Did you mean" not in GPU_QUERY_SCHEMA.unknown_field_hint("zzz")
