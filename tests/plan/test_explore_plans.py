"""Questions around a plan: memory over one number, and the largest number that still fits."""

from itertools import pairwise

import pytest

from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.explore import largest_allowed, largest_that_fits, memory_curve
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


@pytest.mark.parametrize(("plan", "field"), CASES)
def test_the_largest_fits_and_the_next_one_does_not(catalog, plan, field):
    largest = largest_that_fits(plan, catalog, field)
    assert largest is not None
    here, beyond = (
        evaluate(plan.evolve(workload=plan.workload.evolve(**{field: value})), catalog).memory.verdict
        for value in (largest, largest + 1)
    )
    assert here in ("fits", "tight")
    assert beyond == "does-not-fit"


def test_a_number_that_memory_does_not_depend_on_is_bounded_by_what_may_be_asked(catalog):
    plan = Plan(model=ModelChoice(id="google/vit-base-patch16-224"), gpu="rtx-4090")
    assert largest_that_fits(plan, catalog, "context_length") == 1 << 24
    assert largest_allowed(plan, "context_length") > 1 << 24


@pytest.mark.parametrize(
    "plan",
    [
        READING.evolve(gpu=None),
        READING.evolve(gpu="tpu-v5e"),
        READING.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-70B")),
    ],
    ids=["no card", "unsupported", "too large"],
)
def test_nothing_fits_without_a_card_that_runs_it(catalog, plan):
    assert largest_that_fits(plan, catalog, "batch") is None


@pytest.mark.parametrize("ask", [largest_that_fits, lambda *args: memory_curve(*args, (1,))])
@pytest.mark.parametrize(("plan", "field"), [(READING, "micro_batch"), (LEARNING, "batch"), (LEARNING, "colour")])
def test_a_field_that_the_workload_does_not_have_is_named(catalog, ask, plan, field):
    with pytest.raises(SpecError, match=f"a {plan.workload.task} workload has no such field") as caught:
        ask(plan, catalog, field)
    assert caught.value.field == field
