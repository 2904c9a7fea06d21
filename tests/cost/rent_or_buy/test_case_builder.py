"""The figures of owning that a case is built from."""

from datetime import date

from planner.cost.demand import demand_of
from planner.cost.job import DailyHours
from planner.cost.owning.costs import upfront_costs
from planner.cost.rent_or_buy.case_builder import build_case
from planner.cost.terms import BuyTerms, CostTerms

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
