"""The KV cache and recurrent states, by hand."""

import pytest
from inference_terms import alive
from small_models import LLAMA, bundled, llama, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.inference.kv_cache import kv_cache_term, state_term
from planner.models.architecture import StateMixer
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

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


def test_whisper_reads_the_1500_frames_of_30_seconds_whatever_the_prompt():
    # Small: 12 layers with 12 heads of 64, keys and values in bf16; 448 tokens of text at most.
    model = bundled().models.model("openai/whisper-small")
    frames, token = 12 * 1500 * 2 * 768 * 2, 12 * 2 * 768 * 2
    for asked in (None, 448):
        workload = with_defaults(Inference(prompt_length=asked, context_length=448), model, 1)
        assert workload.prompt_length == 1500
        assert cache(model, 448, encoder_tokens=workload.prompt_length) == frames + 448 * token
        assert next(one.bytes for one in estimate_memory(model, workload).terms if one.name == "kv_cache") >= frames


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
