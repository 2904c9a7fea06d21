"""Numbers as people type them."""

from contextlib import suppress
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from planner.cost.terms import CostTerms
from planner.errors import SpecError
from planner.numbers import (
    AMOUNT,
    BYTES,
    COUNT,
    DAILY_RATE,
    FRACTION,
    GIBIBYTES,
    GIGABYTES,
    HOURS,
    LENGTH,
    MONEY,
    PERCENT,
    RATE,
    SIZE,
    WATTS,
    YEAR,
    YEARS,
    NumberKind,
    kind_at,
    number_kind,
    number_text,
    parse_number,
)
from planner.units import GB, GIB


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("50/s", DAILY_RATE, 4_320_000),
        ("240 / min", DAILY_RATE, 345_600),
        ("10k/day", DAILY_RATE, 10_000),
        ("10,000 requests", DAILY_RATE, 10_000),
        ("1.5 req/H", DAILY_RATE, 36),
        ("4", RATE, 4),
        ("1.8k/hour", RATE, 0.5),
        ("86,400/d", RATE, 1),
        ("128k", LENGTH, 131_072),
        ("32K tokens", LENGTH, 32_768),
        ("1M", LENGTH, 1_048_576),
        ("128k", COUNT, 128_000),
        ("30M", AMOUNT, 30_000_000),
        ("1e5", COUNT, 100_000),
        ("1.5E+3", COUNT, 1_500),
        ("1e-3", AMOUNT, 0.001),
        ("1.2k", COUNT, 1_200),
        ("5.", COUNT, 5),
        (".5", AMOUNT, 0.5),
        (",5", AMOUNT, 0.5),
        ("+7", COUNT, 7),
        ("−12.5", PERCENT, -12.5),
        ("1,5", AMOUNT, 1.5),
        ("0,125", AMOUNT, 0.125),
        ("1500,25", AMOUNT, 1500.25),
        ("1,500", COUNT, 1_500),
        ("1,500.5", AMOUNT, 1_500.5),
        ("1.500,5", AMOUNT, 1_500.5),
        ("1.500.000", COUNT, 1_500_000),
        ("1.500", AMOUNT, 1.5),
        ("1 500", COUNT, 1_500),
        ("1\u2009500\u202f000", COUNT, 1_500_000),
        ("1_500", COUNT, 1_500),
        ("1'500", COUNT, 1_500),
        ("1\u2019500", COUNT, 1_500),
        ("１２８ｋ", LENGTH, 131_072),
        ("１，５", AMOUNT, 1.5),
        ("٣٢", COUNT, 32),
        ("2 GiB", BYTES, 2 * GIB),
        ("2GB", BYTES, 2 * GB),
        ("2 g", BYTES, 2 * GIB),
        ("2", BYTES, 2),
        ("2", SIZE, 2 * GIB),
        ("512 MiB", SIZE, GIB // 2),
        ("24", GIBIBYTES, 24),
        ("1 TiB", GIBIBYTES, 1024),
        ("500", GIGABYTES, 500),
        ("2T", GIGABYTES, 2_000),
        ("$1,200", MONEY, 1_200),
        ("$ 1 200", MONEY, 1_200),
        ("0,35 $", MONEY, 0.35),
        ("1.2k USD", MONEY, 1_200),
        ("50 %", PERCENT, 50),
        ("0,5", PERCENT, 0.5),
        ("50 %", FRACTION, 0.5),
        ("0.08", FRACTION, 0.08),
        ("1.5 kW", WATTS, 1_500),
        ("450 watts", WATTS, 450),
        ("24h", HOURS, 24),
        ("5", YEARS, 5),
        ("18 months", YEARS, 1.5),
        ("1 year", YEARS, 1),
        ("2024", YEAR, 2024),
    ],
)
def test_a_number_means_what_people_mean(text, kind, number):
    assert parse_number(text, kind) == number


def test_whole_numbers_are_integers_and_others_are_not():
    assert isinstance(parse_number("1.2k", COUNT), int)
    assert isinstance(parse_number("1.25", AMOUNT), float)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("8x2048", LENGTH, "'8x2048' is two numbers"),
        ("8 × 2k", COUNT, "is two numbers"),
        ("1,5", COUNT, "is not a whole number"),
        ("1.2k", LENGTH, "is not a whole number"),
        ("1.500", COUNT, "'1.500' may be 1,500 or 1.5"),
        ("½", COUNT, "'½' is not a whole number"),
        ("10²", COUNT, "is not a whole number"),
        ("1 50", COUNT, "is not a whole number"),
        ("1,50,000", AMOUNT, "is not a number"),
        ("1.2.3", AMOUNT, "is not a number"),
        ("1,500,", AMOUNT, "is not a number"),
        ("4-8", COUNT, "is not a whole number"),
        ("2 GiB", COUNT, "is not a whole number"),
        ("50 %", COUNT, "is not a whole number"),
        ("30m", HOURS, "is not a number of hours"),
        ("$5", AMOUNT, "is not a number"),
        ("5 $ usd", MONEY, "is not a price"),
        ("€5", MONEY, "is not a price in US dollars"),
        ("two", BYTES, "is not a size"),
        ("2,024", YEAR, "is not a year"),
        ("nan", AMOUNT, "is not a number"),
        ("50/s", COUNT, "is not a whole number"),
        ("4/week", RATE, "'4/week' is not a rate"),
        ("4/", DAILY_RATE, "is not a number of requests"),
        ("1e400", AMOUNT, "is not a number"),
        ("9" * 61, COUNT, "is not a whole number"),
        (" ", COUNT, "it is empty"),
    ],
)
def test_what_is_unclear_is_refused_with_what_to_type(text, kind, reason):
    with pytest.raises(SpecError) as caught:
        parse_number(text, kind)
    assert reason in caught.value.reason
    assert caught.value.hint.startswith("Type ")


