"""What a plan costs, or why that cannot be said."""

from datetime import date

import pytest

from planner.cost.job import Run
from planner.cost.terms import CostTerms
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.money import evaluate_cost, pace_of
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference

TODAY = date(2026, 11, 22)
SERVING = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_renting_and_owning_of_the_plans_card(catalog):
    cost = evaluate_cost(evaluate(SERVING, catalog), catalog, TODAY)
    assert cost.estimate.result.rent.gpu_count == 1
    assert cost.estimate.result.own.gpu == "rtx-4090"
    assert cost.estimate.result.answer.decision in ("rent", "buy")


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"gpu": None}, "There is no card", "gpu"),
        (
            {
                "gpu": None,
                "count": 2,
                "workload": Inference(gpus=(CardCount(id="rtx-4090", count=1), CardCount(id="rtx-3090", count=1))),
            },
            "several kinds",
            "workload.gpus",
        ),
        ({"cost": CostTerms(job=Run(amount=3, unit="epochs"))}, "An epoch has no size", "cost.job.dataset_samples"),
    ],
)
def test_what_cannot_be_paid_for_says_why(catalog, changes, reason, field):
    cost = evaluate_cost(evaluate(SERVING.evolve(**changes), catalog), catalog, TODAY)
    assert cost.estimate is None
    assert reason in cost.reason
    assert cost.field == field


def test_without_a_card_there_is_no_pace(catalog):
    assert pace_of(evaluate(SERVING.evolve(gpu=None), catalog)) is None
    assert pace_of(evaluate(SERVING, catalog)).tokens_per_second
