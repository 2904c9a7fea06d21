"""The expressions of --where: what they mean, and what is said when they mean nothing."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.hardware.catalog import load_hardware
from planner.hardware.expression import parse_expression
from planner.hardware.query_fields import GPU_QUERY_FIELDS, GPU_QUERY_SCHEMA
from planner.hardware.query_schema import PlanOutcome, QueryContext
from planner.paths import catalog_dir

HARDWARE = load_hardware(catalog_dir())
WORDS = [
    *GPU_QUERY_FIELDS,
    *re.split(" ", "and or not in contains true false ( ) , == != < <= > >= ~ 24 8.9 1e3 1.2.3"),
    '"NVIDIA"',
    "'gfx942'",
    '"',
    "=",
]


def holds(text: str, gpu_id: str = "rtx-4090") -> bool | None:
    return parse_expression(text, GPU_QUERY_SCHEMA).test(HARDWARE.gpu(gpu_id), QueryContext())


@pytest.mark.parametrize(
    "text",
    [
        'memory_gib >= 24 and vendor == "NVIDIA"',
        'memory_gib>=24 AND vendor=="nvidia"',
        "memory_gib == 24",
        "memory_gib in (16, 24)",
        "memory_gib not in (16, 32)",
        "year > 2021 and year <= 2022 and year < 2023",
        "bandwidth != 900",
        "bandwidth > 1e3",
        'name ~ "rtx"',
        "name contains '4090'",
        "not mig",
        "mig == false and mig != true",
        "nvlink in (false)",
        "compute_capability >= 8.9",
        "compute_capability < 10.0",
        "compute_capability == 8.9",
        "compute_capability in (8.6, 8.9)",
        'compute_capability == "8.9"',
        "compute_capability > 8",
        'vendor == "AMD" or segment == "consumer"',
        '(vendor == "AMD" or year == 2022) and not nvlink',
        'vendor == "AMD" and year == 1999 or price < 1600',
        "not (not (price < 1600))",
    ],
)
def test_it_holds_for_the_rtx_4090(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        'vendor != "NVIDIA"',
        "memory_gib not in (16, 24)",
        'name ~ "Radeon"',
        "mig",
        "compute_capability >= 9.0",
        'compute_capability > "gfx900"',
        'vendor == "AMD" and (year == 2022 or nvlink)',
        'fits == "fits"',
        'fits != "fits"',
        'fits ~ ""',
        'fits not in ("fits")',
    ],
)
def test_it_does_not_hold_for_the_rtx_4090(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_an_unknown_figure_makes_a_comparison_and_its_opposite_unknown(operator: str) -> None:
    assert holds(f"fp16_dense {operator} 1", "a10g") is None
    assert holds(f"not fp16_dense {operator} 1", "a10g") is None


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("fp16_dense in (1)", None),
        ("fp16_dense not in (1)", None),
        ("fp16_dense > 1 and year > 1990", None),
        ("fp16_dense > 1 and year < 1990", False),
        ("year < 1990 and fp16_dense > 1", False),
        ("fp16_dense > 1 or year > 1990", True),
        ("fp16_dense > 1 or year < 1990", None),
        ("not (fp16_dense > 1 and year < 1990)", True),
        ("not (fp16_dense > 1 or year < 1990)", None),
    ],
)
def test_what_is_known_settles_what_it_can(text: str, outcome: bool | None) -> None:
    assert holds(text, "a10g") is outcome


def test_a_flag_and_a_text_that_are_not_known_are_neither_so_nor_not() -> None:
    unlinked = next(gpu.id for gpu in HARDWARE.gpus if gpu.interconnect is None)
    assert holds("nvlink", unlinked) is holds("not nvlink", unlinked) is None
    chipless = next(gpu.id for gpu in HARDWARE.gpus if gpu.compute_capability is None)
    assert holds('compute_capability ~ "gfx"', chipless) is None


def test_versions_and_targets_are_looked_through_as_they_are_written() -> None:
    assert holds('compute_capability ~ "8."')
    assert holds('compute_capability ~ "GFX9"', "instinct-mi300x")
    assert not holds('compute_capability ~ "gfx"')


def test_numbers_may_be_negative() -> None:
    assert holds("price > -5 and year > -1e3 and price not in (-1, -2.5)")


def test_targets_of_amd_compare_as_text() -> None:
    assert holds('compute_capability == "GFX942"', "instinct-mi300x")
    assert not holds("compute_capability >= 8.0", "instinct-mi300x")
    assert not holds("compute_capability == 9.4", "instinct-mi300x")


def test_the_fields_that_are_used_are_told() -> None:
    assert parse_expression('fits == "fits" and year > 2020', GPU_QUERY_SCHEMA).fields == {"fits", "year"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at position 1: expected a field, found the end"),
        ("memory >= 24", "at position 1: expected a field, found 'memory'"),
        ("and", "at position 1: expected a field, found 'and'"),
        ("24 <= memory_gib", "at position 1: expected a field, found '24'"),
        ("memory_gib", "at position 11: expected == != < <= > >= or in after memory_gib, found the end"),
        ("memory_gib >=", "at position 14: expected a number for memory_gib, found the end"),
        ('memory_gib >= "24"', "at position 15: expected a number for memory_gib"),
        ("memory_gib >= 1.2.3", "at position 15: expected a number for memory_gib"),
        ("vendor == NVIDIA", 'at position 11: expected text in quotes, such as "NVIDIA" for vendor'),
        ('vendor < "B"', "at position 8: expected == != ~ or in after vendor, found '<'"),
        ("mig > 1", "at position 5: expected == or != after mig"),
        ("mig == 1", "at position 8: expected true or false for mig"),
        ("compute_capability == true", "at position 23: expected a version such as 8.9"),
        ("year ~ 2022", "at position 6: expected == != < <= > >= or in after year, found '~'"),
        ("name ~ 2022", "at position 8: expected text in quotes"),
        ("price > 1e400", "at position 9: expected a number for price, found '1e400'"),
        ("price > -1e999", "at position 9: expected a number for price, found '-1e999'"),
        ("compute_capability > -8.9", "at position 22: expected a version such as 8.9"),
        ("year not 2022", "at position 10: expected in, found '2022'"),
        ("year in 2022", "at position 9: expected ( and a list of values"),
        ("year in (2022", "at position 14: expected , or )"),
        ("year in ()", "at position 10: expected a number for year"),
        ("(year == 2022", "at position 14: expected and, or, or )"),
        ("year == 2022)", "at position 13: expected and, or, or the end, found ')'"),
        ("year == 2022 year", "at position 14: expected and, or, or the end"),
        ("year = 2022", "at position 6: found a single ="),
        ('vendor == "NVIDIA', "at position 11: found an unterminated quotation"),
        ("year == 2022 && mig", "at position 14: found '&', which is not allowed here"),
        ("year == 2022abc", "at position 9: found '2'"),
        ("not " * 60 + "mig", "nested more than 50 deep"),
        ("(mig) and " * 20 + "(" * 60 + "mig", "nested more than 50 deep"),
        ("(" * 1000 + "mig", "nested more than 50 deep"),
        ("mig and " * 300 + "mig", "longer than 2000 characters"),
    ],
)
def test_an_error_names_the_position_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_expression(text, GPU_QUERY_SCHEMA)
    assert caught.value.field == "where"
    assert message in caught.value.message


def test_hints_name_the_fields_and_the_remedy() -> None:
    for text, hint in (
        ("memory > 1", "memory_gib"),
        ("price > 1e400", "too large"),
        ("year = 1", "Write =="),
        ('name == "x', "Close it"),
        ("mig and " * 300 + "mig", "Example: memory_gib >= 24"),
        ("not " * 60 + "mig", "Example: memory_gib >= 24"),
        ("year == 2022 year", "Example: memory_gib >= 24"),
    ):
        with pytest.raises(SpecError) as caught:
            parse_expression(text, GPU_QUERY_SCHEMA)
        assert hint in caught.value.hint


@settings(max_examples=50)
@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_text_is_an_expression_or_a_spec_error(text: str) -> None:
    try:
        outcomes = {
            parse_expression(text, GPU_QUERY_SCHEMA).test(gpu, QueryContext({"rtx-4090": PlanOutcome("fits")}))
            for gpu in HARDWARE.gpus
        }
    except SpecError:
        outcomes = set()
    assert outcomes <= {True, False, None}


@settings(max_examples=50)
@given(
    st.recursive(
        st.sampled_from(["mig", "year > 2020", 'name ~ "a"']),
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner) | inner.map("not {}".format)
        ),
        max_leaves=8,
    )
)
def test_it_means_what_python_would_mean(text: str) -> None:
    for gpu in HARDWARE.gpus[::17]:
        if gpu.mig is None or gpu.year is None:
            continue
        python = text.replace("mig", str(gpu.mig)).replace("year > 2020", str(gpu.year > 2020))
        python = python.replace('name ~ "a"', str("a" in gpu.name.lower()))
        assert parse_expression(text, GPU_QUERY_SCHEMA).test(gpu, QueryContext()) == eval(python)
