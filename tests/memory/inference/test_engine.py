"""Caches, steps, served adapters and drafts of engines, by hand, and a published number of parameters beside it."""

import pytest
from small_models import DEEPSEEK, MIXTRAL, llama, other, small_llama
from vllm_cases import with_states

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, resolve_workload
from planner.memory.inference.engine import (
    CachedBytes,
    cache_in_ram,
    cached_groups,
    draft_term,
    engine_cache_bytes,
    engine_pages_term,
    engine_step_term,
    held_pages,
    latent_token_bytes,
    served_adapters_term,
    shared_pages,
    verified_rows,
    waiting_notes,
)
from planner.memory.parallel.ranks import ranks
from planner.memory.parallel.tensor import tensor_share
from planner.memory.phases import PagePool
from planner.models.drafts import with_draft
from planner.workload.software.vllm import reserved_rank
from planner.workload.workload import Inference


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


def test_a_step_holds_the_widest_layer():
    assert engine_step_term(llama(), 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    # Attention is the widest: queries, keys, values and its result, of 4,096 elements each, beside 3 · 1,000.
    narrow = llama(intermediate_size=1_000)
    assert engine_step_term(narrow, 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 4 * 4096)
    experts = 2 * (2 * 14_336 + 14_336) + 4096 + 8
    assert engine_step_term(other("mixtral", MIXTRAL), 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + experts)
    latent = 2 * 128 * 192 + 128 * 256 + 128 * 128 + 576
    assert engine_step_term(other("deepseek_v3", DEEPSEEK), 10, 2, "max_num_tokens").bytes == 10 * 2 * (
        2 * 7168 + latent
    )
    states = with_states(1, 1, conv_state_elements=1, recurrent_state_elements=1)
    assert engine_step_term(states, 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    group = states.main.groups[0]
    bare = group.evolve(layer=group.layer.evolve(feed_forward=None))
    assert engine_step_term(
        states.evolve(stacks=(states.main.evolve(groups=(bare,)),)), 10, 2, "max_num_tokens"
    ).bytes == 20 * (8192 + 256)


PROJECTIONS = 4 * (4096 + 4096) + 3 * (4096 + 11_008)
"""Inputs and outputs of a layer of Llama 2 7B: queries, keys, values, output, gate, up and down."""


def slots(profile="vllm", architecture=None, rank=16, element=2, embeds=False, parallel=None, **adapters):
    workload = Inference(profile=profile, adapters=adapters, parallel=parallel or {})
    return served_adapters_term(architecture or llama(), workload, rank, element, "a source", embeds=embeds)


def test_a_slot_holds_both_matrices_of_each_layer():
    assert slots(slots=3).bytes == 3 * 16 * 2 * 32 * PROJECTIONS
    assert slots(slots=0) is None


def test_adapters_of_queries_and_values_have_the_published_parameters():
    """PEFT, print_trainable_parameters for Llama 2 7B, rank 8, q_proj and v_proj: 4,194,304 of 6,742,609,920."""
    assert slots(rank=8, element=1, slots=1, targets=("q_proj", "v_proj")).bytes == 4_194_304


def test_vllm_also_prepares_embedding_and_head_and_rounds_up_the_rank():
    vocabulary = 2 * (32_000 + 4096)
    assert slots(slots=1, embeds=True).bytes == 16 * 2 * (32 * PROJECTIONS + vocabulary)
    assert slots(slots=1, embeds=True, targets=("lm_head",)).bytes == 16 * 2 * (32_000 + 4096)
    assert [reserved_rank(rank) for rank in (1, 5, 16, 17, 300, 600)] == [1, 8, 16, 32, 320, 600]
    found = estimate_memory(llama(), Inference(profile="vllm", adapters={"slots": 2, "rank": 12}))
    assert found.term("adapters").bytes == 2 * 16 * 2 * (32 * PROJECTIONS + vocabulary)


def test_two_cards_divide_outputs_of_some_matrices_and_inputs_of_others():
    half = tensor_share(llama(), 2)
    across = 3 * (4096 + 2048) + 2 * (4096 + 5504)  # queries, keys, values, gate and up
    along = (2048 + 4096) + (5504 + 4096)  # output and down
    term = slots(architecture=half, embeds=True, parallel={"tensor": 2}, slots=1)
    assert term.bytes == 16 * 2 * (32 * (across + along) + 2 * (32_000 + 4096))


def test_each_expert_has_an_adapter_and_a_fused_projection_two_inputs():
    sizes = {
        "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    found = slots(architecture=other("mixtral", sizes), rank=1, element=1, slots=1).bytes
    assert found == 4 * (64 + 64) + 4 * 3 * (64 + 32)


@pytest.mark.parametrize(("profile", "element"), [("sglang", 2), ("llama.cpp", 4)])
def test_other_engines_reserve_the_rank_itself(profile, element):
    weights = {"weights": "Q8_0"} if profile == "llama.cpp" else {}
    found = estimate_memory(llama(), Inference(profile=profile, adapters={"slots": 2, "rank": 12}, **weights))
    assert found.term("adapters").bytes == 2 * 12 * element * 32 * PROJECTIONS


EAGLE = {"method": "eagle", "tokens": 3}
HEAD_PARAMETERS = 4 * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096 + 2 * 4096**2


def held(profile, architecture=None, **fields):
    workload = Inference(profile=profile, batch=2, context_length=1024, **fields)
    return estimate_memory(architecture or llama(), workload)


def of_term(result, name):
    return next((share.bytes for share in result.peak.shares if share.name == name), 0)


@pytest.mark.parametrize("profile", ["vllm", "sglang"])
def test_an_eagle_head_adds_its_weights_and_one_layer_to_the_cache(profile):
    plain, drafted = held(profile), held(profile, speculation=EAGLE)
    assert of_term(drafted, "draft") == 2 * HEAD_PARAMETERS
    assert of_term(plain, "draft") == 0
    token = 2 * 4096 * 2  # keys and values of one layer in 16 bits
    assert of_term(drafted, "kv_cache") - of_term(plain, "kv_cache") == 2 * 1024 * token


def test_a_smaller_model_adds_its_own_layers_to_each_token():
    target = llama(vocab_size=1000)
    drafted = with_draft(target, "model", small_llama())
    small = small_llama().main.groups[0].layer.mixer
    assert engine_cache_bytes(drafted, "bf16", 2).token == 32 * 2 * 4096 * 2 + 2 * 2 * small.kv_dim * 2
    assert cached_groups(target) == target.main.groups


def test_tensorrt_counts_the_head_before_its_cache():
    workload = {"speculation": {"method": "eagle3"}, "engine": {"max_batch_size": 8}}
    drafted = held("tensorrt-llm", weights="bf16", **workload)
    layer = (3 * 2 + 1) * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096
    assert of_term(drafted, "draft") == 2 * (layer + 3 * 4096**2 + 32_000 * 4096)


def test_vllm_checks_more_logits_than_its_profile_samples():
    """Few sequences a step: 256 · (k + 1) rows of 32,000 logits in 16 bits, and a copy of at most 1 GiB in fp32."""
    workload = Inference(profile="vllm", batch=256, context_length=256, speculation={**EAGLE, "tokens": 15})
    drafted = estimate_memory(llama(), workload)
    rows = 256 * 16
    logits = next(share.bytes for phase in drafted.phases for share in phase.shares if share.name == "logits")
    assert logits == rows * 32_000 * 2 + min(rows * 32_000 * 4, 2**30)
    encoder = Inference(profile="vllm", batch=2, context_length=256)
    assert verified_rows(encoder, 5) == 5


def test_llama_cpp_gives_the_draft_a_context_of_its_own():
    target, small = llama(vocab_size=1000), small_llama()
    fields = {"weights": "Q8_0", "context_length": 512, "engine": {"slots": 1}, "kv_cache": "q8_0"}
    own = estimate_memory(small, Inference(profile="llama.cpp", **{**fields, "kv_cache": "fp16"}))
    drafted = estimate_memory(
        with_draft(target, "model", small),
        Inference(profile="llama.cpp", **fields, speculation={"model": "small", "tokens": 3}),
    )
    assert of_term(drafted, "draft") == sum(of_term(own, name) for name in ("weights", "kv_cache", "activations"))
    plain = estimate_memory(target, Inference(profile="llama.cpp", **fields))
    assert drafted.host_bytes is not None
    assert plain.host_bytes is not None
    assert drafted.host_bytes > plain.host_bytes


def test_a_prediction_layer_has_the_format_of_the_model():
    model = other("deepseek_v3", DEEPSEEK, num_nextn_predict_layers=1)
    resolved = resolve_workload(model, Inference(profile="vllm", weights="fp8", speculation={"method": "mtp"}), 1)
    found = draft_term(*resolved)
    assert found is not None
    assert found.symbols[-1].meaning.endswith("weights in fp8")
    assert found.bytes < 1.1 * resolved.architecture.draft.parameters


def test_cards_divide_a_draft_if_its_heads_allow_it():
    drafted = with_draft(llama(), "eagle")
    halves = tensor_share(drafted, 2).draft
    assert halves.main.groups[0].layer.mixer.heads == 16
    assert tensor_share(drafted, 3).draft is drafted.draft


def test_the_last_stage_of_a_pipeline_drafts():
    workload = Inference(profile="vllm", speculation=EAGLE, parallel={"pipeline": 2})
    resolved = resolve_workload(llama(), workload, 2)
    stages = [rank.stage.architecture.draft for rank in ranks(*resolved)]
    assert stages[0] is None
    assert stages[1].parameters == HEAD_PARAMETERS


def test_the_network_of_a_draft_model_has_to_be_given():
    with pytest.raises(SpecError, match="is not known here"):
        resolve_workload(llama(), Inference(profile="vllm", speculation={"model": "some"}), 1)
