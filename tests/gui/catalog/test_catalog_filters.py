"""Catalog filters as values, without widgets."""

import pytest

from planner.gui.catalog.filters import (
    CARDS,
    CatalogFilter,
    NameSearch,
    blocking_condition,
    conditions,
    grouped_conditions,
    range_text,
)
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.query import GpuQuery, select
from planner.present.catalog.gpu_row import GpuRow
from planner.units import GIB

SOURCE = Provenance(basis="published", certainty="confirmed", source="a data sheet", as_of="2026-01-31")


def row(name, vendor="NVIDIA", segment="consumer", gib=24, year=2022, verdict="fits"):
    gpu = Gpu(
        id=name.lower().replace(" ", "-"),
        name=name,
        vendor=vendor,
        segment=segment,
        architecture="Ada Lovelace" if vendor == "NVIDIA" else "RDNA3",
        released=str(year),
        memory_label=f"{gib} GB",
        memory_bytes=gib * GIB,
        provenance=SOURCE,
    )
    return GpuRow(gpu, verdict)


ROWS = (
    row("Big", segment="datacenter", gib=80, year=2023),
    row("Middle", gib=24, verdict="tight"),
    row("Small", gib=8, verdict="does-not-fit"),
    row("Other", vendor="AMD", gib=16, year=2020, verdict=None),
)


def narrowed(only_fitting=False, memory=None, year=None, **query):
    bounds = {"memory": memory, "year": year}
    return CatalogFilter(
        query=GpuQuery(**query),
        only_fitting=only_fitting,
        bounds={key: {"low": both[0], "high": both[1]} for key, both in bounds.items() if both},
    )


def names(current):
    passing = current.passing(ROWS)
    return [row.gpu.name for row in ROWS if row.id in passing]


def test_an_empty_filter_shows_all_rows_and_has_no_conditions():
    assert names(CatalogFilter()) == ["Big", "Middle", "Small", "Other"]
    assert conditions(CatalogFilter()) == ()
    assert blocking_condition(CatalogFilter(), ROWS, "") is None


def test_only_fitting_takes_tight_cards_too_and_counts_follow():
    only = narrowed(only_fitting=True)
    assert names(only) == ["Big", "Middle"]
    assert dict(only.counts(ROWS)["vendor"]) == {"NVIDIA": 2}
    assert dict(CatalogFilter().counts(ROWS)["vendor"]) == {"NVIDIA": 3, "AMD": 1}


def test_conditions_are_named_and_removed_one_by_one():
    wanted = narrowed(
        only_fitting=True,
        text=" big card ",
        vendors=("NVIDIA", "AMD"),
        segments=("datacenter",),
        memory=(24, None),
        year=(2020, 2024),
    )
    found = conditions(wanted)
    assert [condition.words for condition in found] == [
        "“big card”",
        "Fits my model",
        "NVIDIA",
        "AMD",
        "data center",
        "Memory from 24\u2009GiB",
        "Year 2020 – 2024",
    ]
    lifted = {condition.key: condition.lifted for condition in found}
    assert lifted["text"].query.text == ""
    assert lifted["only_fitting"] == wanted.evolve(only_fitting=False)
    assert lifted["vendor:NVIDIA"].query.vendors == ("AMD",)
    assert set(lifted["memory"].bounds) == {"year"}
    assert set(lifted["year"].bounds) == {"memory"}


def test_the_values_of_one_facet_are_one_group():
    found = grouped_conditions(narrowed(vendors=("NVIDIA", "AMD"), segments=("edge",)))
    assert [condition.words for condition in found] == ["NVIDIA or AMD", "edge"]
    assert found[0].lifted == narrowed(segments=("edge",))


def test_the_blocking_condition_is_the_latest_one_whose_removal_leaves_rows():
    wanted = narrowed(vendors=("AMD",), memory=(40, None))
    assert not wanted.passing(ROWS)
    for latest, words, count in (("memory", "Memory from 40\u2009GiB", 1), ("vendor", "AMD", 1), ("", "AMD", 1)):
        condition, found = blocking_condition(wanted, ROWS, latest)
        assert (condition.words, found) == (words, count)
    both = narrowed(vendors=("AMD",), text="big", memory=(90, None))
    assert blocking_condition(both, ROWS, "memory") is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(None, None, ""), (2, None, "from 2"), (None, 4, "up to 4"), (2, 4, "2 – 4"), (0, 0, "0")],
)
def test_ranges_in_words(low, high, expected):
    assert range_text(low, high, str) == expected


def test_facet_values_have_their_display_names():
    assert CARDS.facet_value_text("segment", "datacenter") == "data center"
    assert CARDS.facet_value_text("architecture", "Hopper") == "Hopper"


@pytest.mark.parametrize("text", ["", "  ", "big", "NVIDIA m", "rdna3", "nothing like it"])
def test_the_search_by_name_finds_what_a_query_finds(text):
    cards = [row.gpu for row in ROWS]
    assert NameSearch(cards).ids_containing(text) == {gpu.id for gpu in select(cards, GpuQuery(text=text))}
