"""Parameter formats that methods and compute precisions allow."""

import pytest

from planner.plan.catalog import load_catalog
from planner.workload.formats import (
    EXCLUSIVE_FIELDS,
    autocasts,
    default_profile,
    formats_for,
    incompatibility,
    is_plain,
    native_format_name,
    plain_formats,
    product_format,
)


@pytest.mark.parametrize(
    ("compute", "products", "is_autocast"),
    [("fp32", "fp32", False), ("bf16", "bf16", False), ("amp-fp16", "fp16", True), ("fp8", "bf16", True)],
)
def test_products_are_in_the_compute_precision_except_under_fp8(compute, products, is_autocast):
    assert product_format(compute) == products
    assert autocasts(compute) is is_autocast


def test_fp16_autocast_trains_fp32_parameters_and_freezes_fp16_ones():
    assert plain_formats("full", "amp-fp16") == ("fp32",)
    assert plain_formats("lora", "amp-fp16") == ("fp32", "fp16")


def test_only_adapters_allow_quantized_base_models():
    assert formats_for("full", "amp-bf16") == ("fp32", "bf16")
    assert formats_for("lora", "amp-bf16") == ("fp32", "bf16", "int8")
    assert formats_for("qlora", "amp-bf16") == ("nf4", "nf4-dq")
    assert formats_for("qlora", "fp32") == ()
    assert is_plain("bf16")
    assert not is_plain("int8")


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
    assert not incompatibility("hf", "nf4", llama).reason
    assert not incompatibility(
        "hf", "nf4", load_catalog().models.model("stabilityai/stable-diffusion-xl-base-1.0")
    ).reason
    assert not incompatibility("llama.cpp", "Q4_K_M", llama).reason
    assert "runs GGUF files" in incompatibility("llama.cpp", "nf4", llama).reason
    assert "converts GGUF files to plain tensors" in incompatibility("hf", "Q4_K_M", llama).reason


def test_plain_formats_have_other_names_in_gguf_files(llama):
    assert native_format_name("llama.cpp", "bf16", llama) == "BF16"
    assert native_format_name("hf", "F16", llama) == "fp16"
    assert native_format_name("vllm", "Q4_K_M", llama) == "Q4_K_M"


def test_llama_cpp_keeps_mxfp4_for_experts_only(llama):
    experts = load_catalog().models.model("openai/gpt-oss-20b")
    assert not incompatibility("llama.cpp", None, experts).reason
    assert native_format_name("llama.cpp", "mxfp4", experts) == "MXFP4_MOE"
    assert "runs GGUF files" in incompatibility("llama.cpp", "mxfp4", llama).reason
