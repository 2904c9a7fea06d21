"""Ladders of a plan: smaller batches, shorter sequences, more cards."""

import pytest

from planner.plan.advice.change_sequences import plan_sequences
from planner.plan.advice.search import apply_change
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


@pytest.mark.parametrize(
    ("workload", "cards", "expected"),
    [
        (Training(micro_batch=4, gradient_accumulation=8), 4, (4, 2)),
        (Training(micro_batch=4, gradient_accumulation=2), 8, (1, 1)),
        (Training(micro_batch=1), 2, (1, 1)),
    ],
    ids=["fewer passes", "fewer and smaller passes", "nothing to split"],
)
def test_cards_that_split_the_model_divide_the_batch(catalog, workload, cards, expected):
    plan = Plan(model=LLAMA, workload=workload, gpu="rtx-4090")
    architecture = catalog.models.model(LLAMA.id)
    shared = [
        one
        for one in plan_sequences(plan, with_defaults(workload, architecture, 1), architecture, 8)
        if one.lever == "cards"
    ]
    made = apply_change(plan, shared[-1].change(cards))
    assert (made.workload.micro_batch, made.workload.gradient_accumulation) == expected
    assert (made.count, made.workload.parallel.zero) == (cards, 3)
    split = (
        "the global batch size"
        if workload.micro_batch > 1
        else f"the batch of each GPU; the global batch size grows {cards}-fold"
    )
    assert shared[-1].change(cards).keeps == split


@pytest.mark.parametrize(
    ("profile", "field", "counts"), [("vllm", "tensor", [2, 4, 8, 16, 32, 64]), ("hf", "pipeline", list(range(2, 33)))]
)
def test_inference_is_split_by_tensors_or_layers(catalog, profile, field, counts):
    workload = Inference(profile=profile)
    plan = Plan(model=LLAMA, workload=workload, gpu="rtx-4090")
    architecture = catalog.models.model(LLAMA.id)
    (sequence,) = [
        one
        for one in plan_sequences(plan, with_defaults(workload, architecture, 1), architecture, 8)
        if one.lever == "cards"
    ]
    assert list(sequence.values) == counts
    made = apply_change(plan, sequence.change(2))
    assert (made.count, getattr(made.workload.parallel, field)) == (2, 2)
    assert not any(one.lever == "cards" for one in plan_sequences(made, made.workload, architecture, 8))


def test_a_diffusion_pipeline_makes_fewer_or_smaller_images(catalog):
    plan = Plan(
        model=ModelChoice(id="stable-diffusion-v1-5/stable-diffusion-v1-5"),
        workload=Inference(batch=2, image_size="512x512"),
    )
    evaluation = evaluate(plan, catalog)
    fewer, smaller = plan_sequences(plan, evaluation.workload, evaluation.architecture, 8)
    assert fewer.change(1).name == "1 image at once"
    assert smaller.change(max(smaller.values)).name == "images of 448 × 448 pixels"


def test_a_context_stays_as_long_as_its_prompt(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(context_length=32_768))
    evaluation = evaluate(plan, catalog)
    sequences = plan_sequences(plan, evaluation.workload, evaluation.architecture, 8)
    contexts = next(sequence for sequence in sequences if sequence.lever == "length")
    assert min(contexts.values) == evaluation.workload.prompt_length == 4_096


def test_the_training_of_a_pipeline_is_changed_to_fewer_or_smaller_images(catalog):
    model = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
    workload = Training(method="lora", micro_batch=4)
    plan = Plan(model=model, workload=workload, gpu="rtx-4090")
    architecture = catalog.models.model(model.id)
    found = {one.lever: one for one in plan_sequences(plan, with_defaults(workload, architecture, 1), architecture, 1)}
    assert found["batch"].change(2).keeps == "4 images per GPU and optimizer step"
    smaller = found["length"].change(512)
    assert smaller.sentence == "Train on images of 512 × 512 pixels instead of 1,024 × 1,024."
    made = apply_change(plan, smaller)
    assert made.workload.image_size == (512, 512)
