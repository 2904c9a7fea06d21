"""Prompts in chunks and decoding steps, with the arithmetic."""

from math import hypot

import pytest
from known_engines import ENGINES
from small_models import bundled, other

from planner.memory.inference.kv_cache import state_term
from planner.performance.inference.machine import card_speed
from planner.performance.inference.passes import HostWeights, ModelSplit
from planner.performance.inference.request import ServedModel, cached_bytes, decoding_step_time, prompt_time
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


def test_a_step_reads_the_weights_and_the_cache_and_launches_each_layer():
    one = run()
    step = decoding_step_time(one, 1, 1000)
    assert step.weights_read == pytest.approx(15_009_849_344 / (1008e9 * 0.92), rel=1e-4)
    assert step.cache_read == pytest.approx(131_072_000 / (1008e9 * 0.75))
    assert step.host == pytest.approx(32 * 70e-6)
    assert step.tensor_exchange == step.pipeline_transfers == step.offload == step.attention == 0
    assert step.seconds == pytest.approx(sum(step))


def test_an_rtx_4090_writes_the_54_tokens_a_second_that_were_measured():
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 54.34 with F16 and 127.74 with Q4_K_M.
    assert 1 / decoding_step_time(run(unfused=True), 1, 512).seconds == pytest.approx(54.34, rel=0.05)
    assert 1 / decoding_step_time(run(weights="Q4_K_M", unfused=True), 1, 512).seconds == pytest.approx(
        127.74, rel=0.05
    )


def test_products_and_reading_overlap():
    one = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb")
    step = decoding_step_time(one, 256, 1)
    read = 15_009_849_344 / (3.35e12 * 0.80)
    products = 2 * 256 * (one.work.parameters + one.work.head_parameters) / (989.5e12 * 0.79 * 0.8)
    assert step.weights_read + step.compute == pytest.approx(hypot(read, products))


def test_launches_from_python_count_only_where_they_take_longer_than_the_card():
    small = decoding_step_time(run(engine="hf", weights="bf16", gpu="h100-sxm5-80gb"), 1, 10)
    assert small.seconds == pytest.approx(32 * 610e-6)
    large = decoding_step_time(run(engine="hf", weights="bf16", gpu="rtx-4090"), 1, 10)
    assert large.host == pytest.approx(max(0.0, 32 * 610e-6 - (large.seconds - large.host)))
    slow = decoding_step_time(run(engine="hf", weights="bf16", gpu="rtx-4090"), 64, 2000)
    assert slow.host == 0


def test_transformers_copies_the_cache_for_each_query_that_shares_it():
    lean = decoding_step_time(run(engine="compiled", weights="bf16"), 1, 4000)
    copied = decoding_step_time(run(engine="hf", weights="bf16"), 1, 4000)
    assert copied.cache_read == pytest.approx(lean.cache_read * (1 + 2 + 4 * 4))


def test_sums_over_nvlink_and_pcie():
    step = decoding_step_time(run(engine="compiled", weights="bf16", gpu="a100-sxm4-80gb", tensor=8), 1, 10)
    assert step.tensor_exchange / 64 == pytest.approx(3e-6 * 4 + 2 * 7 / 8 * 8192 / 222e9)
    peers = decoding_step_time(
        run(engine="tensorrt-llm", weights="bf16", gpu="rtx-pro-6000-blackwell-server", tensor=2), 1, 1
    )
    assert peers.tensor_exchange / 64 == pytest.approx(10e-6 * 2 + 8192 / 43e9)
    beyond = run(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", tensor=16)
    assert decoding_step_time(beyond, 1, 1).tensor_exchange > 10 * step.tensor_exchange / 8


def test_layers_on_other_cards_take_turns():
    alone, split = decoding_step_time(run(), 1, 500), decoding_step_time(run(stages=4), 1, 500)
    assert split.weights_read == alone.weights_read
    assert split.pipeline_transfers == pytest.approx(3 * (120e-6 + 8192 / 20e9))
    assert split.seconds > alone.seconds


def test_stages_read_a_long_prompt_together():
    alone, split = prompt_time(run(), 1, 4096), prompt_time(run(stages=4), 1, 4096)
    # llama.cpp waits after each four chunks of 512: (4 + 3) / (4 · 4) of the time.
    assert split.weights_read == pytest.approx(alone.weights_read * 7 / 16)
    assert prompt_time(run(stages=4), 1, 512).seconds > prompt_time(run(), 1, 512).seconds


def test_a_prompt_is_products_attention_and_passes_over_memory():
    one = run(engine="compiled", weights="bf16", gpu="a100-sxm4-80gb")
    spent = prompt_time(one, 2, 1000)
    products = 2 * (2000 * one.work.parameters + 2 * one.work.head_parameters) / (312e12 * 0.85 * 0.8)
    assert spent.weights_read + spent.compute == pytest.approx(hypot(spent.weights_read, products))
    assert spent.attention == pytest.approx(2 * 32 * 4 * 4096 * 500_000 / (312e12 * 0.6))
    assert spent.elementwise == pytest.approx(2000 * one.work.pointwise_bytes / (2039e9 * 0.8))
    assert spent.cache_read == 0


def test_attention_that_is_not_fused_moves_its_scores():
    spent = prompt_time(run(unfused=True), 1, 512)
    assert spent.attention == pytest.approx(32 * 32 * 512**2 / 2 * 30 / 1008e9)


def test_llama_cpp_writes_quantised_weights_out_for_each_chunk():
    spent = prompt_time(run(weights="Q4_K_M"), 1, 1024)
    one = run(weights="Q4_K_M")
    assert spent.dequantisation == pytest.approx(
        2 * one.work.dequantised_bytes * one.work.read_bytes(512) / one.work.fixed_bytes / 1008e9
    )
    assert decoding_step_time(one, 1, 1024).dequantisation == 0


def test_layers_in_the_hosts_memory_are_multiplied_there_or_brought():
    offloaded = HostWeights(share=0.5, link_bytes_per_s=25e9, host_bytes_per_s=70e9)
    one, whole = run(offloaded=offloaded), run()
    weights = whole.work.read_bytes(1)
    step = decoding_step_time(one, 1, 10)
    assert step.offload == pytest.approx(0.5 * weights / 70e9)
    assert step.weights_read == pytest.approx(decoding_step_time(whole, 1, 10).weights_read / 2)
    assert prompt_time(one, 1, 512).offload == pytest.approx(0.5 * weights / 25e9)
    brought = decoding_step_time(run(offloaded=HostWeights(share=1.0, link_bytes_per_s=25e9)), 1, 10)
    assert brought.offload == pytest.approx(weights / 25e9)


def test_states_of_fixed_size_are_read_and_written():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8}
    mamba = run()._replace(architecture=other("mamba", sizes))
    state = state_term(mamba.architecture, 1)
    assert cached_bytes(mamba, 1) == cached_bytes(mamba, 1000) == 2 * state.bytes
