"""Blocks of a common beginning, and the KV cache in RAM, by hand."""

import pytest
from small_models import llama

from planner.memory.estimate import estimate_memory
from planner.memory.inference.prefix import cache_in_ram, held_pages, shared_pages
from planner.memory.phases import PagePool
from planner.workload.workload import Inference


def test_whole_blocks_are_shared_but_each_sequence_has_one_of_its_own():
    workload = Inference(profile="vllm", common_prefix=1000)
    assert shared_pages(workload, 16, 256) == 62
    assert shared_pages(workload, 16, 20) == 19
    assert (held_pages(8, 256, 62), held_pages(0, 256, 62), held_pages(1, 256, 62)) == (8 * 194 + 62, 0, 256)


@pytest.mark.parametrize(("profile", "tokens"), [("vllm", 16), ("sglang", 1), ("tensorrt-llm", 32)])
def test_the_cache_has_the_common_beginning_once(profile, tokens):
    """A block of 16 tokens of Llama 2 7B is 8 MiB; of Llama 3.1 8B 2 MiB, as in vLLM's blog of 2026-01-08."""
    fields = {"profile": profile, "weights": "bf16", "batch": 4, "context_length": 2048}
    shared = estimate_memory(llama(), Inference(common_prefix=1024, **fields)).term("kv_cache")
    whole = estimate_memory(llama(), Inference(**fields)).term("kv_cache")
    token = 2 * 32 * 4096 * 2
    assert whole.bytes == 4 * 2048 * token
    assert shared.bytes == (4 * 1024 + 1024) * token
    assert shared.formula == "(B × (p − s) + s) × g"
    assert {symbol.name: symbol.value for symbol in shared.symbols}["s"] == 1024 // tokens


def test_more_sequences_fit_that_share_blocks():
    pool = PagePool(page_bytes=10, pages=8, tokens=128, other_bytes=0, utilization=1.0)
    assert pool.capacity(880).sequences == 11
    assert pool._replace(shared_pages=4).capacity(880).sequences == (88 - 4) / (8 - 4)
    assert pool._replace(shared_pages=4).capacity(880).tokens == pool.capacity(880).tokens == 88 * 16
    assert pool._replace(shared_pages=4).capacity(30).sequences == 0


@pytest.mark.parametrize("profile", ["vllm", "sglang", "tensorrt-llm"])
def test_the_cache_in_ram_is_ram_of_all_cards_of_a_replica(profile):
    fields = {"profile": profile, "weights": "bf16", "cache_in_ram_bytes": 64 * 2**30}
    assert estimate_memory(llama(), Inference(**fields)).host_bytes == 64 * 2**30
    split = Inference(**fields, parallel={"tensor": 2})
    assert cache_in_ram(split) == 32 * 2**30
    assert estimate_memory(llama(), split, count=2).host_bytes == 64 * 2**30
    assert cache_in_ram(Inference(profile=profile)) is None
