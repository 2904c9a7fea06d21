"""Sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.numbers import BYTES, parse_number
from planner.present.format import exact_bytes, size
from planner.units import (
    GB,
    GIB,
    HOURS_PER_DAY,
    JOULES_PER_KWH,
    KB,
    KIB,
    MB,
    MIB,
    MICRO,
    MILLI,
    MONTHS_PER_YEAR,
    NANO,
    PER_CENT,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    TB,
    TIB,
    WATTS_PER_KW,
    ceil_div,
    round_up,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", 1024),
        ("7 B", 7),
        ("24 GiB", 24 * 1_073_741_824),
        ("80GB", 80_000_000_000),
        ("512 MiB", 512 * 1_048_576),
        ("1.5 kib", 1536),
        ("2 TB", 2_000_000_000_000),
        ("1 tib", 1_099_511_627_776),
        ("3 kB", 3_000),
        ("4 mb", 4_000_000),
        (" 1,024.5 KiB ", 1_049_088),
        ("0.0000000001 GiB", 0),
    ],
)
def test_sizes_are_parsed(text, expected):
    assert parse_number(text, BYTES) == expected


def test_binary_and_decimal_units_are_kept_apart():
    assert (KIB, MIB, GIB, TIB) == (1024, 1024**2, 1024**3, 1024**4)
    assert (KB, MB, GB, TB) == (1000, 1000**2, 1000**3, 1000**4)


def test_factors_between_units():
    assert (SECONDS_PER_HOUR, SECONDS_PER_DAY, HOURS_PER_DAY, MONTHS_PER_YEAR) == (60 * 60, 24 * 60 * 60, 24, 12)
    assert JOULES_PER_KWH == WATTS_PER_KW * SECONDS_PER_HOUR == 3_600_000
    assert (PER_CENT, MILLI, MICRO, NANO) == (100, 1_000, 1_000_000, 1_000_000_000)


def test_no_float_comes_between():
    assert parse_number("9007199254740993", BYTES) == 9_007_199_254_740_993
    assert parse_number("1180591620.717411303424 TB", BYTES) == 1_180_591_620_717_411_303_424


@pytest.mark.parametrize("text", ["", "GiB", "24 GiBs", "1.2.3 GB", "nan", "24 GiB x"])
def test_what_is_not_a_size_is_refused_with_a_hint(text):
    with pytest.raises(SpecError) as caught:
        parse_number(text, BYTES)
    assert (repr(text) if text else "it is empty") in caught.value.message
    assert "24 GiB" in caught.value.hint


@given(st.integers(0, 2**60))
def test_exact_bytes_are_parsed_back_exactly(value):
    assert parse_number(exact_bytes(value), BYTES) == value


@given(st.integers(0, 2**60))
def test_a_shown_size_is_parsed_back_within_its_three_figures(value):
    assert abs(parse_number(size(value), BYTES) - value) <= max(1, value * 0.005)


@given(st.integers(0, 2**80), st.integers(1, 2**40))
def test_ceil_div_is_the_smallest_whole_number_of_parts_that_suffice(numerator, denominator):
    parts = ceil_div(numerator, denominator)
    assert parts * denominator >= numerator
    assert (parts - 1) * denominator < numerator


@given(st.integers(0, 2**80), st.integers(1, 2**40))
def test_round_up_reaches_the_next_multiple_and_no_further(value, multiple):
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0
    assert 0 <= rounded - value < multiple
