"""Alternatives beside a cost estimate: something faster to rent, and a program that needs fewer cards."""

from datetime import date

import pytest

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Run, Service
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.cost import evaluate_cost, job_by_gpu
from planner.plan.cost_alternatives import FasterRental, find_batched_service, find_faster_rental
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Training

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


SERVED = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Inference(),
    gpu="h100-sxm5-80gb",
    cost=CostTerms(job=Service(requests_per_day=200_000)),
)


def found_service(plan, catalog):
    evaluation = evaluate(plan, catalog)
    return find_batched_service(evaluation, evaluate_cost(evaluation, catalog, TODAY).estimate, catalog, TODAY)


def test_fewer_cards_serve_the_same_requests(catalog):
    batched = found_service(SERVED, catalog)
    assert (batched.profile, batched.present_at_once) == ("vllm", 1)
    assert batched.at_once > 100
    changed = evaluate(SERVED.evolve(workload=Inference(profile="vllm")), catalog)
    result = evaluate_cost(changed, catalog, TODAY).estimate.result
    assert (batched.cards, batched.rent_usd_per_month) == (result.machines.cards, result.rent.usd)
    now = evaluate_cost(evaluate(SERVED, catalog), catalog, TODAY).estimate.result
    assert batched.cards < batched.present_cards == now.machines.cards


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": Inference(profile="vllm")},
        {"cost": CostTerms(job=DailyHours(hours_per_day=8))},
        {"cost": CostTerms(job=Service(requests_per_day=10))},
        {"timing": TimeSetting(measured=MeasuredSpeed(value=500, unit="tokens/s"))},
        {"gpu": "rtx-4060-ti-16-gb", "workload": Inference(weights="Q4_K_M", profile="llama.cpp")},
    ],
)
def test_nothing_is_found_where_nothing_is_saved_or_known(changes, catalog):
    assert found_service(SERVED.evolve(**changes), catalog) is None


def test_a_program_that_cannot_hold_the_model_is_not_named(catalog):
    plan = SERVED.evolve(gpu="rtx-4060-ti-16-gb", workload=Inference(context_length=512, prompt_length=256))
    assert evaluate(plan.evolve(workload=Inference(profile="vllm")), catalog).memory.verdict != "fits"
    assert found_service(plan, catalog) is None
