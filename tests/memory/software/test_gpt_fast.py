"""gpt-fast's caches, masks and attention, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.software import serving_memory
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

NETWORK = small_llama(
    num_hidden_layers=4,
    hidden_size=256,
    num_attention_heads=8,
    num_key_value_heads=2,
    max_position_embeddings=512,
)


def asked(**how):
    return Inference.model_validate(
        {"profile": "gpt-fast", "weights": "bf16", "prompt_length": 6, "context_length": 205} | how
    )


def generation(**how):
    return fullest_timeline(NETWORK, with_defaults(asked(**how), NETWORK, 1))


def held(timeline, phase, name):
    return max(sum(t.bytes for t in m.terms if t.name == name) for m in timeline.snapshots if m.name == phase)


def test_the_length_of_the_cache_is_a_multiple_of_8():
    assert held(generation(), "decode", "kv_cache") == 4 * 208 * 2 * 64 * 2


def test_a_cache_in_int8_has_a_scale_for_each_token_and_head():
    quantized = generation(engine={"kv_cache_quantization": True})
    assert held(quantized, "decode", "kv_cache") == 4 * 208 * 2 * (64 + 2 * 2)
    more = held(quantized, "decode", "temporaries") - held(generation(), "decode", "temporaries")
    assert more == 208 * 2 * 64 * 2


def test_two_masks_exist_while_the_table_is_made():
    positions = 512 * 32 * 2
    assert held(generation(), "decode", "buffers") == 208**2 + positions
    assert held(generation(), "load", "buffers") == 2 * 208**2 + positions
    assert held(generation(engine={"linear_causal_mask": True}), "decode", "buffers") == 208 + positions


def test_attention_copies_the_whole_cache_for_each_head_to_fp32():
    assert held(generation(), "decode", "temporaries") == 208 * 256 * (2 * 2 + 2 * 4 + 4)
    plain = generation(weights="fp32", compute="fp32", kv_cache="fp32")
    assert held(plain, "decode", "temporaries") == 208 * 256 * (2 * 4 + 4)


def test_the_head_reads_the_whole_prompt():
    assert held(generation(), "prefill", "logits") == 6 * NETWORK.vocabulary * 2


def test_other_sequences_wait():
    one, many = (estimate_memory(NETWORK, asked(batch=batch)) for batch in (1, 3))
    assert one.total_bytes == many.total_bytes
    assert "gpt-fast generates one sequence at a time: 2 of 3 wait." in many.notes
    assert not any("wait" in note for note in one.notes)


def test_stages_are_even_and_only_the_last_has_logits():
    workload = with_defaults(asked(parallel=Parallel(pipeline=2)), NETWORK, 2)
    assert serving_memory("gpt-fast", NETWORK).split_layers(NETWORK, workload) == (2, 2)
    assert estimate_memory(NETWORK, workload, count=2).total_bytes < estimate_memory(NETWORK, asked()).total_bytes


def test_networks_without_plain_attention_are_refused():
    with pytest.raises(SpecError, match="gpt-fast estimates support only decoders"):
        estimate_memory(other("deepseek_v3", DEEPSEEK), asked())


def test_weights_are_loaded_in_the_format_that_is_asked_for():
    sizes = [estimate_memory(NETWORK, asked(weights=name)).term("weights").bytes for name in ("bf16", "fp32")]
    assert sizes[1] == 2 * sizes[0]
