"""Throughput of queued requests, with the arithmetic."""

import pytest
from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.machine import card_speed
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.inference.throughput import MOST_SEQUENCES, saturated_throughput, sequences_that_fit
from planner.performance.inference.work import work_of
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting

LLAMA_8B = "meta-llama/Llama-3.1-8B"


def run(gpu="rtx-4090", engine="llama.cpp", weights="F16", model=LLAMA_8B, cache="fp16", unfused=False, **shares):
    card = bundled().hardware.gpu(gpu)
    architecture = bundled().models.model(model)
    sharing = ModelSplit(links_of(card, TimeSetting()), **shares)
    machine = card_speed(card, ENGINES[engine], weights, unfused=unfused)
    return ServedModel(architecture, work_of(architecture, weights), machine, sharing, cache)


def test_a_cache_is_copied_where_there_are_more_cards_than_heads():
    eight = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=8)
    sixteen = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=16)
    assert decoding_step_time(sixteen, 8, 1000).cache_read == decoding_step_time(eight, 8, 1000).cache_read
    latent = run(engine="vllm", weights="fp8", gpu="h100-sxm5-80gb", model="deepseek-ai/DeepSeek-V3", tensor=8)
    spread = latent._replace(
        machine=card_speed(bundled().hardware.gpu("h100-sxm5-80gb"), ENGINES["tensorrt-llm"], "fp8")
    )
    assert decoding_step_time(latent, 8, 1000).cache_read == pytest.approx(
        8 * decoding_step_time(spread, 8, 1000).cache_read
    )
    assert sequences_that_fit(spread, "fp8", 100_000, 141e9) >= 7 * sequences_that_fit(latent, "fp8", 100_000, 141e9)


def test_sequences_that_fit():
    one = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb")
    # 72 GB less 16.06 GB of weights, over 131,072 bytes for each of 1,000 tokens.
    assert sequences_that_fit(one, "bf16", 1000, 80e9) == int((72e9 - 16_060_522_496) / 131_072_000)
    assert sequences_that_fit(one, "bf16", 1, 80e9) == MOST_SEQUENCES
    assert sequences_that_fit(one, "bf16", 1000, 10e9) == 0


def test_what_queued_requests_bring():
    one = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb")
    found = saturated_throughput(one, 64, 512, 256)
    reading = prompt_time(one, 256, 512).seconds / 256
    step = decoding_step_time(one, 64, 640).seconds
    assert found.requests_per_second == pytest.approx(1 / (reading + 256 * step / 64))
    assert found.tokens_per_second == pytest.approx(256 * found.requests_per_second)


def test_stages_decode_different_sequences_at_once_where_the_engine_does():
    served = saturated_throughput(run(engine="vllm", weights="bf16", gpu="l40s", stages=2), 64, 512, 256)
    alone = saturated_throughput(run(engine="vllm", weights="bf16", gpu="l40s"), 64, 512, 256)
    assert served.tokens_per_second > 1.1 * alone.tokens_per_second
    turns = saturated_throughput(run(stages=2), 8, 512, 256)
    assert turns.output_token_seconds > saturated_throughput(run(), 8, 512, 256).output_token_seconds
