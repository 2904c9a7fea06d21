"""Prompts in chunks and decoding steps, with the arithmetic."""

from dataclasses import replace
from math import hypot

import pytest
from small_models import bundled, other
from timed_requests import served

from planner.memory.inference.kv_cache import state_term
from planner.performance.inference.estimate import served_model
from planner.performance.inference.passes import OffloadedWeights
from planner.performance.inference.request import cached_bytes, decoding_step_time, prompt_time
from planner.performance.inference.service import saturated_throughput
from planner.performance.inference.steps import StepTimes
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def test_a_step_reads_the_weights_and_the_cache_and_launches_each_layer():
    one = served()
    step = decoding_step_time(one, 1, 1000)
    assert step.weights_read == pytest.approx(15_009_849_344 / (1008e9 * 0.92), rel=1e-4)
    assert step.cache_read == pytest.approx(131_072_000 / (1008e9 * 0.75 / 0.80 * 0.88))
    assert step.host == pytest.approx(32 * 70e-6)
    assert step.tensor_exchange == step.pipeline_transfers == step.offload == step.attention == 0
    assert step.seconds == pytest.approx(sum(step))


def test_products_and_reading_overlap():
    one = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb")
    step = decoding_step_time(one, 256, 1)
    read = 15_009_849_344 / (3.35e12 * 0.80)
    products = 2 * 256 * (one.work.parameters + one.work.head_parameters) / (989.5e12 * 0.79 * 0.8)
    assert step.weights_read + step.compute == pytest.approx(hypot(read, products))


def test_experts_are_read_and_multiplied_one_after_the_other():
    one = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", model="mistralai/Mixtral-8x7B-v0.1")
    step, work = decoding_step_time(one, 256, 1), one.work
    rate, bandwidth = 989.5e12 * 0.79 * 0.8, 3.35e12 * 0.80
    experts = sum(kind.parameters for kind in work.experts) * 2 / 8  # two of eight experts compute a token
    dense = 2 * 256 * (work.parameters + work.head_parameters - experts) / rate
    apart = 2 * 256 * experts / rate + (work.read_bytes(256) - work.fixed_bytes) / bandwidth
    assert step.weights_read + step.compute == pytest.approx(hypot(work.fixed_bytes / bandwidth, dense) + apart)


def test_scheduling_hides_behind_the_pass_before():
    one = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb")
    assert decoding_step_time(one, 64, 1000).host == pytest.approx(32 * 60e-6)  # 64 · 25 µs are less than the step
    small = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", model="Qwen/Qwen3-0.6B")
    assert decoding_step_time(small, 1_000, 1).seconds == pytest.approx(1_000 * 25e-6)  # the card waits for the host


def test_sums_over_nvlink_and_pcie():
    step = decoding_step_time(served(engine="compiled", weights="bf16", gpu="a100-sxm4-80gb", tensor=8), 1, 10)
    assert step.tensor_exchange / 64 == pytest.approx(3e-6 * 4 + 2 * 7 / 8 * 8192 / 222e9)
    peers = decoding_step_time(
        served(engine="tensorrt-llm", weights="bf16", gpu="rtx-pro-6000-blackwell-server", tensor=2), 1, 1
    )
    assert peers.tensor_exchange / 64 == pytest.approx(10e-6 * 2 + 8192 / 43e9)
    beyond = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=16)
    assert decoding_step_time(beyond, 1, 1).tensor_exchange > 10 * step.tensor_exchange / 8


def test_layers_on_other_cards_take_turns():
    alone, split = decoding_step_time(served(), 1, 500), decoding_step_time(served(stages=4), 1, 500)
    assert split.weights_read == alone.weights_read
    assert split.pipeline_transfers == pytest.approx(3 * (120e-6 + 8192 / 20e9))
    assert split.seconds > alone.seconds


def test_stages_read_a_long_prompt_together():
    alone, split = prompt_time(served(), 1, 4096), prompt_time(served(stages=4), 1, 4096)
    # Eight chunks of 512 pass the 9 of 32 layers of the first stage, and the last one, whose attention takes 7/8 more,
    # those of the others.
    last = 1 + 7 / 8 * split.attention / split.seconds
    assert split.weights_read == pytest.approx(alone.weights_read / 8 * (8 * 9 / 32 + last * 23 / 32))
    assert prompt_time(served(stages=4), 1, 512).seconds > prompt_time(served(), 1, 512).seconds


def test_a_prompt_is_products_attention_and_passes_over_memory():
    one = served(engine="compiled", weights="bf16", gpu="a100-sxm4-80gb")
    spent = prompt_time(one, 2, 1000)
    products = 2 * (2000 * one.work.parameters + 2 * one.work.head_parameters) / (312e12 * 0.85 * 0.8)
    assert spent.weights_read + spent.compute == pytest.approx(hypot(spent.weights_read, products))
    assert spent.attention == pytest.approx(2 * 32 * 4 * 4096 * 500_000 / (312e12 * 0.6))
    assert spent.elementwise == pytest.approx(2000 * one.work.pointwise_bytes / (2039e9 * 0.8))
    assert spent.cache_read == 0


