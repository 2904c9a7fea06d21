"""The figures of owning that a case is built from."""

from datetime import date

import pytest
from cost_cases import EVERY_DAY, case_of

from planner.cost.demand import demand_of
from planner.cost.figure import Figure
from planner.cost.job import DailyHours
from planner.cost.owning.costs import upfront_costs
from planner.cost.rent_or_buy.case import DRIFT, USE
from planner.cost.rent_or_buy.case_builder import _card_of_server, build_case
from planner.cost.terms import BuyTerms, CostTerms, RentTerms
from planner.plan.catalog import Catalog

TODAY = date(2026, 11, 22)


def built(catalog, gpu: str, **buy: object):
    terms = CostTerms(buy=BuyTerms.model_validate({"place": "desk", **buy}))
    demand = demand_of(DailyHours(hours_per_day=8), None)
    return build_case(terms, catalog.hardware.gpu(gpu), 1, demand, None, catalog.cost, TODAY)


def test_a_whole_computer_needs_no_other_host(catalog):
    spark, card = built(catalog, "gb10"), built(catalog, "rtx-4090")
    assert spark.central["host_factor"] == 1
    assert "a whole computer" in spark.figures["host_factor"].source
    assert upfront_costs(spark.central, spark.shape).usd == spark.central["card_price_usd"]
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
    assert case.streams().rent_usd(5.0) == 0
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
