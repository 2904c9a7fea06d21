"""Input figures: ranges and quantiles."""

import math

import pytest

from planner.cost.figure import NINETY_PERCENT, Constant, Figure, quantiles
from planner.errors import SpecError


def test_a_figures_range_is_log_normal() -> None:
    figure = Figure(value=10, low=5, high=20, source="a study")
    assert figure.quantile(0) == 10
    assert figure.quantile(NINETY_PERCENT) == pytest.approx(20)
    assert figure.quantile(-NINETY_PERCENT) == pytest.approx(5)
    assert figure.quantile(NINETY_PERCENT / 2) == pytest.approx(10 * math.sqrt(2))


def test_a_range_around_zero_is_spread_evenly() -> None:
    figure = Figure(value=0, low=-0.3, high=0.3, source="a study")
    assert figure.quantile(NINETY_PERCENT / 3) == pytest.approx(0.1)


def test_a_certain_figure_does_not_move() -> None:
    assert Figure.own(3).quantile(2) == 3
    assert (Figure.own(3).lowest, Figure.own(3).highest) == (3, 3)


def test_a_value_lies_within_its_range() -> None:
    with pytest.raises(SpecError, match="5 is not between 1 and 2"):
        Figure(value=5, low=1, high=2, source="a study")


def test_many_quantiles_are_those_of_the_figure() -> None:
    deviations = (-2.0, 0.0, 0.7)
    for figure in (
        Figure(value=10, low=5, high=20, source="a study"),
        Figure(value=0, low=-0.3, high=0.6, source="a study"),
        Figure(value=10, low=-5, high=20, source="a study"),
    ):
        values = quantiles(figure.value, figure.lowest, figure.highest, deviations)
        assert values == pytest.approx([figure.quantile(z) for z in deviations])


def test_each_side_of_an_uneven_range_has_its_own_width() -> None:
    figure = Figure(value=10, low=8, high=40, source="a study")
    assert figure.quantile(NINETY_PERCENT) == pytest.approx(40)
    assert figure.quantile(-NINETY_PERCENT) == pytest.approx(8)
    around_zero = Figure(value=0, low=-0.3, high=0.6, source="a study")
    assert around_zero.quantile(-NINETY_PERCENT) == pytest.approx(-0.3)
    assert around_zero.quantile(NINETY_PERCENT / 2) == pytest.approx(0.3)


def test_a_constant_keeps_what_its_source_says_of_the_date() -> None:
    constant = Constant(id="a", kind="pue", name="an average", value=1.5, unit="ratio", date="2024", source="a survey")
    assert constant.figure.date == "2024"
