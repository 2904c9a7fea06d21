"""Every model of the catalog has a time on usual cards, or says why there is none."""

import math

import pytest

from planner.errors import PlannerError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

pytestmark = pytest.mark.sweep

WAYS = (
    (Inference(), "rtx-4090", 1),
    (Inference(profile="vllm", batch=16), "h100-sxm5-80gb", 1),
    (Training(), "h100-sxm5-80gb", 1),
    (Training(method="lora"), "rtx-4090", 1),
    (Training(parallel=Parallel(zero=3)), "instinct-mi300x", 8),
    (Inference(), "tpu-v5e", 1),
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].task}-{way[1]}-{way[2]}")
def test_the_terms_sum_to_the_time_of_every_model(catalog: Catalog, way):
    workload, gpu, count = way
    found = [_evaluated(Plan(model=ModelChoice(id=record.id), workload=workload, gpu=gpu, count=count), catalog)
             for record in catalog.models.records]  # fmt: skip
    times = [evaluation.time for evaluation in found if evaluation is not None]
    assert len(times) > len(catalog.models.records) / 2
    for time in times:
        assert bool(time.unsupported) == (time.seconds is None)
        if time.seconds is not None:
            assert 0 < time.seconds < 1e7
            assert time.low_seconds <= time.seconds <= time.high_seconds
            assert math.isclose(sum(term.exposed_seconds for term in time.terms), time.seconds, rel_tol=1e-6)


def _evaluated(plan: Plan, catalog: Catalog) -> Evaluation | None:
    """Return what the plan comes to, or none where the workload does not go with the model."""
    try:
        return evaluate(plan, catalog)
    except PlannerError:
        return None
