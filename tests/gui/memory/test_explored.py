import pytest

from planner.gui.memory.explored import compute_curve, explored_fields, find_largest
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
SMALL = ModelChoice(id="meta-llama/Llama-3.2-1B")
PLANS = {
    "inference": Plan(model=LLAMA, gpu="rtx-4090"),
    "training": Plan(model=SMALL, workload=Training(), gpu="h100-sxm5-80gb"),
}


@pytest.mark.parametrize("task", PLANS)
@pytest.mark.parametrize("position", [0, 1])
def test_the_largest_value_fits_and_one_more_does_not(catalog, task, position):
    evaluation = evaluate(PLANS[task], catalog)
    field = explored_fields(evaluation)[position]
    largest = find_largest(evaluation, catalog, field).value
    assert largest is not None

    def verdict(value):
        workload = evaluation.plan.workload.evolve(**{field.name: value})
        return evaluate(evaluation.plan.evolve(workload=workload), catalog).memory.verdict

    assert verdict(largest) == "fits"
    if largest != field.limit(evaluation):
        assert verdict(largest + 1) != "fits"


def test_the_model_bounds_the_longest_context(catalog):
    evaluation = evaluate(Plan(model=SMALL, gpu="h200-sxm-141gb"), catalog)
    largest = find_largest(evaluation, catalog, explored_fields(evaluation)[1])
    assert largest.value == evaluation.architecture.max_context
    assert "all the model is made for" in largest.words


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(model=LLAMA), "choose a card to know"),
        (Plan(model=LLAMA, workload=Training(), gpu="rtx-4090"), "none, not even 1 fits"),
    ],
)
def test_without_a_largest_value_the_reason_is_said(catalog, plan, words):
    evaluation = evaluate(plan, catalog)
    largest = find_largest(evaluation, catalog, explored_fields(evaluation)[0])
    assert (largest.value, largest.words) == (None, words)


def test_the_curve_passes_through_the_plan(catalog):
    evaluation = evaluate(Plan(model=LLAMA, gpu="rtx-4090", workload=Inference(batch=3)), catalog)
    data = compute_curve(evaluation, catalog, explored_fields(evaluation)[0], 8)
    assert data.current.value == 3
    assert data.current.total_bytes == evaluation.memory.total_bytes
    sizes = [point.total_bytes for point in data.points]
    assert sizes == sorted(sizes)


def test_a_model_of_fixed_length_has_no_length_to_explore(catalog):
    record = next(record for record in catalog.models.records if record.kind == "vision-encoder")
    evaluation = evaluate(Plan(model=ModelChoice(id=record.id), gpu="rtx-4090"), catalog)
    assert [field.switch for field in explored_fields(evaluation)] == ["Batch"]
