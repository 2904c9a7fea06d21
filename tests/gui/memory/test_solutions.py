"""The largest and smallest values that fit."""

import pytest

from planner.gui.memory.exploration import compute_curve, find_solutions
from planner.plan.evaluate import evaluate, fits_by_gpu
from planner.plan.memory_curve import current_value
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import largest_that_fits
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Parallel, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
LARGE = ModelChoice(id="meta-llama/Llama-3.1-70B")
SMALL = ModelChoice(id="meta-llama/Llama-3.2-1B")
PLANS = {
    "inference": Plan(model=LLAMA, gpu="rtx-4090"),
    "training": Plan(model=SMALL, workload=Training(), gpu="h100-sxm5-80gb"),
}
PARTLY = Plan(model=LARGE, gpu="rtx-4090", workload=Inference(weights="Q4_K_M", gpu_layers=40))
GROUPED = Training(method="lora", micro_batch=8, sequence_length=1536, alignment={"method": "grpo"})
UNEQUAL = Inference(parallel=Parallel(pipeline=2), gpus=(CardCount(id="rtx-4090"), CardCount(id="tesla-t4")))


def found(plan, catalog):
    return {one.field_name: one for one in find_solutions(evaluate(plan, catalog), catalog)}


@pytest.mark.parametrize("task", PLANS)
@pytest.mark.parametrize("position", [0, 1])
def test_the_largest_value_fits_and_one_more_does_not(catalog, task, position):
    plan = PLANS[task]
    one = tuple(found(plan, catalog).values())[position]

    def verdict(value):
        return evaluate(plan.evolve(workload=plan.workload.evolve(**{one.field_name: value})), catalog).memory.verdict

    assert getattr(one.plan.workload, one.field_name) == one.value
    assert verdict(one.value) == "fits"
    if one.value != evaluate(plan, catalog).max_context:
        assert verdict(one.value + 1) != "fits"


def test_the_model_bounds_the_longest_context(catalog):
    plan = Plan(model=SMALL, gpu="h200-sxm-141gb")
    longest = found(plan, catalog)["context_length"]
    assert longest.value == evaluate(plan, catalog).max_context
    assert "the model's maximum" in longest.text


def test_cards_are_counted_and_the_smallest_is_named(catalog):
    several = found(Plan(model=LLAMA, workload=Training(), gpu="h100-sxm5-80gb"), catalog)
    fewest, smallest = several["count"], several["gpu"]
    assert fewest.text.endswith(", with ZeRO-3")
    assert (fewest.plan.count, fewest.plan.workload.parallel.is_open) == (fewest.value, True)
    assert evaluate(fewest.plan, catalog).memory.verdict == "fits"
    assert catalog.hardware.gpu(smallest.value).name == smallest.text
    assert evaluate(smallest.plan, catalog).memory.verdict == "fits"


def test_what_the_plan_has_already_is_taken(catalog):
    again = found(found(PLANS["inference"], catalog)["batch"].plan, catalog)
    assert again["batch"].is_taken
    assert again["count"].is_taken
    assert not again["context_length"].is_taken
    assert found(again["gpu"].plan, catalog)["gpu"].is_taken


def test_layers_on_the_card_are_solved_for(catalog):
    most = found(PARTLY, catalog)["gpu_layers"]
    assert most.plan.workload.gpu_layers == most.value > 40
    small = found(PARTLY.evolve(model=SMALL), catalog)["gpu_layers"]
    assert small.text == "17: all 16 and the output layer"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(model=LLAMA, workload=Training(), gpu="rtx-4090"), "none, not even 1 fits"),
        (Plan(model=LLAMA, gpu="tpu-v4"), "none, "),
    ],
)
def test_without_a_largest_value_the_reason_is_said(catalog, plan, words):
    first = next(iter(found(plan, catalog).values()))
    assert first.text.startswith(words)
    assert (first.value, first.plan) == (None, None)


def test_without_a_card_the_smallest_one_is_found(catalog):
    assert tuple(found(Plan(model=LLAMA), catalog)) == ("gpu",)
    none = found(Plan(model=LARGE, workload=Training(micro_batch=64)), catalog)["gpu"]
    assert none.text == "none, no GPU in the catalog is large enough"


def test_a_card_that_is_tight_is_said_to_be(catalog):
    plan = Plan(model=LLAMA)
    largest = max(fits_by_gpu(plan, catalog).values(), key=lambda fit: fit.capacity_bytes or 0)
    barely = largest_that_fits(plan.evolve(gpu=largest.gpu_id), catalog, "batch", "tight")
    tight = found(barely.plan.evolve(gpu=None), catalog)["gpu"]
    assert tight.value is not None
    as_large = catalog.hardware.gpu(str(tight.value))
    assert catalog.hardware.usable_memory(as_large).bytes == largest.capacity_bytes
    assert tight.text == f"{as_large.name} may fit"


def test_unequal_cards_are_not_counted(catalog):
    assert tuple(found(Plan(model=LLAMA, workload=UNEQUAL), catalog)) == ("batch", "context_length")


@pytest.mark.parametrize(
    ("plan", "axis", "title"),
    [
        (Plan(model=LLAMA, gpu="rtx-4090", workload=Inference(batch=3)), "batch", "Batch size"),
        (PLANS["inference"], "context_length", "Context length, tokens"),
        (PARTLY, "gpu_layers", "GPU layers"),
        (Plan(model=LLAMA, gpu="h100-sxm5-80gb", workload=GROUPED), "micro_batch", "Micro-batch size"),
        (PARTLY, "count", "GPUs with the layers split across them"),
        (Plan(model=LLAMA, gpu="rtx-4090", workload=Training(method="lora")), "lora_rank", "LoRA rank"),
        (Plan(model=LLAMA, gpu="rtx-4090", workload=Training(), count=1), "count", "GPUs with ZeRO-3"),
        (
            Plan(model=LLAMA, gpu="rtx-4090", workload=Training(parallel=Parallel(zero=2)), count=24),
            "count",
            "GPUs",
        ),
    ],
)
def test_the_curve_passes_through_the_plan(catalog, plan, axis, title):
    evaluation = evaluate(plan, catalog)
    data = compute_curve(evaluation, catalog, axis, None)
    assert data.title == title
    assert data.current.value == current_value(evaluation, axis)
    assert data.current.total_bytes == evaluation.memory.total_bytes
    sizes = [point.total_bytes for point in data.points]
    assert sizes == sorted(sizes, reverse=axis == "count")
    assert len(sizes) > 1


def test_what_stays_in_ram_falls_as_layers_go_to_the_card(catalog):
    points = compute_curve(evaluate(PARTLY, catalog), catalog, "gpu_layers", None).points
    assert (points[0].value, points[-1].value) == (0, 81)
    assert points[0].host_bytes > points[-1].host_bytes
