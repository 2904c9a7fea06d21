"""Bytes of a token and of a sequence in an engine's cache, by hand."""

from small_models import DEEPSEEK, llama, other
from vllm_cases import with_states

from planner.memory.inference.engine import (
    CachedBytes,
    engine_cache_bytes,
    engine_pages_term,
    latent_token_bytes,
    waiting_notes,
)


def test_a_token_takes_keys_and_values_of_every_layer():
    assert engine_cache_bytes(llama(), "bf16", 2) == CachedBytes(32 * 2 * 4096 * 2, 0, 0, 0)
    assert engine_cache_bytes(llama(), "fp8", 2).token == 32 * 2 * 4096
    assert engine_cache_bytes(other("deepseek_v3", DEEPSEEK), "bf16", 2).token == 4 * 576 * 2


def test_latent_attention_caches_an_index_only_where_it_is_sparse():
    mixer = other("deepseek_v3", DEEPSEEK).main.groups[0].layer.mixer
    assert latent_token_bytes(mixer, "bf16") == (576 * 2,)
    # 128 elements of the index in fp8, with one fp32 scale.
    assert latent_token_bytes(mixer.evolve(indexer_dim=128), "bf16") == (576 * 2, 128 + 4)


def test_windows_and_states_are_counted_apart_and_shared_caches_once():
    model = llama()
    group = model.main.groups[0]
    windowed = group.layer.evolve(mixer=group.layer.mixer.evolve(window=128))
    shared = group.layer.evolve(mixer=group.layer.mixer.evolve(kv_shared=True))
    groups = tuple(
        group.evolve(layer=layer, count=count, places=tuple(range(start, start + count)))
        for layer, start, count in ((group.layer, 0, 10), (windowed, 10, 12), (shared, 22, 10))
    )
    mixed = model.evolve(stacks=(model.main.evolve(groups=groups),))
    assert engine_cache_bytes(mixed, "bf16", 2) == CachedBytes(10 * 16_384, 12 * 16_384, 128, 0)
    states = with_states(3, 3, conv_state_elements=10, recurrent_state_elements=100)
    assert engine_cache_bytes(states, "bf16", 2) == CachedBytes(0, 0, 0, 3 * (10 * 2 + 100 * 4))


def test_an_encoder_caches_nothing():
    assert engine_cache_bytes(llama().evolve(kind="encoder"), "bf16", 2) == CachedBytes(0, 0, 0, 0)


def test_pages_of_a_common_beginning_are_in_the_formula_only_where_there_are_some():
    alone = engine_pages_term("kv_cache", 3, 10, 100, "max_num_seqs", "a source")
    beside = engine_pages_term("kv_cache", 3, 10, 100, "max_num_seqs", "a source", shared=4)
    assert (alone.formula, alone.bytes, beside.formula, beside.bytes) == (
        "B × p × g", 3_000, "(B × (p − s) + s) × g", (3 * 6 + 4) * 100,
    )  # fmt: skip


def test_only_requests_beyond_those_that_run_are_said_to_wait():
    assert waiting_notes(8, 8) == ()
    assert waiting_notes(12, 8) == ("4 of 12 requests wait because no more than 8 run at the same time.",)
