"""Memory over one number of a plan."""

from itertools import pairwise

import pytest

from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.explore import memory_curve
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Training

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


def test_a_curve_needs_no_card(catalog):
    assert len(memory_curve(READING.evolve(gpu=None), catalog, "batch", (1, 2))) == 2
    assert memory_curve(READING, catalog, "batch", ()) == ()


def test_a_prompt_longer_than_the_context_asked_about_is_cut_to_it(catalog):
    plan = READING.evolve(workload=Inference(prompt_length=2000))
    curve = memory_curve(plan, catalog, "context_length", (100, 2000))
    short = evaluate(READING.evolve(workload=Inference(context_length=100, prompt_length=100)), catalog)
    long = evaluate(READING.evolve(workload=Inference(context_length=2000, prompt_length=2000)), catalog)
    assert [point.total_bytes for point in curve] == [short.memory.total_bytes, long.memory.total_bytes]


@pytest.mark.parametrize(("plan", "field"), [(READING, "micro_batch"), (LEARNING, "batch"), (LEARNING, "colour")])
def test_a_field_that_the_workload_does_not_have_is_named(catalog, plan, field):
    with pytest.raises(SpecError, match=f"{plan.workload.task} workloads have no such field") as caught:
        memory_curve(plan, catalog, field, (1,))
    assert caught.value.field == field
