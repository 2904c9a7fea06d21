"""What SGLang can run, and its settings."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import program_started_as
from planner.workload.software.sglang import SglangSettings
from planner.workload.workload import Inference


def test_a_setting_of_its_own_names_it() -> None:
    settled = with_defaults(Inference(engine={"mem_fraction_static": 0.8}), small_llama(), 1)
    assert (settled.profile, settled.engine) == ("sglang", SglangSettings(mem_fraction_static=0.8))
    assert program_started_as("sglang") == program_started_as("sglang.launch_server") == "sglang"


def test_a_cache_in_blocks_of_llama_cpp_is_refused() -> None:
    with pytest.raises(SpecError, match="SGLang has no q8_0 KV cache"):
        Inference(profile="sglang", kv_cache="q8_0")


def test_gguf_files_are_run() -> None:
    assert with_defaults(Inference(profile="sglang", weights="Q4_K_M"), small_llama(), 1).weights == "Q4_K_M"
