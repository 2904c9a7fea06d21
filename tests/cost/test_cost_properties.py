"""What must hold for any figures: monotone, crossing where it says, and never below a price."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.demand import Demand, demand_of
from planner.cost.figure import Figure
from planner.cost.finance import annuity
from planner.cost.owning.accounting import user_resale_curve
from planner.cost.owning.costs import ServerSetup
from planner.cost.rent_or_buy.cash_flows import CashFlows, break_even, break_even_hours_per_year, break_even_years
from planner.cost.rent_or_buy.decision import best_mix
from planner.cost.renting.offer import ExchangeRate, Offer
from planner.cost.renting.quote import RentalFacts, quote
from planner.cost.renting.table import CardDemand, quote_offers
from planner.cost.terms import DailyHours, RentMode, RentTerms, Run

FACTS = RentalFacts({}, Figure(value=0.02, source="a page"), ())
TERMS = RentTerms(mean_hours_between_interruptions=48)
usd = st.floats(0.1, 1e6)
rate = st.floats(0, 0.5)


@st.composite
def any_streams(draw: st.DrawFn) -> CashFlows:
    return CashFlows(
        capex_usd=draw(st.floats(1_000, 1e6)),
        resale_base_usd=draw(st.floats(0, 1_000)),
        own_usd_per_year=draw(st.floats(0, 1e5)),
        own_usd_per_hour=draw(st.floats(0, 5)),
        rent_usd_per_hour=draw(st.floats(0.01, 100)),
        rent_usd_per_year=draw(st.floats(0, 1_000)),
        rent_term_years=0.0,
        horizon_years=5.0,
        once=False,
        busy_hours_per_year=draw(st.floats(1, 8_766)),
        drift=draw(st.floats(-0.3, 0.3)),
        discount_rate=draw(rate),
        setup=ServerSetup(count=1, groups=1, gpus_per_server=1, colocation_power="metered"),
        resale=user_resale_curve(draw(st.floats(0.01, 1)), 5),
    )


@given(any_streams(), st.floats(0.2, 10), st.floats(1.01, 3))
def test_more_use_never_makes_renting_better(flows: CashFlows, years: float, more: float) -> None:
    """Where an own hour costs less than a rented one; else owning has nothing to offer."""
    cheaper = flows._replace(own_usd_per_hour=min(flows.own_usd_per_hour, flows.rent_usd_per_hour), drift=0.0)
    busier = cheaper._replace(busy_hours_per_year=cheaper.busy_hours_per_year * more)
    assert busier.saving_usd(years) >= cheaper.saving_usd(years) - 1e-6


@given(any_streams(), st.floats(0.2, 10))
def test_break_even_lies_where_the_lines_over_use_cross(flows: CashFlows, years: float) -> None:
    hours, reason = break_even_hours_per_year(flows, years)
    assert (hours is None) == (reason is not None)
    if hours is not None:
        assert flows.own_usd(years, hours) == pytest.approx(flows.rent_usd(years, hours), rel=1e-6, abs=1e-3)


@given(any_streams(), st.floats(0.2, 10))
def test_break_even_lies_where_the_curves_over_time_cross(flows: CashFlows, years: float) -> None:
    found, reason = break_even_years(flows, years)
    assert (found is None) == (reason is not None)
    if found is not None:
        assert 0 < found <= years
        assert flows.own_usd(found) == pytest.approx(flows.rent_usd(found), rel=1e-6, abs=1e-3)
        assert flows.saving_usd(years) >= 0


@given(any_streams(), st.floats(0.2, 10))
def test_the_side_of_break_even_is_the_decision(flows: CashFlows, years: float) -> None:
    found = break_even(flows, years)
    if found.gpu_hours is not None:
        planned = flows.busy_hours_per_year * years
        if abs(planned / found.gpu_hours - 1) > 1e-6:
            assert (planned > found.gpu_hours) == (flows.saving_usd(years) > 0)


@given(any_streams(), st.floats(0.2, 10))
def test_without_interest_owning_and_renting_cost_the_plain_sums(flows: CashFlows, years: float) -> None:
    plain = flows._replace(discount_rate=0.0, drift=0.0)
    hours = plain.busy_hours_per_year
    sold = plain.resale_base_usd * plain.resale.share(years)
    kept = (plain.own_usd_per_year + plain.own_usd_per_hour * hours) * years
    assert plain.own_usd(years) == pytest.approx(plain.capex_usd + kept - sold)
    assert plain.rent_usd(years) == pytest.approx((plain.rent_usd_per_hour * hours + plain.rent_usd_per_year) * years)


@given(rate, st.floats(0.01, 30), st.floats(-0.3, 0.3))
def test_an_annuity_is_worth_no_more_than_its_payments_grown(discount: float, years: float, growth: float) -> None:
    assert 0 < annuity(discount, years) <= years * (1 + 1e-12)
    assert annuity(discount, years, growth) <= annuity(0, years, max(growth, 0)) * (1 + 1e-9)


@st.composite
def any_offer(draw: st.DrawFn) -> Offer:
    cards = draw(st.sampled_from([1, 2, 4, 8]))
    steady = draw(st.floats(0.05, 50)) * cards
    return Offer(
        id="some",
        provider="Some",
        instance="one",
        gpu="l4",
        gpu_count=cards,
        region=draw(st.sampled_from(["here", "there"])),
        on_demand_price_usd_per_hour=steady,
        spot_price_usd_per_hour=steady * draw(st.floats(0.25, 1)),
        reserved_1y_price_usd_per_hour=steady * draw(st.floats(0.25, 1)),
        reserved_3y_price_usd_per_hour=steady * draw(st.floats(0.25, 1)),
        billing_increment_seconds=draw(st.sampled_from([None, 1, 60, 3_600])),
        price_date="2026-10-10",
        source="a page",
    )


@st.composite
def any_demand(draw: st.DrawFn) -> Demand:
    if draw(st.booleans()):
        return demand_of(DailyHours(hours_per_day=draw(st.floats(0.1, 24))), None)
    return demand_of(
        Run(
            amount=draw(st.floats(0.5, 20_000)),
            repeats_per_year=draw(st.sampled_from([None, 1, 50])),
            checkpoint_seconds=draw(st.floats(0, 600)),
            restart_seconds=draw(st.floats(0, 3_600)),
        ),
        None,
    )


@given(any_offer(), any_demand(), st.integers(1, 20))
def test_spot_is_never_cheaper_than_its_own_price(offer: Offer, demand: Demand, count: int) -> None:
    found = quote(offer, "spot", demand, count, TERMS, FACTS)
    price = offer.spot_price_usd_per_hour
    assert price is not None
    assert found.machine_usd >= found.machines_per_group * demand.work_hours * price * (1 - 1e-9)


@given(any_offer(), any_demand(), st.integers(1, 20), st.sampled_from([("reserved-1y", 1), ("reserved-3y", 3)]))
def test_a_commitment_is_never_billed_below_its_price(
    offer: Offer, demand: Demand, count: int, term: tuple[RentMode, int]
) -> None:
    mode, years = term
    found = quote(offer, mode, demand, count, TERMS, FACTS)
    price = offer.price_usd_per_hour(mode)
    assert price is not None
    committed = years * 8_760 / ((demand.periods_per_year or 1 / years) * years)
    assert found.machine_usd >= found.machines_per_group * committed * price * (1 - 1e-9)
    assert found.machine_usd >= found.machines_per_group * demand.busy_hours * price * (1 - 1e-9)


@given(any_offer(), any_demand(), st.integers(1, 20))
def test_whole_machines_and_all_hours_are_billed(offer: Offer, demand: Demand, count: int) -> None:
    found = quote(offer, "on-demand", demand, count, TERMS, FACTS)
    assert found.machines * offer.gpu_count >= count * demand.groups
    assert found.billed_hours >= demand.rented_hours * (1 - 1e-9)


@given(st.lists(any_offer(), min_size=1, max_size=6), st.floats(0.5, 2))
@settings(max_examples=50)
def test_regions_and_currencies_are_never_silently_mixed(offers: list[Offer], per_unit: float) -> None:
    from datetime import date

    foreign = ExchangeRate(currency="EUR", usd_per_unit=per_unit, date="2026-08-21", source="ECB")
    mixed = [*offers, *(offer.evolve(billed_currency="EUR", exchange_rate=foreign) for offer in offers)]
    demand = demand_of(Run(amount=10), None)
    rows = quote_offers(
        mixed, {"l4": CardDemand("l4", 1, demand)}, RentTerms(regions=("here",)), FACTS, date(2026, 11, 1)
    )
    assert all(row.offer.region == "here" for row in rows)
    assert all((row.offer.billed_currency == "USD") == (row.offer.exchange_rate is None) for row in rows)


@given(st.lists(st.floats(0, 12), min_size=1, max_size=24), st.floats(1, 1e4), st.floats(0, 2), st.floats(0.01, 5))
def test_no_number_of_groups_is_better_than_the_best(loads: list[float], fixed: float, own: float, rent: float) -> None:
    found = best_mix(loads, [fixed * groups for groups in range(14)], own, rent, 8_766)
    assert all(found.best.usd <= mix.usd for mix in found.mixes)
    dearer = best_mix(loads, [fixed * groups for groups in range(14)], own, rent * 2, 8_766)
    assert dearer.best.owned >= found.best.owned


@given(st.floats(0.1, 1e3), st.floats(0.05, 0.99), st.floats(1.01, 20), st.floats(-4, 4))
def test_quantiles_grow_with_their_deviations(value: float, low: float, high: float, deviations: float) -> None:
    figure = Figure(value=value, low=value * low, high=value * high, source="a study")
    assert figure.quantile(deviations) <= figure.quantile(deviations + 0.1) * (1 + 1e-12)
