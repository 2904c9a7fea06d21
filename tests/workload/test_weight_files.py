"""Compatibility of inference software with weight files."""

import pytest

from planner.plan.catalog import load_catalog
from planner.workload.weight_files import EXCLUSIVE_FIELDS, default_profile, incompatibility, native_format_name


@pytest.fixture(scope="module")
def llama():
    return load_catalog().models.model("meta-llama/Llama-3.1-8B")


def test_the_engine_follows_the_settings_and_then_the_weights(llama):
    nothing = [None] * len(EXCLUSIVE_FIELDS)
    assert default_profile((), nothing, None, llama) == "hf"
    assert default_profile((), nothing, "Q4_K_M", llama) == "llama.cpp"
    assert default_profile(("max_num_seqs",), nothing, None, llama) == "vllm"
    assert default_profile((), [20], None, llama) == "llama.cpp"


def test_each_engine_runs_its_own_files_only(llama):
    assert incompatibility("hf", "nf4", llama) == ()
    assert incompatibility("llama.cpp", "Q4_K_M", llama) == ()
    assert "runs GGUF files" in incompatibility("llama.cpp", "nf4", llama)[0]
    assert "converts GGUF files to plain tensors" in incompatibility("hf", "Q4_K_M", llama)[0]


def test_plain_formats_have_other_names_in_gguf_files(llama):
    assert native_format_name("llama.cpp", "bf16", llama) == "BF16"
    assert native_format_name("hf", "F16", llama) == "fp16"
    assert native_format_name("vllm", "Q4_K_M", llama) == "Q4_K_M"


def test_llama_cpp_keeps_mxfp4_for_experts_only(llama):
    experts = load_catalog().models.model("openai/gpt-oss-20b")
    assert incompatibility("llama.cpp", None, experts) == ()
    assert native_format_name("llama.cpp", "mxfp4", experts) == "MXFP4_MOE"
    assert "runs GGUF files" in incompatibility("llama.cpp", "mxfp4", llama)[0]
