"""TensorRT-LLM's blocks and its fraction of what is free, with the arithmetic by hand."""

import pytest
from small_models import bundled, llama
from vllm_cases import with_states

from planner.memory.estimate import estimate_memory
from planner.memory.phases import PagePool
from planner.memory.software.tensorrt_llm import SERVING
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_3 = "meta-llama/Llama-3.1-8B"
H100 = "h100-sxm5-80gb"


def gpu(name):
    return bundled().hardware.gpu(name)


def memory(model=LLAMA_3, card=H100, count=1, **fields):
    hardware = bundled().hardware
    workload = Inference(profile="tensorrt-llm", **fields)
    found = bundled().models.model(model)
    return estimate_memory(found, workload, gpu(card), hardware.usable_memory(gpu(card)), count)


def test_the_fraction_is_of_what_is_free_after_a_step():
    # A published log of 1.2: 119.70 GiB in all, a peak of 113.65 with 0.56 of them in a first cache, 73,728 B a token.
    pool = PagePool(32 * 73_728, 1, 32, 0, 0.9, taken_bytes=round((113.65 - 0.56) * GIB))
    assert pool.capacity(round(119.70 * GIB)).bytes / GIB == pytest.approx(5.95, abs=0.01)


def test_the_pool_follows_the_fraction_and_the_tokens_of_a_step():
    usual = memory()
    half = memory(engine={"free_gpu_memory_fraction": 0.45})
    assert half.cache_pool.bytes == pytest.approx(usual.cache_pool.bytes / 2, rel=1e-3)
    larger = memory(engine={"max_num_tokens": 16_384})
    more = larger.term("activations").bytes - usual.term("activations").bytes
    assert usual.cache_pool.bytes - larger.cache_pool.bytes == pytest.approx(0.9 * more, rel=1e-2)
    held = memory(other_processes_bytes=10 * GIB)
    assert usual.cache_pool.bytes - held.cache_pool.bytes == pytest.approx(9 * GIB, rel=1e-2)


def test_a_block_holds_32_tokens_of_every_layer():
    found = memory(batch=3, context_length=4097)
    assert found.term("kv_cache").bytes == 3 * 129 * 32 * 131_072
    assert memory(context_length=4096, engine={"tokens_per_block": 64}).term("kv_cache").bytes == 64 * 64 * 131_072


def test_windows_are_cached_in_full_and_states_for_every_request():
    gemma = bundled().models.model("google/gemma-3-27b-it")
    found = estimate_memory(gemma, Inference(profile="tensorrt-llm", context_length=8192))
    assert "max_attention_window" in " ".join(found.notes)
    states = with_states(4, 3, conv_state_elements=1000, recurrent_state_elements=100_000)
    mixed = estimate_memory(states, Inference(profile="tensorrt-llm", engine={"max_batch_size": 7}))
    assert mixed.term("state").bytes == 7 * 3 * (1000 * 2 + 100_000 * 4)
    alone = with_states(3, 3, conv_state_elements=10, recurrent_state_elements=100)
    bare = estimate_memory(alone, Inference(profile="tensorrt-llm"))
    assert (bare.term("kv_cache"), bare.cache_pool) == (None, None)


def test_more_requests_than_a_step_has_wait_and_a_headless_network_samples_nothing():
    assert "4 of 20 requests wait" in " ".join(memory(batch=20, engine={"max_batch_size": 16}).notes)
    headless = llama().evolve(head=())
    timeline = SERVING.timeline(headless, with_defaults(Inference(profile="tensorrt-llm"), headless, 1))
    assert all(term.name != "logits" for term in timeline.snapshots[-1].terms)


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        (H100, {}, ""),
        (H100, {"weights": "fp8", "kv_cache": "fp8"}, ""),
        (H100, {"weights": "nvfp4"}, "capability 10.0"),
        ("b200-sxm-180gb", {"weights": "nvfp4"}, ""),
        ("a100-sxm4-80gb", {"weights": "fp8"}, "fp8 products"),
        ("a100-sxm4-80gb", {"kv_cache": "fp8"}, "fp8 cache"),
        ("tesla-t4", {}, "capability 8.0"),
        ("instinct-mi300x", {}, "NVIDIA GPUs only"),
    ],
)
def test_it_runs_on_ampere_and_newer(name, fields, reason):
    said = " ".join(SERVING.unsupported_reasons(Inference(profile="tensorrt-llm", **fields), gpu(name)))
    assert (reason in said) if reason else not said


def test_the_first_stages_get_the_remainder():
    assert SERVING.split_layers(llama(), Inference(profile="tensorrt-llm", parallel={"pipeline": 3})) == (11, 11, 10)


def test_the_settings_in_use_are_the_defaults():
    used = SERVING.settings_in_use(llama(), with_defaults(Inference(profile="tensorrt-llm"), llama(), 1), None)
    assert (used.max_batch_size, used.max_num_tokens, used.free_gpu_memory_fraction) == (2048, 8192, 0.9)
    assert (used.tokens_per_block, used.cuda_graph_max_batch_size) == (32, 128)
