"""The inputs of a decision and the cash flows that follow from them, computed by hand."""

from dataclasses import replace
from datetime import date

import pytest
from cost_cases import EVERY_DAY, case_of, changed, two_cards

from planner.cost.demand import demand_of
from planner.cost.figure import NINETY_PERCENT, Figure
from planner.cost.owning.accounting import ResaleCurve, ResalePoint
from planner.cost.owning.costs import upfront_costs
from planner.cost.rent_or_buy.case import DRIFT, RESALE, TIME, USE, _card_of_server, build_case
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms
from planner.plan.catalog import Catalog

BAND = ResaleCurve(points=(ResalePoint(years=4, low=0.2, share=0.4, high=0.5),))


def test_cash_flows_follow_from_the_central_values() -> None:
    flows = two_cards().cash_flows()
    assert (flows.capex_usd, flows.resale_base_usd) == (30_000, 25_000)
    # 1.2 kW with a PUE of 1.25 at 0.20 USD: 0.30 USD an hour at full load, of which 30 % at rest and 80 % at work.
    assert flows.own_usd_per_year == pytest.approx(0.3 * 8_766 * 0.3)
    assert flows.own_usd_per_hour == pytest.approx(0.15)
    assert flows.rent_usd_per_hour == pytest.approx(2.2)
    assert flows.rent_usd_per_year == pytest.approx(50 + 100 * 2)
    assert flows.own_usd(4) == pytest.approx(30_000 + 4 * (788.94 + 0.15 * 2_000) - 25_000 / 4)
    assert flows.rent_usd(4) == pytest.approx(4 * (2.2 * 2_000 + 250))


def test_a_figure_moves_within_its_range() -> None:
    case = two_cards()
    assert case.cash_flows({"card_price_usd": NINETY_PERCENT}).capex_usd == pytest.approx(60_000)
    assert case.cash_flows({"card_price_usd": -NINETY_PERCENT}).capex_usd == pytest.approx(15_000)
    assert case.central["card_price_usd"] == 10_000


def test_use_and_duration_multiply_the_hours() -> None:
    assert changed(two_cards(), **{USE: 0.5, TIME: 1.2}).cash_flows().busy_hours_per_year == pytest.approx(1_200)


def test_only_figures_with_a_range_are_uncertain() -> None:
    assert two_cards().uncertain == ("card_price_usd",)
    assert replace(two_cards(), resale=BAND).uncertain == ("card_price_usd", RESALE)


def test_the_resale_value_moves_within_its_band() -> None:
    case = replace(two_cards(), resale=BAND)
    middle, best = case.cash_flows().own_usd(4), case.cash_flows({RESALE: NINETY_PERCENT}).own_usd(4)
    assert middle - best == pytest.approx(25_000 * (0.5 - 0.4))


TODAY = date(2026, 11, 22)


def built(catalog, gpu: str, **buy: object):
    terms = CostTerms(buy=BuyTerms.model_validate({"place": "desk", **buy}))
    demand = demand_of(DailyHours(hours_per_day=8), None)
    return build_case(terms, catalog.hardware.gpu(gpu), 1, demand, None, catalog.cost, TODAY)


def test_a_whole_computer_needs_no_other_host(catalog):
    spark, card = built(catalog, "gb10"), built(catalog, "rtx-4090")
    assert spark.central["host_factor"] == 1
    assert "a whole computer" in spark.figures["host_factor"].source
    assert upfront_costs(spark.central, spark.setup).usd == spark.central["card_price_usd"]
    assert card.central["host_factor"] > 1


def test_a_factor_of_ones_own_holds_for_a_computer_too(catalog):
    assert built(catalog, "gb10", host_factor=1.2).central["host_factor"] == 1.2


def test_a_cards_share_of_a_servers_price_leaves_out_the_host(catalog):
    place = catalog.cost.ownership("desk").evolve(gpus_per_server=8)
    server = Figure(value=120_000.0, low=96_000.0, high=144_000.0, source="a shop")
    card = _card_of_server(server, {"host_factor": Figure.own(1.5)}, place)
    assert card is not None
    assert (card.value, card.low, card.high) == (10_000, 8_000, 12_000)


def test_nothing_is_paid_where_nothing_is_rented(catalog):
    case = built(catalog, "rtx-4090")
    assert case.cash_flows().rent_usd(5.0) == 0
    assert (case.billed_per_busy_hour, case.rent_term_years) == (0, 0)


def test_cards_in_use_day_and_night_are_not_used_more(catalog: Catalog, today: date) -> None:
    always = case_of(catalog, today, CostTerms(job=DailyHours(hours_per_day=24, days_per_week=7)))
    assert always.figures[USE].highest == pytest.approx(1.0)
    half = case_of(catalog, today, CostTerms(job=DailyHours(hours_per_day=12, days_per_week=7)))
    assert half.figures[USE].highest == 1.25


def test_a_commitment_fixes_the_price(catalog: Catalog, today: date) -> None:
    def drift(rent: RentTerms) -> Figure:
        return case_of(catalog, today, CostTerms(job=EVERY_DAY, rent=rent)).figures[DRIFT]

    assert drift(RentTerms()).highest > 0
    assert drift(RentTerms(mode="reserved-3y")).highest == 0
    assert drift(RentTerms(mode="reserved-3y", price_drift_per_year=0.1)).value == 0.1
