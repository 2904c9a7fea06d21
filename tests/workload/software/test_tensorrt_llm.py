"""What TensorRT-LLM can run, and its settings."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import program_started_as
from planner.workload.workload import Inference


def test_a_setting_of_its_own_names_it() -> None:
    settled = with_defaults(Inference(engine={"tokens_per_block": 64}), small_llama(), 1)
    assert settled.profile == "tensorrt-llm"
    assert program_started_as("trtllm-serve") == "tensorrt-llm"


@pytest.mark.parametrize("weights", ["nf4", "Q4_K_M", "gptq4-128"])
def test_formats_without_kernels_are_refused(weights: str) -> None:
    with pytest.raises(SpecError, match="TensorRT-LLM does not run"):
        with_defaults(Inference(profile="tensorrt-llm", weights=weights), small_llama(), 1)


def test_formats_with_kernels_are_run() -> None:
    assert with_defaults(Inference(profile="tensorrt-llm", weights="nvfp4"), small_llama(), 1).weights == "nvfp4"
