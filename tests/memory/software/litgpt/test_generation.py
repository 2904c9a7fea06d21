"""Generating with LitGPT, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.parallel.ranks import timelines_by_stage
from planner.memory.software import serving_memory
from planner.memory.software.litgpt.parameters import head_size_elements, litgpt_weights
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

NETWORK = small_llama(num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, hidden_size=64)


def asked(**how):
    return Inference.model_validate(
        {"profile": "litgpt", "weights": "bf16", "prompt_length": 64, "context_length": 256} | how
    )


def generation(cards=1, network=NETWORK, **how):
    return fullest_timeline(network, with_defaults(asked(**how), network, cards))


def term(timeline, phase, name):
    return max(sum(t.bytes for t in m.terms if t.name == name) for m in timeline.snapshots if m.name == phase)


def test_the_cache_holds_the_whole_length_for_every_query_head():
    assert term(generation(), "decode", "kv_cache") == 4 * 256 * 2 * 8 * 8 * 2
    shared = small_llama(num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=1, hidden_size=64)
    assert term(generation(network=shared), "decode", "kv_cache") == 4 * 256 * 2 * 1 * 8 * 2


def test_the_mask_is_a_table_of_all_pairs_and_the_rows_of_the_prompt():
    assert term(generation(), "decode", "buffers") == 256 * 256
    assert term(generation(), "prefill", "buffers") == 256 * 256 + 256 * 64


def test_the_head_reads_the_whole_prompt_and_its_logits_become_fp32():
    width = NETWORK.vocabulary
    assert term(generation(), "prefill", "logits") == 64 * width * (2 + 4)
    assert term(generation(weights="fp32", compute="fp32"), "prefill", "logits") == 64 * width * 4


def test_quantized_matrices_are_unpacked_for_several_tokens():
    quantized = generation(weights="nf4")
    assert term(quantized, "prefill", "temporaries") == 4 * head_size_elements(NETWORK)
    assert term(quantized, "decode", "temporaries") == 0
    assert term(generation(weights="nf4", prompt_length=1), "prefill", "temporaries") == 0


def test_only_blocks_leave_the_first_card():
    workload = with_defaults(asked(parallel=Parallel(pipeline=2)), NETWORK, 2)
    (first, held), (_, rest) = timelines_by_stage(NETWORK, workload)
    tables = 2 * 2 * head_size_elements(NETWORK) + 2 * NETWORK.hidden
    assert held.snapshots[0].total - rest.snapshots[0].total == tables
    assert first.stage.layers == 2
    assert term(rest, "prefill", "logits") == 0
    quantized = with_defaults(asked(parallel=Parallel(pipeline=2), weights="nf4"), NETWORK, 2)
    assert term(timelines_by_stage(NETWORK, quantized)[1][1], "prefill", "logits") == 0


def test_the_last_card_has_what_is_left():
    workload = with_defaults(asked(parallel=Parallel(pipeline=3)), NETWORK, 3)
    assert serving_memory("litgpt", NETWORK).split_layers(NETWORK, workload) == (1, 2, 1)
    deep = small_llama(num_hidden_layers=8)
    assert serving_memory("litgpt", deep).split_layers(deep, workload) == (3, 3, 2)


def test_every_card_of_a_tensor_parallel_group_holds_embedding_and_head():
    shared = generation(2, parallel=Parallel(tensor=2))
    blocks = litgpt_weights(NETWORK, "bf16", 2).bytes - 4 * head_size_elements(NETWORK)
    halves = shared.snapshots[0].total - 4 * head_size_elements(NETWORK)
    assert blocks / 2 < halves < blocks / 2 * 1.02
    # Two groups of keys and values on two cards are one each, which all heads share.
    assert term(shared, "decode", "kv_cache") == 4 * 256 * 2 * 1 * 8 * 2
    four_groups = small_llama(num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, hidden_size=64)
    several = generation(2, four_groups, parallel=Parallel(tensor=2))
    assert term(several, "decode", "kv_cache") == 4 * 256 * 2 * 4 * 8 * 2


def test_other_sequences_wait():
    one, many = (estimate_memory(NETWORK, asked(batch=batch)) for batch in (1, 3))
    assert one.total_bytes == many.total_bytes
    assert "LitGPT generates one sequence at a time: 2 of 3 wait." in many.notes
    assert not any("wait" in note for note in one.notes)


def test_experts_and_other_formats_are_refused():
    with pytest.raises(SpecError, match="only decoders with attention and dense"):
        estimate_memory(other("deepseek_v3", DEEPSEEK), asked())
    with pytest.raises(SpecError, match="LitGPT does not run GPTQ"):
        estimate_memory(NETWORK, asked(weights="gptq4-128"))
    with pytest.raises(SpecError, match="LitGPT does not run Q4_K_M"):
        estimate_memory(NETWORK, asked(weights="Q4_K_M"))
