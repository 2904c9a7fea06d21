"""Renting something faster than the cards that someone owns."""

from datetime import date

import pytest

from planner.cost.terms import BuyTerms, CostTerms, Run
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.faster_rental import FasterRental, find_faster_rental
from planner.plan.job_costs import job_by_gpu
from planner.plan.money import evaluate_cost
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Training

TODAY = date(2026, 11, 22)
OWNED = BuyTerms(place="desk", owned=True)
PLAN = Plan(
    model=ModelChoice(id="gpt2"),
    workload=Training(),
    gpu="rtx-3090",
    cost=CostTerms(job=Run(amount=1e9, unit="tokens"), buy=OWNED),
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def found(plan: Plan, catalog: Catalog) -> tuple[Evaluation, FasterRental | None]:
    evaluation = evaluate(plan, catalog)
    estimate = evaluate_cost(evaluation, catalog, TODAY).estimate
    assert estimate is not None
    return evaluation, find_faster_rental(evaluation, estimate, catalog, TODAY)


def test_the_cheapest_offer_of_a_faster_card_is_found(catalog):
    evaluation, faster = found(PLAN, catalog)
    jobs = job_by_gpu(evaluation.plan, catalog, TODAY)
    own = jobs["rtx-3090"].hours
    cheapest = min(job.offer.usd for job in jobs.values() if job.offer and job.hours < own)
    assert faster.usd == cheapest
    assert faster.hours < faster.own_hours == own
    assert faster.usd_per_hour_saved == pytest.approx((faster.usd - faster.own_usd) / (own - faster.hours))


def test_hours_that_are_given_are_no_shorter_on_a_faster_card(catalog):
    assert found(PLAN.evolve(cost=CostTerms(buy=OWNED)), catalog)[1] is None
    assert found(PLAN.evolve(cost=CostTerms(job=Run(amount=5), buy=OWNED)), catalog)[1] is None
