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
    assert (fused.cache.fraction, unfused.cache.fraction) == pytest.approx((0.75 / 0.80 * 0.88, 0.37))


def test_chunks_overlap_on_the_stages_while_the_launches_of_one_fit_into_the_queue():
    large = {"model": "meta-llama/Llama-3.1-70B", "stages": 4}
    quantised, plain = served(weights="Q4_K_M", **large), served(weights="F16", **large)
    engine = ENGINES["llama.cpp"]
    # 80 layers on 4 stages: 52 · 20 = 1,040 launches of a chunk with quantised weights, 45 · 20 = 900 without.
    assert [engine.chunks_at_once(run.work, 4, 8) for run in (quantised, plain)] == [1, 4]
    assert engine.chunks_at_once(quantised.work, 8, 8) == 4
    alone = prompt_time(served(weights="Q4_K_M", model=large["model"]), 1, 4096)
    assert prompt_time(quantised, 1, 4096).compute == pytest.approx(alone.compute)
    # 8 chunks, 4 at a time: twice (4 + 3) ÷ 4 of what one chunk takes.
    on_one = prompt_time(served(model=large["model"]), 1, 4096)
    assert prompt_time(plain, 1, 4096).compute == pytest.approx(on_one.compute / 8 * 2 * (4 + 3) / 4)


def test_hopper_multiplies_with_the_instructions_of_the_a100():
    assert card_speed(gpu("h100-pcie-80gb"), ENGINES["llama.cpp"], "F16").products.fraction == pytest.approx(
        0.38 * 0.63
    )


def test_pascal_multiplies_16_bits_in_fp32():
    p40 = gpu("tesla-p40")
    assert ENGINES["llama.cpp"].rate(p40, "fp16") == pytest.approx(p40.rate("fp32").ops_per_s)