def test_a_prompt_is_read_in_the_chunks_that_the_workload_sets():
    architecture, card = bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("rtx-4090")
    cases = (
        ("vllm", "bf16", "max_num_batched_tokens", 8_192),
        ("sglang", "bf16", "chunked_prefill_size", 8_192),
        ("tensorrt-llm", "bf16", "max_num_tokens", 8_192),
        ("llama.cpp", "F16", "n_ubatch", 512),
    )
    for profile, weights, setting, usual in cases:
        for tokens in (None, usual // 4, 2 * usual):
            workload = Inference(profile=profile, weights=weights, engine={} if tokens is None else {setting: tokens})
            one = served_model(architecture, with_defaults(workload, architecture, 1), card, TimeSetting())
            # The weights are read once in each chunk.
            each = one.work.read_bytes(1) / (one.speed.bytes_per_s * one.speed.read.fraction)
            chunks = 2 * usual / (tokens or usual)
            assert prompt_time(one, 1, 2 * usual).weights_read == pytest.approx(chunks * each), (profile, tokens)
            # So are those of as many prompts as fill 16 chunks of a service, and of a step of the same length.
            filled = 16 * (tokens or usual)
            found, step = saturated_throughput(one, 8, 128, 64), decoding_step_time(one, 8, 160).seconds
            reading = prompt_time(one, filled / 128, 128).seconds / (filled / 128)
            assert found.requests_per_second == pytest.approx(1 / (reading + 64 * step / 8)), (profile, tokens)
            steps = StepTimes(one, 128)
            whole = steps.mixed(0, 0, 2 * usual, 0.0)
            parts = chunks * steps.mixed(0, 0, int(2 * usual / chunks), 0.0)
            assert whole == pytest.approx(parts), (profile, tokens)


def test_attention_that_is_not_fused_moves_its_scores():
    spent = prompt_time(served(unfused=True), 1, 512)
    assert spent.attention == pytest.approx(32 * 32 * 512**2 * 28 / 1008e9)
    # Of four chunks, the tokens of each with those of all before and of its own.
    longer = prompt_time(served(unfused=True), 1, 2048)
    assert longer.attention == pytest.approx((1 + 2 + 3 + 4) * spent.attention)


def test_layers_in_the_hosts_memory_are_multiplied_there_or_brought():
    offloaded = OffloadedWeights(share=0.5, link_bytes_per_s=25e9, host_bytes_per_s=70e9)
    one, whole = served(offloaded=offloaded), served()
    weights = whole.work.read_bytes(1)
    step = decoding_step_time(one, 1, 10)
    assert step.offload == pytest.approx(0.5 * weights / 70e9)
    assert step.weights_read == pytest.approx(decoding_step_time(whole, 1, 10).weights_read / 2)
    assert prompt_time(one, 1, 512).offload == pytest.approx(0.5 * weights / 25e9)
    brought = decoding_step_time(served(offloaded=OffloadedWeights(share=1.0, link_bytes_per_s=25e9)), 1, 10)
    assert brought.offload == pytest.approx(weights / 25e9)


def test_experts_in_the_hosts_memory_are_multiplied_there_or_brought():
    # Three of four layers' experts: a token reads 4 of 32 of them there, waits for each layer, and the rest is here.
    in_ram = OffloadedWeights(0.0, 25e9, 70e9, expert_share=0.75, expert_layers=18, experts_bytes_per_s=43e9)
    one = served(model="openai/gpt-oss-20b", weights="MXFP4_MOE", offloaded=in_ram)
    assert in_ram.uses_cpu
    assert not OffloadedWeights(1.0, 25e9).uses_cpu
    held = sum(kind.bytes for kind in one.work.experts)
    step = decoding_step_time(one, 1, 10)
    assert step.offload == pytest.approx(0.75 * held * 4 / 32 / 43e9 + 18 * 120e-6)
    here = one.work.fixed_bytes + 0.25 * held * 4 / 32
    assert step.weights_read == pytest.approx(here / (one.speed.bytes_per_s * one.speed.read.fraction))
    # A prompt brings the experts that its 128 or 8,192 tokens visit: 0.61 of them, and all.
    assert prompt_time(one, 1, 128).offload == pytest.approx(0.75 * 0.61 * held / 25e9)
    assert prompt_time(one._replace(chunk_tokens=8192), 1, 8192).offload == pytest.approx(0.75 * held / 25e9)
    # Experts are multiplied as they are stored: only the other weights are unpacked.
    unpacked = one._replace(speed=one.speed._replace(engine=replace(one.speed.engine, keeps_experts_packed=False)))
    kept, all_weights = (prompt_time(run, 1, 512).dequantisation for run in (one, unpacked))
    read = one.work.read_bytes(512)
    assert all_weights / kept == pytest.approx(read / one.work.fixed_bytes)


def test_stages_do_not_overlap_where_the_cpu_multiplies():
    # llama.cpp has one copy of a chunk's inputs then.
    piped, waits = served(stages=2), served(stages=2, offloaded=OffloadedWeights(0.5, 25e9, 70e9))
    assert prompt_time(waits, 1, 2048).attention == pytest.approx(prompt_time(served(), 1, 2048).attention)
    assert prompt_time(piped, 1, 2048).attention < 0.8 * prompt_time(waits, 1, 2048).attention


def test_states_of_fixed_size_are_read_and_written():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8}
    mamba = served()._replace(architecture=other("mamba", sizes))
    state = state_term(mamba.architecture, 1)
    assert cached_bytes(mamba, 1) == cached_bytes(mamba, 1000) == 2 * state.bytes
