"""Bounds typed into the search."""

import pytest

from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.search_query import parse_search

UNITS = {column.key: column.per_unit for column in GPU_COLUMNS}


def bounds(text):
    return [(bound.key, bound.low, bound.high) for bound in parse_search(text, UNITS).bounds]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at least 24 GiB", [("memory", 24, None)]),
        ("over 1 TB/s", [("bandwidth", 1000, None)]),
        ("under 1,000 USD", [("buy", None, 1000)]),
        ("under $1,000", [("buy", None, 1000)]),
        ("used under 800", [("used", None, 800)]),
        ("street < 2000 dollars", [("street", None, 2000)]),
        ("up to 2.5 $/h", [("rent", None, 2.5)]),
        ("below 2 USD per hour", [("rent", None, 2)]),
        ("under 3 an hour", [("rent", None, 3)]),
        ("at most 0.7 kW", [("power", None, 700)]),
        (">= 100 tflops", [("bf16", 100, None)]),
        ("bandwidth > 1000", [("bandwidth", 1000, None)]),
        ("bandwidth>1000", [("bandwidth", 1000, None)]),
        ("memory at least 24 power below 300", [("memory", 24, None), ("power", None, 300)]),
        ("price under 700", [("buy", None, 700)]),
        ("launch price under 700 USD", [("price", None, 700)]),
        ("fp8 over 500 tflops", [("fp8", 500, None)]),
        ("32 GiB memory under 900 USD", [("buy", None, 900), ("memory", 32, 32)]),
        ("since 2022", [("year", 2022, None)]),
        ("under 700", [("buy", None, 700)]),
        ("over 2000", [("buy", 2000, None)]),
        ("up to 5", []),
        ("RTX 4090", []),
        ("", []),
    ],
)
def test_bounds_are_read_with_their_units(text, expected):
    assert bounds(text) == expected


def test_a_search_may_have_names_and_bounds():
    asked = parse_search("rtx at least 24 GiB under 1,000 USD ti", UNITS)
    assert asked.words == "rtx ti"
    memory, price = asked.bounds
    assert (memory.words, memory.rest) == ("at least 24 GiB", "rtx under 1,000 USD ti")
    assert (price.words, price.rest) == ("under 1,000 USD", "rtx at least 24 GiB ti")


def test_a_size_without_a_bound_is_the_size_as_sold():
    asked = parse_search("24 GB card under $1000", UNITS)
    assert asked.words == ""
    memory = asked.bounds[1]
    assert (memory.key, memory.high) == ("memory", 24)
    assert memory.low == pytest.approx(24e9 / 2**30)
    assert memory.rest == "card under $1000"
    assert parse_search("A100 80GB", UNITS).words == "A100"


def test_filler_words_count_as_a_name_without_a_bound():
    assert parse_search("card", UNITS).words == "card"


def test_a_bound_can_be_removed_after_another_one():
    asked = parse_search("24 under 5 W GB", UNITS)
    assert [bound.key for bound in asked.bounds] == ["power", "memory"]
    assert asked.bounds[1].rest == "24 under 5 W GB"


def test_a_number_of_cards_is_a_bound_where_machines_are_searched():
    units = {"memory": 2**30, "price": 1, "cards": 1}
    asked = parse_search("8-GPU systems under 300,000 USD", units)
    assert [(bound.key, bound.low, bound.high) for bound in asked.bounds] == [("price", None, 300_000), ("cards", 8, 8)]
    assert asked.words == ""
    assert asked.bounds[1].rest == "systems under 300,000 USD"
    assert parse_search("8 gpus", UNITS).words == "8 gpus"


def test_what_is_no_number_is_no_bound():
    assert bounds("at least 1,50,0 GiB") == []


def test_a_bare_price_is_shown_with_its_currency():
    asked = parse_search("rtx under 700", UNITS)
    assert (asked.words, asked.bounds[0].words) == ("rtx", "under 700 USD")
    assert parse_search("under 700", {"memory": 1}).words == "under 700"