def test_a_doubled_thousand_is_a_million():
    with pytest.raises(SpecError) as caught:
        parse_number("16kk", COUNT)
    assert caught.value.hint == "Write 16M for millions."


def test_what_is_to_be_typed_is_within_the_bounds():
    with pytest.raises(SpecError, match="is too large") as caught:
        parse_number("25", HOURS, 0.01, 24)
    assert caught.value.hint == "Type a number of hours from 0.01 to 24."
    with pytest.raises(SpecError, match="is too small"):
        parse_number("0", COUNT, 1, 24)
    assert parse_number("0.05", AMOUNT, 0.05, 30) == 0.05
    with pytest.raises(SpecError, match="is too large") as caught:
        parse_number("3 TiB", SIZE, 0, GIB)
    assert caught.value.hint == "Type a size such as 2 GiB or 512 MiB."


@pytest.mark.parametrize(
    ("number", "kind", "text"), [(131_072, COUNT, "131,072"), (2024, YEAR, "2024"), (28.5, PERCENT, "28.5")]
)
def test_a_number_is_shown_as_it_can_be_typed(number, kind, text):
    assert number_text(number, kind) == text


@given(st.integers(min_value=0, max_value=10**15), st.sampled_from((",", " ", "'", "_", "\u2009")))
def test_whole_numbers_are_read_with_every_separator_of_thousands(number, separator):
    assert parse_number(f"{number:,}".replace(",", separator), COUNT) == number


@given(st.floats(min_value=1e-6, max_value=1e14), st.sampled_from((AMOUNT, MONEY, PERCENT)))
def test_what_is_shown_is_read_back(number, kind):
    assert parse_number(number_text(number, kind), kind) == pytest.approx(number, rel=1e-9)


@given(st.text(max_size=20), st.sampled_from((COUNT, LENGTH, AMOUNT, MONEY, BYTES, YEAR)))
def test_every_text_is_a_number_or_refused(text, kind):
    with suppress(SpecError):
        assert 0 <= parse_number(text, kind, 0, 1e12) <= 1e12


def test_a_size_is_parsed_to_whole_bytes():
    assert parse_number("0.3 B", BYTES) == 0
    assert parse_number("1.0001 KiB", BYTES) == 1024


class _Part(BaseModel):
    prompt_tokens: int | None = None


class _Whole(BaseModel):
    name: str = ""
    part: _Part | None = None
    rank: Annotated[int, "a note"] | None = None


@pytest.mark.parametrize(
    ("name", "annotation", "kind"),
    [
        ("context_length", int | None, LENGTH),
        ("engine.n_batch", int, LENGTH),
        ("batch", int, COUNT),
        ("parallel.context", int, COUNT),
        ("other_processes_bytes", int, BYTES),
        ("usd_per_gpu_hour", float, MONEY),
        ("arrivals.requests_per_second", float, RATE),
        ("cost.job.requests_per_day", float, DAILY_RATE),
        ("rack_usd_per_server", float | None, MONEY),
        ("tax_fraction", float, FRACTION),
        ("min_tokens_per_second", float, AMOUNT),
        ("deadline_hours", float, HOURS),
        ("cost.horizon_years", float, YEARS),
        ("is_on", bool, None),
        ("note", str | None, None),
        ("counts", tuple[int, ...], None),
    ],
)
def test_the_kind_of_a_field_follows_from_its_type_and_the_unit_in_its_name(name, annotation, kind: NumberKind | None):
    assert number_kind(name, annotation) is kind


@pytest.mark.parametrize(
    ("path", "kind"), [("part.prompt_tokens", LENGTH), ("rank", COUNT), ("name", None), ("name.x", None), ("y", None)]
)
def test_the_kind_is_found_by_the_path_of_a_field(path, kind):
    assert kind_at(_Whole, path) is kind


def test_the_terms_of_cost_have_kinds():
    assert kind_at(CostTerms, "job.amount") is AMOUNT
    assert kind_at(CostTerms, "job.prompt_tokens") is LENGTH
    assert kind_at(CostTerms, "buy.card_price_usd") is MONEY
