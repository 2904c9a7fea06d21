"""AutoAWQ's fused layers, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, other, small_llama

from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.parallel.ranks import timelines_by_stage
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

NETWORK = small_llama(
    num_hidden_layers=4, hidden_size=256, intermediate_size=512, num_attention_heads=8, num_key_value_heads=2
)
AWQ = SCHEMES["awq4-128"]
MIXTRAL = {
    "model_type": "mixtral",
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}


def asked(**how):
    return Inference.model_validate(
        {"profile": "autoawq", "compute": "fp16", "kv_cache": "fp16", "prompt_length": 64, "context_length": 128} | how
    )


def generation(network=NETWORK, **how):
    return fullest_timeline(network, with_defaults(asked(**how), network, 1))


def terms(timeline, explained):
    snapshot = next(one for one in timeline.snapshots if explained in one.explanation)
    return {term.name: term.bytes for term in snapshot.written()}


def test_the_weights_are_in_awq_unless_told():
    assert with_defaults(asked(), NETWORK, 1).weights == "awq4-128"
    notes = estimate_memory(NETWORK, asked()).notes
    assert "AutoAWQ runs weights in AWQ 4-bit, groups of 128: convert the checkpoint first." in notes
    with pytest.raises(SpecError, match="AutoAWQ does not run BF16"):
        estimate_memory(NETWORK, asked(weights="bf16"))
    with pytest.raises(SpecError, match="AutoAWQ does not run BF16"):
        estimate_memory(NETWORK, asked(weights="stored"))


def test_fused_projections_exist_beside_the_single_ones_until_all_layers_are_done():
    single = sum(AWQ.tensor_bytes((rows, 256)) for rows in (256, 64, 64))
    assert terms(generation(), "fused")["temporaries"] == 4 * single


def test_the_gates_of_a_layers_experts_are_held_twice_more():
    network = other("mixtral", MIXTRAL)
    single = sum(AWQ.tensor_bytes((rows, 256)) for rows in (256, 64, 64))
    gates = 4 * AWQ.tensor_bytes((2 * 512, 256))
    assert terms(generation(network), "fused")["temporaries"] == 2 * single + 2 * gates


def test_each_layer_has_its_own_cache_and_table_of_positions():
    held = terms(generation(), "written into the cache")
    assert held["kv_cache"] == 4 * 128 * 2 * 64 * 2
    assert held["buffers"] == 4 * 128 * 32 * 8


def test_scores_are_held_in_fp16_in_fp32_and_normalized():
    width = 2 * 256 + 2 * 256 + 4 * 64 + 2 * 256
    scores = 8 * 64**2 * (2 + 4 + 4) + 2 * 64**2
    assert terms(generation(), "normalizes")["activations"] == scores + 64 * width * 2
    equal = small_llama(
        num_hidden_layers=4, hidden_size=256, intermediate_size=512, num_attention_heads=8, num_key_value_heads=8
    )
    width = 2 * 256 + 2 * 256 + 4 * 256
    assert terms(generation(equal), "normalizes")["activations"] == scores + 64 * width * 2


def test_a_product_is_computed_in_eight_parts_that_are_added():
    assert terms(generation(), "parts of a product")["activations"] == 64 * 512 * 9 * 2
    experts = terms(generation(other("mixtral", MIXTRAL)), "parts of a product")["activations"]
    assert experts == 64 * 2 * 2 * 512 * 9 * 2


def test_the_head_reads_the_whole_prompt():
    assert terms(generation(), "head reads")["logits"] == 64 * NETWORK.vocabulary * (2 + 4)


def test_layers_are_placed_as_accelerate_does():
    workload = with_defaults(asked(parallel=Parallel(pipeline=2)), NETWORK, 2)
    (first, start), (last, end) = timelines_by_stage(NETWORK, workload)
    assert first.stage.layers + last.stage.layers == 4
    assert not any("head" in one.explanation for one in start.snapshots)
    assert any("head" in one.explanation for one in end.snapshots)


def test_networks_without_plain_attention_are_refused():
    with pytest.raises(SpecError, match="AutoAWQ fuses only layers of attention"):
        estimate_memory(other("deepseek_v3", DEEPSEEK), asked())
