"""Which direction of a figure is better."""

import pytest

from planner.present.catalog.comparison import best_value
from planner.present.catalog.gpu_columns import lower_is_better
from planner.present.columns import pareto_front


@pytest.mark.parametrize(
    ("key", "expected"),
    [("price", True), ("usd_per_gib", True), ("power", True), ("memory", False), ("year", None), ("ridge_point", None)],
)
def test_each_figure_has_its_direction(key, expected):
    assert lower_is_better(key) is expected


def test_the_best_is_the_smallest_price_and_the_largest_memory():
    assert best_value((3.0, None, 2.0), lower_is_better=True) == 2.0
    assert best_value((3.0, None, 2.0), lower_is_better=False) == 3.0


def test_nothing_is_best_where_all_are_alike_or_neither_direction_is_better():
    assert best_value((3.0, 3.0, None), lower_is_better=False) is None
    assert best_value((2020, 2021), lower_is_better=None) is None
    assert best_value((None,), lower_is_better=False) is None


def test_what_nothing_beats_goes_from_cheap_to_large():
    points = [(100, 10), (200, 30), (150, 5), (300, 30), (50, 1)]
    assert pareto_front(points, (True, False)) == (4, 0, 1)
    assert pareto_front(points, (None, False)) == ()
    assert pareto_front([], (True, False)) == ()
