"""Memory over one number of a plan."""

from itertools import pairwise

import pytest

from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.memory_curve import count_scaling, current_value, memory_curve, plan_at_value, plan_axes
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount
from planner.workload.training import Lora
from planner.workload.workload import Inference, Parallel, Training

VALUES = (1, 2, 3, 7, 64, 127, 128, 129, 1000, 1024, 4096, 10_000)
READING = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")
LEARNING = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(), gpu="rtx-4090")
CASES = [
    (READING, "batch"),
    (READING, "context_length"),
    (READING, "prompt_length"),
    (READING.evolve(model=ModelChoice(id="openai/gpt-oss-20b"), gpu="h200-sxm-141gb"), "batch"),
    (LEARNING, "micro_batch"),
    (LEARNING, "sequence_length"),
    (LEARNING.evolve(workload=Training(activation_checkpointing="full", optimizer="adamw-8bit")), "micro_batch"),
    (LEARNING.evolve(workload=Training(alignment={"method": "grpo", "engine": "other-cards"})), "micro_batch"),
]


@pytest.mark.parametrize(("plan", "field"), CASES)
def test_memory_never_falls_as_the_number_grows(catalog, plan, field):
    curve = memory_curve(plan, catalog, field, VALUES)
    assert tuple(point.value for point in curve) == VALUES
    assert all(lower.total_bytes <= higher.total_bytes for lower, higher in pairwise(curve))
    assert curve[0].total_bytes < curve[-1].total_bytes
    assert all(point.low_bytes <= point.total_bytes <= point.high_bytes for point in curve)


def test_a_point_of_the_curve_is_the_evaluation_at_that_number(catalog):
    (point,) = memory_curve(READING, catalog, "batch", (5,))
    memory = evaluate(READING.evolve(workload=Inference(batch=5)), catalog).memory
    assert (point.total_bytes, point.low_bytes, point.high_bytes) == (
        memory.total_bytes,
        memory.low_bytes,
        memory.high_bytes,
    )


def test_a_plan_without_a_card_has_a_curve(catalog):
    assert len(memory_curve(READING.evolve(gpu=None), catalog, "batch", (1, 2))) == 2
    assert memory_curve(READING, catalog, "batch", ()) == ()


def test_a_prompt_is_shortened_to_the_context(catalog):
    plan = READING.evolve(workload=Inference(prompt_length=2000))
    curve = memory_curve(plan, catalog, "context_length", (100, 2000))
    short = evaluate(READING.evolve(workload=Inference(context_length=100, prompt_length=100)), catalog)
    long = evaluate(READING.evolve(workload=Inference(context_length=2000, prompt_length=2000)), catalog)
    assert [point.total_bytes for point in curve] == [short.memory.total_bytes, long.memory.total_bytes]


@pytest.mark.parametrize(("plan", "field"), [(READING, "micro_batch"), (LEARNING, "batch"), (LEARNING, "colour")])
def test_a_field_of_another_task_is_refused(catalog, plan, field):
    with pytest.raises(SpecError, match=f"{plan.workload.task} workloads have no such field") as caught:
        memory_curve(plan, catalog, field, (1,))
    assert caught.value.field == field


ADAPTING = LEARNING.evolve(workload=Training(method="lora"))
PARTLY = READING.evolve(workload=Inference(weights="Q4_K_M", gpu_layers=20))
SHARED = LEARNING.evolve(workload=Training(parallel=Parallel(zero=2, tensor=2)), count=8)
UNEQUAL = Inference(parallel=Parallel(pipeline=2), gpus=(CardCount(id="rtx-4090"), CardCount(id="tesla-t4")))


