"""Caches, states, scratch and logits of inference, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, GPT2, LLAMA, MIXTRAL, bundled, llama, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.inference.kv_cache import kv_cache_term, state_term
from planner.memory.inference.scratch import DecodeCopy, largest_decode_copy, scratch_bytes
from planner.memory.inference.timeline import inference_timeline
from planner.memory.precision import Precision
from planner.models.architecture import StateMixer
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

BF16 = Precision(2, 2, 2, autocast=False)
FP32 = Precision(4, 4, 4, autocast=False)
T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 100}
BERT = {
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def cache(model, tokens=1, kv_format="bf16", batch=1, encoder_tokens=0, prefilling=False) -> int:
    term = kv_cache_term(model, batch, tokens, encoder_tokens, kv_format, prefilling=prefilling)
    return 0 if term is None else term.bytes


def alive(model, phase, explanation="", **changes) -> dict[str, int]:
    found = inference_timeline(model, with_defaults(Inference(**changes), model, 1))
    snapshot = next(m for m in found.snapshots if m.name == phase and explanation in m.explanation)
    return {term.name: term.bytes for term in snapshot.terms}


def test_llama_31_8b_caches_131072_bytes_a_token():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    assert cache(model) == 2 * 32 * 8 * 128 * 2 == 131_072
    assert cache(model, tokens=4096, batch=16) == 16 * 4096 * 131_072


def test_grouped_heads_share_a_cache():
    # 32 heads or 8: a quarter. Calculators that ignore the ratio are off by four.
    assert cache(llama()) == 4 * cache(llama(num_key_value_heads=8))


def test_the_size_of_a_head_need_not_be_the_width_over_heads():
    model = other("qwen3", LLAMA, hidden_size=1024, head_dim=128, num_attention_heads=16, num_key_value_heads=8)
    assert cache(model) == 2 * 32 * 8 * 128 * 2


def test_latent_attention_caches_576_elements_a_layer():
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    assert cache(deepseek) == 61 * (512 + 64) * 2


@pytest.mark.parametrize(("kv_format", "bits"), [("fp32", 32), ("fp16", 16), ("fp8", 8), ("q8_0", 8.5), ("q4_0", 4.5)])
def test_formats_of_the_cache(kv_format, bits):
    assert cache(llama(), 100, kv_format) == 100 * 2 * 32 * 4096 * bits / 8


def test_a_sliding_layer_keeps_its_window_once_it_decodes():
    mistral = other("mistral", LLAMA, num_key_value_heads=8, sliding_window=1024)
    per_token = 2 * 32 * 8 * 128 * 2
    assert cache(mistral, 1000) == 1000 * per_token
    assert cache(mistral, 100_000) == 1024 * per_token
    assert cache(mistral, 100_000, prefilling=True) == 100_000 * per_token


def test_layers_of_two_kinds_are_written_apart():
    gemma = bundled().models.model("google/gemma-3-4b-it")  # 34 layers of which every sixth is full, 4 × 256 heads
    term = kv_cache_term(gemma, 1, 32_768, 0, "bf16")
    full, sliding = 5, 29
    assert term.bytes == 2 * 4 * 256 * 2 * (full * 32_768 + sliding * 1024)
    assert {part.bytes for part in term.parts} == {2 * 4 * 256 * 2 * n for n in (full * 32_768, sliding * 1024)}


def test_a_decoder_keeps_the_encoders_length_for_cross_attention():
    t5 = other("t5", T5)
    assert cache(t5, tokens=10, encoder_tokens=300) == 2 * (4 * 16) * 2 * 2 * (10 + 300)


def test_shared_caches_are_kept_once():
    model = small_llama()
    group = model.main.groups[0]
    sharing = group.layer.evolve(mixer=group.layer.mixer.evolve(kv_shared=True))
    stack = model.main.evolve(groups=(group, group.evolve(layer=sharing)))
    assert cache(model.evolve(stacks=(stack,)), 7) == cache(model, 7)


def test_encoders_keep_no_cache_and_decode_nothing():
    bert = other("bert", BERT)
    assert kv_cache_term(bert, 1, 128, 128, "bf16") is None
    phases = estimate_memory(bert, Inference()).phases
    assert [phase.name for phase in phases] == ["load", "prefill"]


def test_states_do_not_grow_with_the_context():
    model = small_llama()
    assert state_term(model, 4) is None
    mixer = StateMixer(name="mamba", conv_state_elements=3 * 128, recurrent_state_elements=16 * 128, inner_dim=128)
    group = model.main.groups[0]
    hybrid = group.layer.evolve(second_mixer=mixer)
    stack = model.main.evolve(groups=(group.evolve(layer=hybrid),))
    both = model.evolve(stacks=(stack,))
    assert state_term(both, 4).bytes == 4 * 2 * (3 * 128 + 16 * 128) * 4
    for context in (10, 1000):
        shares = alive(both, "decode", "whole context", context_length=context, prompt_length=5)
        assert shares["state"] == 2 * (3 * 128 + 16 * 128) * 4


def test_a_layer_of_states_alone_has_scratch_but_no_cache():
    model = small_llama()
    mixer = StateMixer(name="mamba2", conv_state_elements=1, recurrent_state_elements=1, inner_dim=1000)
    group = model.main.groups[0]
    bare = group.layer.evolve(mixer=mixer, feed_forward=None)
    only = model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=bare),)),))
    assert kv_cache_term(only, 1, 10, 0, "bf16") is None
    assert scratch_bytes(only, 2, 10, BF16, "sdpa") == 2 * 10 * (3 * 64 + 4 * 1000) * 2
    assert largest_decode_copy(only, 10, BF16, "sdpa") == DecodeCopy(0, 0)


@pytest.mark.parametrize(("kept", "tokens"), [("last", 1), ("all", 500)])
def test_logits_of_the_last_token_or_of_the_whole_prompt(kept, tokens):
    shares = alive(llama(), "prefill", "logits", batch=3, context_length=500, prompt_logits=kept)
    assert shares["logits"] == 3 * tokens * 32_000 * (2 + 4)  # as computed in bf16, and the fp32 copy


def test_fp32_logits_are_not_copied():
    shares = alive(llama(), "prefill", "logits", compute="fp32", context_length=500)
    assert shares["logits"] == 32_000 * 4


def test_scratch_is_of_the_widest_block_and_does_not_add_up_over_layers():
    # 4h beside gate, up and their product: (4 · 4096 + 3 · 11008) · 2 B a token
    shallow, deep = llama(num_hidden_layers=2), llama(num_hidden_layers=80)
    assert scratch_bytes(shallow, 2, 100, BF16, "sdpa") == 2 * 100 * (4 * 4096 + 3 * 11_008) * 2
    assert scratch_bytes(deep, 2, 100, BF16, "sdpa") == scratch_bytes(shallow, 2, 100, BF16, "sdpa")


def test_scratch_of_an_activation_that_python_computes():
    gpt2 = other("gpt2", GPT2)
    assert scratch_bytes(gpt2, 1, 10, BF16, "sdpa") == 10 * (4 * 768 + 4 * 3072) * 2


def test_scratch_of_one_projection_for_gate_and_up():
    phi3 = other("phi3", LLAMA)
    assert scratch_bytes(phi3, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 4 * 11_008) * 2


def test_scratch_of_experts():
    # each of two visits: its input and gate and up and two products, 4i + h
    mixtral = other("mixtral", MIXTRAL)
    assert scratch_bytes(mixtral, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 2 * (4 * 14_336 + 4096)) * 2


def test_scratch_of_experts_behind_an_fp32_router():
    # each of four visits: its input and output in bf16, and twice the weighted output in fp32
    deepseek = other("deepseek_v3", DEEPSEEK)
    visits = 4 * 2 * 7168 * (2 + 4)
    assert scratch_bytes(deepseek, 1, 10, BF16, "sdpa") == max(
        10 * (4 * 7168 * 2 + visits), 10 * 2 * (3 * 7168 + 3 * 128 * 192 + 128 * 256 + 128 * 128 + 2 * 576)
    )


def test_eager_scores_grow_with_the_square_of_the_prompt():
    # 3h beside queries and scores: their fp32 copy and softmax beside them, 10 B for each of a · s, and the mask b · s²
    model = llama()
    per_token = 2 * (3 * 4096 + 4096) + 32 * 2000 * 10
    assert scratch_bytes(model, 2, 2000, BF16, "eager") == 2 * 2000 * per_token + 2 * 2000 * 2000 * 2


def test_repeated_heads_of_eager_attention():
    grouped, full = llama(num_key_value_heads=8), llama()
    more = scratch_bytes(grouped, 1, 2000, BF16, "eager") - scratch_bytes(full, 1, 2000, BF16, "eager")
    assert more == 2000 * 2 * 2 * 4096
    assert largest_decode_copy(grouped, 100, BF16, "eager") == DecodeCopy(100, 8 * 128 + 2 * 4096)


def test_groups_in_fp32_are_answered_by_matrix_products():
    # 3h and queries; scaled queries, keys and values for each head; scores, softmax and what computes it, in fp32, with
    # a byte that says which are masked; and the causal mask, seen or not and added. In decoding 3q: keys, values, and
    # scaled keys.
    grouped = llama(num_key_value_heads=8)
    per_token = 4 * (3 * 4096 + 4096 + 3 * 4096) + 32 * 2000 * 13
    assert scratch_bytes(grouped, 2, 2000, FP32, "sdpa") == 2 * 2000 * per_token + 5 * 2000 * 2000
    assert largest_decode_copy(grouped, 100, FP32, "sdpa") == DecodeCopy(100, 3 * 4096)


def test_one_key_head_that_nobody_told_of_is_answered_by_matrix_products():
    falcon = other("falcon", LLAMA)
    kv, q = 128, 4096
    assert largest_decode_copy(falcon, 100, BF16, "sdpa") == DecodeCopy(100, 2 * (3 * kv + q))
    assert largest_decode_copy(falcon, 100, BF16, "eager") == DecodeCopy(100, q)


def test_a_short_window_needs_a_mask_in_prefill():
    # 10,000 tokens: the rotation needs 4q; in the kernel there are 2q and the mask, 20 KB a token; it is held as true
    # or false for each pair throughout.
    sizes = LLAMA | {"intermediate_size": 64}
    masked = other("mistral", sizes, sliding_window=256)
    free = other("mistral", sizes, sliding_window=16_384)
    s = 10_000
    assert scratch_bytes(free, 1, s, BF16, "sdpa") == s * 2 * (3 * 4096 + 4 * 4096)
    assert scratch_bytes(masked, 1, s, BF16, "sdpa") == s * 2 * (3 * 4096 + 2 * 4096 + s) + s * s
    assert scratch_bytes(masked, 1, s, BF16, "flash") == scratch_bytes(free, 1, s, BF16, "flash")


def test_decoding_copies_one_layers_keys():
    assert largest_decode_copy(llama(num_key_value_heads=8), 1000, BF16, "sdpa") == DecodeCopy(1000, 8 * 128)
    assert largest_decode_copy(other("mistral", LLAMA, sliding_window=64), 1000, BF16, "sdpa") == DecodeCopy(64, 4096)
    wide = llama(head_dim=320)
    assert largest_decode_copy(wide, 10, BF16, "sdpa") == DecodeCopy(10, 32 * 320)
    repeated = largest_decode_copy(llama(head_dim=320, num_key_value_heads=8), 10, BF16, "sdpa")
    assert repeated == DecodeCopy(10, 8 * 320 + 2 * 32 * 320)


def test_decoding_expands_the_latent_of_every_cached_token():
    copied = largest_decode_copy(other("deepseek_v3", DEEPSEEK), 1000, BF16, "sdpa")
    assert copied == DecodeCopy(1000, 512 + 128 * (128 + 128) + 128 * (128 + 64))
    assert copied.total == 1000 * 57_856


def test_the_first_token_finds_the_prompt_in_sliding_layers_too():
    mistral = other("mistral", LLAMA, sliding_window=64)
    shares = alive(mistral, "decode", "first token", context_length=1001, prompt_length=1000)
    assert shares["kv_cache"] == 1000 * 2 * 32 * 4096 * 2


def test_images_are_not_counted_and_a_note_says_so():
    model = bundled().models.model("meta-llama/Llama-3.2-11B-Vision")
    blind = model.evolve(stacks=model.stacks[1:])
    assert model.stacks[0].name == "vision"
    for workload in (Inference(), Training()):
        result, without = (estimate_memory(network, workload) for network in (model, blind))
        assert any("vision tower" in note for note in result.notes)
        # The tower's layers work on nothing; its parameters are there.
        assert result.term("activations") == without.term("activations")
        assert result.term("weights").bytes - without.term("weights").bytes >= 2 * model.stacks[0].parameters


def test_a_cache_that_grows_leaves_blocks_behind_that_nvidia_smi_shows():
    def told(**how) -> bool:
        return any("nvidia-smi may show" in note for note in estimate_memory(small_llama(), Inference(**how)).notes)

    assert told(prompt_length=100, context_length=1000)
    assert not told(prompt_length=1000, context_length=1000)
    assert not told(prompt_length=1000, context_length=1000, profile="vllm")


def test_notes_say_what_another_engine_would_add():
    notes = estimate_memory(small_llama(), Inference(kv_cache="q8_0", context_length=9000)).notes
    assert any("quantized KV cache" in note for note in notes)
    assert any("9,000 tokens exceed the model's maximum context length of 4,096" in note for note in notes)
