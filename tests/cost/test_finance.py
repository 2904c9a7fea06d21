"""Present values, rates of return, annuities and loans, computed by hand."""

import math

import pytest

from planner.cost.finance import annuity, equivalent_annual, irr, loan_value


def test_the_rate_of_return_makes_flows_worth_nothing() -> None:
    assert irr([-100, 60, 60]) == pytest.approx(0.130662, abs=1e-6)
    assert irr([-100, 10]) == pytest.approx(-0.9)
    assert irr([100, 10]) is None


def test_payments_spread_over_the_year_are_worth_less_later() -> None:
    assert annuity(0, 3) == 3
    assert annuity(0.1, 1) == pytest.approx((1 - 1 / 1.1) / math.log(1.1))
    assert annuity(0.05, 4, growth=0.05) == 4
    assert equivalent_annual(annuity(0.08, 5) * 70, 0.08, 5) == pytest.approx(70)


def test_a_loan_at_the_discount_rate_costs_what_is_borrowed() -> None:
    for years in (0.5, 2, 3, 5):
        assert loan_value(1_000, 0.06, 3, 0.06, years) == pytest.approx(1_000)
    assert loan_value(1_000, 0.1, 3, 0.05, 5) > 1_000
    assert loan_value(900, 0.0, 3, 0.0, 1) == pytest.approx(900)
