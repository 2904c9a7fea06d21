"""Speeds of a card in an engine, by format."""

import pytest
from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.machine import card_speed


def gpu(name):
    return bundled().hardware.gpu(name)


def test_formats_are_multiplied_as_such_where_engine_and_card_do():
    assert card_speed(gpu("h100-sxm5-80gb"), ENGINES["vllm"], "fp8").dtype == "fp8"
    assert card_speed(gpu("a100-sxm4-80gb"), ENGINES["vllm"], "fp8").dtype == "fp16"
    assert card_speed(gpu("b200-sxm-180gb"), ENGINES["tensorrt-llm"], "nvfp4").dtype == "fp4"
    assert card_speed(gpu("b200-sxm-180gb"), ENGINES["hf"], "nvfp4").dtype == "fp16"
    assert card_speed(gpu("h100-sxm5-80gb"), ENGINES["hf"], "fp32", "fp32").dtype == "fp32"


def test_llama_cpp_sums_in_16_bits_at_the_whole_rate_of_a_geforce_card():
    card = gpu("rtx-4090")
    assert ENGINES["llama.cpp"].rate(card, "fp16") == pytest.approx(330.3e12)
    assert ENGINES["vllm"].rate(card, "fp16") == pytest.approx(165.2e12)
    assert ENGINES["llama.cpp"].rate(gpu("apple-m3-max"), "fp16") == pytest.approx(14.2e12)


def test_the_boards_power_bounds_llama_cpps_products():
    strong, thrifty = gpu("rtx-4090"), gpu("rtx-6000-ada")
    assert card_speed(strong, ENGINES["llama.cpp"], "F16").products.fraction == 0.45
    found = card_speed(thrifty, ENGINES["llama.cpp"], "F16")
    assert found.products.fraction * found.ops_per_s == pytest.approx(0.36e12 * 300)
    unknown = card_speed(thrifty.evolve(board_power_watts=None), ENGINES["llama.cpp"], "F16")
    assert unknown.products.fraction == 0.45


def test_a_card_without_figures_has_no_machine():
    assert card_speed(gpu("rtx-4090").evolve(bandwidth_bytes_per_s=None), ENGINES["hf"], "bf16") is None
    assert card_speed(gpu("rtx-4090").evolve(rates=()), ENGINES["hf"], "bf16") is None


def test_launches_by_engine_host_and_format():
    assert card_speed(gpu("h100-sxm5-80gb"), ENGINES["hf"], "bf16").layer_seconds == 610e-6
    assert card_speed(gpu("a100-sxm4-80gb"), ENGINES["hf"], "bf16").layer_seconds == 840e-6
    assert card_speed(gpu("a100-sxm4-80gb"), ENGINES["hf"], "nf4").layer_seconds == 1_600e-6
    assert card_speed(gpu("a100-sxm4-80gb"), ENGINES["llama.cpp"], "F16").layer_seconds == 100e-6
    assert card_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16").layer_seconds == 70e-6


def test_launches_hide_behind_the_card_but_for_fp8_in_transformers():
    card = gpu("h100-sxm5-80gb")
    assert card_speed(card, ENGINES["hf"], "bf16").hides_launches
    assert not card_speed(card, ENGINES["hf"], "fp8").hides_launches
    assert not card_speed(card, ENGINES["vllm"], "bf16").hides_launches
    assert (
        card_speed(card, ENGINES["hf"], "awq4-128").layer_seconds
        < card_speed(card, ENGINES["hf"], "gptq4-128").layer_seconds
    )


def test_grace_processors_take_longer_to_schedule():
    slow, quick = (
        card_speed(gpu(name), ENGINES["tensorrt-llm"], "nvfp4") for name in ("gb200-186gb", "b200-sxm-180gb")
    )
    assert slow.sequence_seconds == pytest.approx(1.6 * quick.sequence_seconds)


def test_unfused_attention_reads_the_cache_slowly():
    fused = card_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16")
    unfused = card_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16", unfused=True)
    assert (fused.cache.fraction, unfused.cache.fraction) == (0.75, 0.37)