@pytest.mark.parametrize(
    ("plan", "axes"),
    [
        (READING, ("batch", "context_length", "count")),
        (READING.evolve(count=2), ("batch", "context_length")),
        (PARTLY, ("batch", "context_length", "gpu_layers", "count")),
        (LEARNING, ("micro_batch", "sequence_length", "count")),
        (ADAPTING, ("micro_batch", "sequence_length", "lora_rank", "count")),
        (SHARED, ("micro_batch", "sequence_length", "count")),
        (READING.evolve(workload=UNEQUAL, gpu=None, count=2), ("batch", "context_length")),
        (READING.evolve(model=ModelChoice(id="google/vit-base-patch16-224")), ("batch", "count")),
    ],
)
def test_only_settings_that_affect_memory_are_axes(catalog, plan, axes):
    assert plan_axes(evaluate(plan, catalog)) == axes


def test_a_traced_module_has_no_axes(catalog):
    assert plan_axes(evaluate(READING, catalog).evolve(architecture=None)) == ()


@pytest.mark.parametrize("plan", [READING, PARTLY, LEARNING, ADAPTING, SHARED])
def test_a_plan_lies_on_each_of_its_curves(catalog, plan):
    evaluation = evaluate(plan, catalog)
    for axis in plan_axes(evaluation):
        (point,) = memory_curve(plan, catalog, axis, (current_value(evaluation, axis),))
        assert point.total_bytes == evaluation.memory.total_bytes
        assert point.host_bytes == evaluation.memory.host_bytes


@pytest.mark.parametrize(
    ("plan", "axis", "value"),
    [
        (ADAPTING, "lora_rank", 16),
        (READING.evolve(workload=Inference(weights="Q4_K_M")), "gpu_layers", 33),
        (READING.evolve(workload=Inference(weights="Q4_K_M", gpu_layers=500)), "gpu_layers", 33),
        (READING, "context_length", 4096),
        (SHARED, "count", 8),
    ],
)
def test_the_current_value_has_its_default_filled_in(catalog, plan, axis, value):
    assert current_value(evaluate(plan, catalog), axis) == value


def test_more_cards_use_the_default_sharding_or_the_plans_own(catalog):
    assert plan_at_value(LEARNING, catalog, "count", 4).workload.parallel == Parallel(zero=3)
    assert (
        plan_at_value(plan_at_value(LEARNING, catalog, "count", 4), catalog, "count", 1).workload.parallel == Parallel()
    )
    layers = plan_at_value(READING, catalog, "count", 4)
    assert (layers.count, layers.workload.parallel.pipeline) == (4, 4)
    assert plan_at_value(layers, catalog, "count", 2).workload.parallel.pipeline == 2
    more = plan_at_value(SHARED, catalog, "count", 16)
    assert more.workload.parallel == Parallel(zero=2, tensor=2)
    counts = count_scaling(SHARED, catalog).counts
    assert list(counts[:3]) == [2, 4, 8]
    falling = memory_curve(SHARED, catalog, "count", tuple(counts[1:5]))
    assert all(lower.total_bytes > higher.total_bytes for lower, higher in pairwise(falling))


def test_a_larger_rank_changes_only_the_adapters(catalog):
    plan = LEARNING.evolve(workload=Training(method="lora", lora=Lora(targets=("c_attn",))))
    assert plan_at_value(plan, catalog, "lora_rank", 64).workload.lora == Lora(rank=64, targets=("c_attn",))
    curve = memory_curve(plan, catalog, "lora_rank", (1, 8, 64))
    assert curve[0].total_bytes < curve[1].total_bytes < curve[2].total_bytes


@pytest.mark.parametrize(
    ("plan", "axis", "value", "field"),
    [
        (READING.evolve(count=2), "count", 4, "count"),
        (READING, "lora_rank", 4, "lora.rank"),
        (ADAPTING, "lora_rank", 0, "rank"),
    ],
)
def test_an_axis_that_the_plan_lacks_is_refused(catalog, plan, axis, value, field):
    with pytest.raises(SpecError) as caught:
        plan_at_value(plan, catalog, axis, value)
    assert caught.value.field.endswith(field)
