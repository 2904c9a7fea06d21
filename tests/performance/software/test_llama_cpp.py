"""Speed of llama.cpp: measured tokens per second, dense rates and shares."""

import pytest
from known_engines import ENGINES
from timed_requests import gpu, served

from planner.performance.inference.machine import card_speed
from planner.performance.inference.request import decoding_step_time, prompt_time


def test_an_rtx_4090_decodes_54_tokens_per_second_as_measured():
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 54.34 with F16 and 127.74 with Q4_K_M.
    assert 1 / decoding_step_time(served(unfused=True), 1, 512).seconds == pytest.approx(54.34, rel=0.05)
    assert 1 / decoding_step_time(served(weights="Q4_K_M", unfused=True), 1, 512).seconds == pytest.approx(
        127.74, rel=0.05
    )


def test_llama_cpp_writes_quantised_weights_out_for_each_chunk():
    spent = prompt_time(served(weights="Q4_K_M"), 1, 1024)
    one = served(weights="Q4_K_M")
    assert spent.dequantisation == pytest.approx(
        2 * one.work.dequantised_bytes * one.work.read_bytes(512) / one.work.fixed_bytes / 1008e9
    )
    assert decoding_step_time(one, 1, 1024).dequantisation == 0


def test_llama_cpp_sums_in_16_bits_at_the_whole_rate_of_a_geforce_card():
    card = gpu("rtx-4090")
    assert ENGINES["llama.cpp"].rate(card, "fp16") == pytest.approx(330.3e12)
    assert ENGINES["vllm"].rate(card, "fp16") == pytest.approx(165.2e12)
    assert ENGINES["llama.cpp"].rate(gpu("apple-m3-max"), "fp16") == pytest.approx(14.2e12)


def test_board_power_limits_the_products():
    strong, thrifty = gpu("rtx-4090"), gpu("rtx-6000-ada")
    assert card_speed(strong, ENGINES["llama.cpp"], "F16").products.fraction == 0.45
    found = card_speed(thrifty, ENGINES["llama.cpp"], "F16")
    assert found.products.fraction * found.ops_per_s == pytest.approx(0.36e12 * 300)
    unknown = card_speed(thrifty.evolve(board_power_watts=None), ENGINES["llama.cpp"], "F16")
    assert unknown.products.fraction == 0.45


def test_unfused_attention_reads_the_cache_slowly():
    fused = card_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16")
    unfused = card_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16", unfused=True)
    assert (fused.cache.fraction, unfused.cache.fraction) == (0.75, 0.37)
