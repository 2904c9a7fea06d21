"""Requests per second of a saturated service, with the arithmetic."""

import pytest
from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.inference.service import (
    MAX_SEQUENCES_PER_STEP,
    MOST_SEQUENCES,
    saturated_throughput,
    sequences_that_fit,
    service_rate,
)
from planner.performance.inference.work import work_of
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_8B = "meta-llama/Llama-3.1-8B"


def run(gpu="rtx-4090", engine="llama.cpp", weights="F16", model=LLAMA_8B, cache="fp16", unfused=False, **shares):
    card = bundled().hardware.gpu(gpu)
    architecture = bundled().models.model(model)
    split = ModelSplit(links_of(card, TimeSetting()), **shares)
    speed = gpu_speed(card, ENGINES[engine], weights, unfused=unfused)
    return ServedModel(architecture, work_of(architecture, weights), speed, split, cache)


def test_a_cache_is_copied_where_there_are_more_cards_than_heads():
    eight = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=8)
    sixteen = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=16)
    assert decoding_step_time(sixteen, 8, 1000).cache_read == decoding_step_time(eight, 8, 1000).cache_read
    latent = run(engine="vllm", weights="fp8", gpu="h100-sxm5-80gb", model="deepseek-ai/DeepSeek-V3", tensor=8)
    spread = latent._replace(speed=gpu_speed(bundled().hardware.gpu("h100-sxm5-80gb"), ENGINES["tensorrt-llm"], "fp8"))
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


def test_a_single_sequence_is_in_one_stage_at_a_time():
    two = run(engine="vllm", weights="bf16", gpu="l40s", stages=2)
    waits = 1 + 0.1  # for the other stage
    assert saturated_throughput(two, 1, 512, 256).output_token_seconds == pytest.approx(
        waits * decoding_step_time(two, 1.0, 640).seconds, rel=1e-9
    )


def serve(prompt=500.0, answer=300.0, gpu="h100-sxm5-80gb", cards=1, model="meta-llama/Llama-3.1-8B", **changes):
    architecture = bundled().models.model(model)
    workload = with_defaults(Inference(**{"profile": "vllm", **changes}), architecture, cards)
    card = bundled().hardware.gpu(gpu) if isinstance(gpu, str) else gpu
    return service_rate(architecture, workload, card, TimeSetting(), prompt, answer)


def test_an_engine_takes_as_many_at_once_as_fit():
    assert serve().concurrent_requests == MAX_SEQUENCES_PER_STEP
    long = serve(prompt=8_000.0, answer=1_000.0)
    assert 8 < long.concurrent_requests < MAX_SEQUENCES_PER_STEP
    assert serve(batch=400).concurrent_requests == 400
    assert serve(cards=2, parallel={"data": 2}).concurrent_requests == 2 * MAX_SEQUENCES_PER_STEP


def test_software_that_does_not_batch_takes_what_the_workload_says():
    assert serve(profile="llama.cpp", weights="Q4_K_M", batch=4).concurrent_requests == 4
    assert serve(profile="hf").concurrent_requests == 1


def test_a_place_is_taken_while_its_request_is_read_and_written():
    found = serve()
    each = found.prompt_seconds + 300 * found.output_token_seconds
    assert found.requests_per_second == pytest.approx(found.concurrent_requests / each)
    assert found.tokens_per_second == pytest.approx(300 * found.requests_per_second)
    twice = serve(cards=2, parallel={"data": 2})
    assert twice.requests_per_second == pytest.approx(2 * found.requests_per_second)
    assert twice.prompt_seconds == pytest.approx(found.prompt_seconds)


def test_longer_requests_take_longer():
    assert serve().requests_per_second > serve(prompt=1_000.0).requests_per_second
    assert serve().requests_per_second > serve(answer=600.0).requests_per_second
    assert serve(prompt=0.0).requests_per_second > serve().requests_per_second


def test_what_is_not_a_service_of_words_is_not_told():
    assert serve(model="stable-diffusion-v1-5/stable-diffusion-v1-5", profile=None) is None
    bare = bundled().hardware.gpu("h100-sxm5-80gb").evolve(bandwidth_bytes_per_s=None)
    assert serve(gpu=bare) is None
    assert serve(gpu=bare.evolve(memory_bytes=None)) is None
