"""Break-even points and commitments over time."""

from dataclasses import replace
from datetime import date

import pytest
from cost_cases import EVERY_DAY, case_of, changed, two_cards

from planner.cost.rent_or_buy.cash_flows import (
    ALWAYS_CHEAPER,
    BEYOND_HORIZON,
    FIXED_RENT,
    NEVER_DEARER,
    NO_HOURLY_SAVING,
    RENT_CHEAPER,
    CashFlows,
    break_even,
)
from planner.cost.rent_or_buy.uncertainty import simulate
from planner.cost.terms import CostTerms, RentTerms, Run, Service
from planner.plan.catalog import Catalog


def test_break_even_says_why_there_is_none(catalog: Catalog, today: date) -> None:
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY))
    cheap = changed(case, rent_usd_per_hour=1e-6)
    assert break_even(cheap.cash_flows(), 5).reason == NO_HOURLY_SAVING
    assert break_even(cheap.cash_flows(), 5).years_reason == RENT_CHEAPER
    assert break_even(changed(case, rent_usd_per_hour=3.0).cash_flows(), 5).reason == BEYOND_HORIZON
    dear = replace(changed(case, rent_usd_per_hour=500.0), rent_usd_per_year=1e8)
    assert break_even(dear.cash_flows(), 5).reason == ALWAYS_CHEAPER
    assert break_even(dear.cash_flows(), 5).years is not None
    given = changed(dear, host_factor=1.0, network_share=0.0, rack_usd_per_server=0.0)
    assert break_even(given.cash_flows(), 5).years_reason == NEVER_DEARER
    service = case_of(catalog, today, CostTerms(job=Service(requests_per_day=1e5)))
    assert break_even(service.cash_flows(), 5).reason == FIXED_RENT


def test_a_commitment_is_paid_by_the_month_and_owed_to_the_end_of_its_term(catalog: Catalog, today: date) -> None:
    rent = RentTerms(mode="reserved-3y")
    case = case_of(catalog, today, CostTerms(job=EVERY_DAY, rent=rent))
    assert case.rent_term_years == 3
    flows = case.cash_flows()
    plain = flows._replace(discount_rate=0.0)
    assert plain.rent_usd(3) == pytest.approx(30 * plain.rent_usd(0.1))
    assert plain.rent_usd(5) == pytest.approx(6 * plain.rent_usd(1))
    once = case_of(catalog, today, CostTerms(job=Run(amount=100), rent=rent))
    assert once.rent_term_years == 0
    assert replace(once, discount_rate=0.0).cash_flows().rent_usd(5) >= 3 * 8_760
    assert simulate(case, draws=20) is not None


def hourly(capex_usd: float, rent_usd_per_hour: float = 1.0) -> CashFlows:
    """Return a purchase that costs nothing later, beside renting by the hour, of which the job needs 2,000 a year."""
    never = dict.fromkeys(("resale_base_usd", "own_usd_per_year", "own_usd_per_hour", "rent_usd_per_year"), 0.0)
    return two_cards().cash_flows()._replace(capex_usd=capex_usd, rent_usd_per_hour=rent_usd_per_hour, **never)


def test_a_purchase_may_pay_off_in_the_last_week_of_the_compared_years() -> None:
    # 2,000 hours a year at 1 USD pay 1,990 USD after 0.995 years.
    assert break_even(hourly(1_990.0), 1.0).years == pytest.approx(0.995)


def test_owning_that_costs_as_much_as_renting_all_the_time_is_never_dearer() -> None:
    found = break_even(hourly(0.0, 0.0), 1.0)
    assert (found.years, found.years_reason) == (None, NEVER_DEARER)


def test_groups_may_work_as_many_hours_as_they_have_together() -> None:
    # At 1 USD an hour, 10,000 group-hours pay for the purchase: more than a year has for one group, but not for two.
    flows = hourly(10_000.0)
    one, two = (break_even(flows._replace(setup=flows.setup.evolve(groups=groups)), 1.0) for groups in (1, 2))
    assert (one.gpu_hours, one.reason) == (None, BEYOND_HORIZON)
    assert two.gpu_hours == pytest.approx(2 * 10_000)
    assert two.utilization_fraction == pytest.approx(10_000 / (2 * 8_766))
    all_hours = break_even(flows._replace(capex_usd=8_766.0), 1.0)
    assert all_hours.utilization_fraction == 1
