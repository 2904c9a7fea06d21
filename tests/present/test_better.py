"""Which way figures are better."""

import pytest

from planner.present.catalog.better import best, lower_is_better, unbeaten


@pytest.mark.parametrize(
    ("key", "expected"),
    [("price", True), ("usd_per_gib", True), ("power", True), ("memory", False), ("year", None), ("ridge_point", None)],
)
def test_each_figure_has_its_way(key, expected):
    assert lower_is_better(key) is expected


def test_the_best_is_the_smallest_price_and_the_largest_memory():
    assert best("price", (3.0, None, 2.0)) == 2.0
    assert best("memory", (3.0, None, 2.0)) == 3.0


def test_nothing_is_best_where_all_are_alike_or_neither_way_is_better():
    assert best("memory", (3.0, 3.0, None)) is None
    assert best("year", (2020, 2021)) is None
    assert best("memory", (None,)) is None


def test_what_nothing_beats_goes_from_cheap_to_large():
    points = [(100, 10), (200, 30), (150, 5), (300, 30), (50, 1)]
    assert unbeaten(points, ("price", "memory")) == (4, 0, 1)
    assert unbeaten(points, ("year", "memory")) == ()
    assert unbeaten([], ("price", "memory")) == ()
