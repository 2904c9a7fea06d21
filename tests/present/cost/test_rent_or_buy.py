"""Renting beside owning, and two plans beside each other, as figures."""

import pytest
from cost_samples import QLORA_ON_4090, TODAY

from planner.cost.estimate import CostEstimate
from planner.cost.figure import Figure
from planner.cost.result import Footprint
from planner.cost.terms import CostTerms, RentTerms, Run
from planner.plan.cost import evaluate_cost
from planner.plan.evaluate import evaluate
from planner.present.cost.rent_or_buy import ComparedPlan, rent_or_buy_rows, scenario_rows


@pytest.fixture(scope="module")
def scenario_of(catalog):
    def make(**changes) -> ComparedPlan:
        evaluation = evaluate(QLORA_ON_4090.evolve(**changes), catalog)
        return ComparedPlan(evaluation.time, evaluate_cost(evaluation, catalog, TODAY).estimate)

    return make


def figures(rows):
    return {row.title: tuple(cell.text.replace("\u2009", " ") for cell in row.cells) for row in rows}


def with_rent(estimate: CostEstimate, **changes) -> CostEstimate:
    rent = None if estimate.result.rent is None else estimate.result.rent.evolve(**changes)
    return CostEstimate(estimate.result.evolve(rent=rent), estimate.case, estimate.demand, estimate.rows)


def test_both_ways_have_a_cost_with_its_origin(scenario_of):
    rows = rent_or_buy_rows(scenario_of().estimate)
    month = next(row for row in rows if row.title == "Per month, net of resale")
    assert all(cell.text.startswith("$") for cell in month.cells)
    assert "on demand" in month.cells[0].origin
    assert all(": " in line for line in month.cells[1].origin.splitlines())
    assert figures(rows)["Upfront"][0] == "–"


def test_a_run_is_told_by_the_run(scenario_of):
    estimate = scenario_of(cost=CostTerms(job=Run(amount=50e6, unit="tokens"))).estimate
    rows = figures(rent_or_buy_rows(estimate))
    assert "Per run, net of resale" in rows
    assert rows["Per GPU-hour, net of resale"][0].startswith("$")


def test_what_is_bought_for_one_run_has_no_price_by_the_hour(scenario_of):
    once, often = Run(amount=50e6, unit="tokens"), Run(amount=50e6, unit="tokens", repeats_per_year=50)
    bought = figures(rent_or_buy_rows(scenario_of(cost=CostTerms(job=once)).estimate))
    assert bought["Per GPU-hour, net of resale"][1] == "–"
    assert bought["Per run, net of resale"][1].startswith("$")
    assert bought["Ongoing, per run"][1].startswith("$")
    assert bought["Electricity"][1].endswith("kWh per run")
    bought = figures(rent_or_buy_rows(scenario_of(cost=CostTerms(job=often)).estimate))
    assert bought["Per GPU-hour, net of resale"][1].startswith("$")


def test_what_nobody_offers_is_not_known(scenario_of):
    found = figures(rent_or_buy_rows(scenario_of(gpu="rtx-2000-ada").estimate))
    assert found["Per month, net of resale"][0] == "unknown"
    assert found["Per GPU-hour, net of resale"][0] == "–"


def test_what_owning_costs_can_be_unknown(scenario_of):
    estimate = scenario_of().estimate
    rented = CostEstimate(estimate.result.evolve(own=None), None, estimate.demand, estimate.rows)
    found = figures(rent_or_buy_rows(rented))
    assert found["Per month"][1] == "unknown"
    assert "Upfront" not in found


def test_electricity_and_carbon_say_where_and_by_what(scenario_of):
    footprint = Footprint(
        region="Sweden",
        energy_kwh=120.0,
        pue=Figure(value=1.1, source="a survey", certainty="quoted", date="2024"),
        grams_per_kwh=Figure(value=20.0, source="a grid", certainty="quoted", date="2025"),
        carbon_kg=2.4,
    )
    rows = {row.title: row.cells[0] for row in rent_or_buy_rows(with_rent(scenario_of().estimate, carbon=footprint))}
    assert rows["Carbon"].text.replace("\u2009", " ") == "2.40 kg CO₂ per month"
    assert "20 g CO₂ per kWh: a grid" in rows["Carbon"].origin
    bare = footprint.evolve(grams_per_kwh=None, carbon_kg=None)
    rows = {row.title: row.cells[0] for row in rent_or_buy_rows(with_rent(scenario_of().estimate, carbon=bare))}
    assert rows["Carbon"].text == "unknown"
    assert rows["Electricity"].text.replace("\u2009", " ") == "120 kWh per month"


def test_without_machines_there_is_no_electricity(scenario_of):
    estimate = with_rent(scenario_of().estimate, carbon=None)
    alone = CostEstimate(estimate.result.evolve(own=None), None, estimate.demand, estimate.rows)
    assert "Electricity" not in figures(rent_or_buy_rows(alone))


def test_two_plans_stand_beside_each_other(scenario_of):
    found = figures(scenario_rows(scenario_of(), scenario_of(gpu="rtx-3090")))
    mine, _, difference = found["Rented per month"]
    assert mine.startswith("$")
    assert difference[0] in "+−"
    assert found["Decision"] == ("Rent", "Rent", "")
    assert found["Hours per month"][2] == "same"
    assert found["Speed"][0].endswith("tokens/s")
    assert found["Speed"][2][0] in "+−"
    assert all(value[2] for title, value in found.items() if title != "Decision")


def test_break_evens_that_differ_by_less_than_an_hour_are_the_same(scenario_of):
    slightly = scenario_of(cost=CostTerms(discount_rate=0.0800001))
    assert figures(scenario_rows(scenario_of(), slightly))["Break-even, GPU-hours"][2] == "same"


def test_a_plan_that_has_no_cost_is_a_dash(scenario_of):
    found = figures(scenario_rows(scenario_of(), ComparedPlan(None, None)))
    assert found["Rented per month"][1:] == ("–", "")
    assert found["Decision"][1] == "–"
    assert scenario_rows(ComparedPlan(None, None), ComparedPlan(None, None)) == ()


def test_the_offer_that_is_named_counts(scenario_of):
    spot = scenario_of(cost=CostTerms(rent=RentTerms(mode="spot")))
    assert figures(scenario_rows(scenario_of(), spot))["Rented, per GPU-hour"]


def test_a_single_run_has_no_price_of_owning_per_hour(scenario_of):
    once = scenario_of(cost=CostTerms(job=Run(amount=50e6, unit="tokens")))
    found = figures(scenario_rows(once, scenario_of()))
    mine, daily, difference = found["Owned, per GPU-hour"]
    assert (mine, daily[0], difference) == ("–", "$", "")
    run, month, difference = found["Rented"]
    assert (run.endswith(" per run"), month.endswith(" per month"), difference) == (True, True, "")
