"""Serving requests with a program that answers many at once, beside one that answers them one by one."""

from datetime import date

import pytest

from planner.cost.terms import CostTerms, DailyHours, Service
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.plan.batched_service import find_batched_service
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.money import evaluate_cost
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference

TODAY = date(2026, 11, 22)
PLAN = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Inference(),
    gpu="h100-sxm5-80gb",
    cost=CostTerms(job=Service(requests_per_day=200_000)),
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def found(plan, catalog):
    evaluation = evaluate(plan, catalog)
    return find_batched_service(evaluation, evaluate_cost(evaluation, catalog, TODAY).estimate, catalog, TODAY)


def test_fewer_cards_serve_the_same_requests(catalog):
    batched = found(PLAN, catalog)
    assert (batched.profile, batched.present_at_once) == ("vllm", 1)
    assert batched.at_once > 100
    changed = evaluate(PLAN.evolve(workload=Inference(profile="vllm")), catalog)
    result = evaluate_cost(changed, catalog, TODAY).estimate.result
    assert (batched.cards, batched.rent_usd_per_month) == (result.machines.cards, result.rent.usd)
    now = evaluate_cost(evaluate(PLAN, catalog), catalog, TODAY).estimate.result
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
    assert found(PLAN.evolve(**changes), catalog) is None


def test_a_program_that_cannot_hold_the_model_is_not_named(catalog):
    plan = PLAN.evolve(gpu="rtx-4060-ti-16-gb", workload=Inference(context_length=512, prompt_length=256))
    assert evaluate(plan.evolve(workload=Inference(profile="vllm")), catalog).memory.verdict != "fits"
    assert found(plan, catalog) is None
