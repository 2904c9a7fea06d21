"""Advice and questions about pipelines that make images."""

import pytest

from planner.memory.training.autograd.network import feed_forward_parameters
from planner.memory.training.full import fp8_cast_terms
from planner.plan.advice.advise import advise
from planner.plan.advice.pipeline_changes import smaller_images
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import largest_that_fits
from planner.workload.training import Training
from planner.workload.workload import Inference

SDXL = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")


def test_smaller_images_keep_their_aspect_ratio_in_steps_of_64_pixels():
    sequence = smaller_images(Inference(image_size="1024x768"))
    assert (sequence.lever, sequence.values[0], sequence.values[-1]) == ("length", 960, 256)
    change = sequence.change(512)
    assert change.settings == {"image_size": "512x384"}
    assert change.kept == pytest.approx(1 / 4)
    assert change.name == "images of 512 × 384 pixels"


def test_a_pipeline_that_does_not_fit_gets_advice(catalog):
    plan = Plan(model=SDXL, workload=Inference(batch=4, image_size="2048x2048", compute="fp16"), gpu="rtx-3060-12-gb")
    assert evaluate(plan, catalog).memory.verdict == "does-not-fit"
    found = advise(plan, catalog)
    assert found
    for advice in found:
        assert advice.saved_bytes > 0 or advice.cost == "hardware"


def test_a_pipeline_has_no_largest_length(catalog):
    found = largest_that_fits(Plan(model=SDXL, gpu="rtx-4090"), catalog, "context_length")
    assert (found.value, found.reason) == (None, "a diffusion pipeline has no such length")


def test_components_without_linear_layers_are_not_quantized(catalog):
    pipeline = catalog.models.model(SDXL.id)
    assert fp8_cast_terms(pipeline, Training(compute="fp8", sequence_length=8), backward=True) == ()
    assert feed_forward_parameters(None, 64) == 0
