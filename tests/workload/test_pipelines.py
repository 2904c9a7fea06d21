"""Default settings of diffusion workloads, and settings that pipelines do not support."""

import pytest

from planner.errors import SpecError
from planner.models.catalog import load_models
from planner.paths import catalog_dir
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

CATALOG = load_models(catalog_dir() / "models")


FLUX = CATALOG.model("black-forest-labs/FLUX.1-dev")


def test_settings_that_pipelines_lack_are_refused():
    for workload, reason in (
        (Training(), "cannot be estimated by a formula"),
        (Inference(profile="vllm"), "cannot run diffusion pipelines"),
        (Inference(image_size=1001), "not multiples of 16"),
        (Inference(attention="eager"), "estimated for U-Nets only"),
        (Inference(weights="Q4_K_M"), "mix weight formats, which is not supported"),
        (Inference(engine={"n_ubatch": 256}), "n_ubatch is a setting of"),
        (Inference(weights="stored"), "files were not read"),
        (Inference(diffusion={"text_weights": "stored"}), "files were not read"),
    ):
        with pytest.raises(SpecError, match=reason):
            with_defaults(workload, FLUX, 1)


def test_unset_fields_are_filled_in_for_the_pipeline() -> None:
    filled = with_defaults(Inference(compute="fp16"), FLUX, 1)
    assert isinstance(filled, Inference)
    assert (filled.image_size, filled.weights, filled.diffusion.text_weights) == ((1024, 1024), "fp16", "fp16")
    assert filled.diffusion.guidance is False
