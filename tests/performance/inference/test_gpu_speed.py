"""Speeds of a card in an engine, by format."""

import pytest
from known_engines import ENGINES
from timed_requests import gpu

from planner.performance.inference.gpu_speed import gpu_speed


def test_formats_are_multiplied_as_such_where_engine_and_card_do():
    assert gpu_speed(gpu("h100-sxm5-80gb"), ENGINES["vllm"], "fp8").dtype == "fp8"
    assert gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["vllm"], "fp8").dtype == "fp16"
    assert gpu_speed(gpu("b200-sxm-180gb"), ENGINES["tensorrt-llm"], "nvfp4").dtype == "fp4"
    assert gpu_speed(gpu("b200-sxm-180gb"), ENGINES["hf"], "nvfp4").dtype == "fp16"
    assert gpu_speed(gpu("h100-sxm5-80gb"), ENGINES["hf"], "fp32", "fp32").dtype == "fp32"


def test_a_card_without_figures_has_no_machine():
    assert gpu_speed(gpu("rtx-4090").evolve(bandwidth_bytes_per_s=None), ENGINES["hf"], "bf16") is None
    assert gpu_speed(gpu("rtx-4090").evolve(rates=()), ENGINES["hf"], "bf16") is None


def test_launches_hide_behind_the_card_but_for_fp8_in_transformers():
    card = gpu("h100-sxm5-80gb")
    assert gpu_speed(card, ENGINES["hf"], "bf16").hides_launches
    assert not gpu_speed(card, ENGINES["hf"], "fp8").hides_launches
    assert not gpu_speed(card, ENGINES["vllm"], "bf16").hides_launches
    assert (
        gpu_speed(card, ENGINES["hf"], "awq4-128").layer_seconds
        < gpu_speed(card, ENGINES["hf"], "gptq8-128").layer_seconds
    )


def test_grace_processors_take_longer_to_schedule():
    slow, quick = (gpu_speed(gpu(name), ENGINES["tensorrt-llm"], "nvfp4") for name in ("gb200-186gb", "b200-sxm-180gb"))
    assert slow.sequence_seconds == pytest.approx(1.6 * quick.sequence_seconds)


def test_a_cut_down_card_is_bound_by_its_products_alone():
    cut, whole = (gpu_speed(gpu(name), ENGINES["vllm"], "bf16") for name in ("h20-96gb", "h100-sxm5-80gb"))
    assert (cut.products.fraction, whole.products.fraction) == pytest.approx((0.80, 0.8 * 0.79))
    assert cut.attention_ops_per_s == pytest.approx(0.73 * 148e12)
    assert gpu_speed(gpu("h20-96gb"), ENGINES["vllm"], "fp8").products.fraction == 0.70
    # Transformers calls FlashAttention-2 of PyTorch, whose share is that of other cards.
    assert gpu_speed(gpu("h20-96gb"), ENGINES["hf"], "bf16").attention_ops_per_s == pytest.approx(0.60 * 148e12)
