"""What cards hold that share a network: their buffers, their place, and which of them is fullest."""

import pytest
from deep_networks import cards, training
from small_models import MIXTRAL, bundled, llama, other, small_llama
from training_snapshots import alive, snapshots

from planner.memory.estimate import estimate_memory, estimate_on
from planner.memory.parallel.ranks import ranks
from planner.units import MIB
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

DEEP = small_llama(num_hidden_layers=8)


def held(result, phase) -> dict[str, int]:
    found = next(one for one in result.phases if one.name == phase)
    return {share.name: share.bytes for share in found.shares}


def exchanged(result) -> dict[str, int]:
    return {part.name: part.bytes for part in result.term("communication").parts}


def test_replicas_hold_their_gradients_twice_or_in_the_buckets():
    beside, within = (
        estimate_memory(llama(), training(gradient_as_bucket_view=view), count=8) for view in (False, True)
    )
    gradients = 4 * llama().parameters
    assert held(beside, "step")["communication"] - held(within, "step")["communication"] == gradients
    assert held(within, "forward")["gradients"] == gradients
    assert "gradients" not in held(beside, "forward") or held(beside, "forward")["gradients"] < gradients


def test_one_card_sends_nothing():
    assert estimate_memory(DEEP, training()).term("communication") is None
    assert estimate_memory(DEEP, Inference(), count=4).term("communication") is None


def test_tokens_are_gathered_and_handed_on():
    alone = exchanged(estimate_memory(DEEP, training(tensor=2, pipeline=2), count=4))
    sharded = exchanged(estimate_memory(DEEP, training(tensor=2, pipeline=2, sequence=True), count=4))
    stream = 256 * 64 * 2
    assert alone["input of a stage and its gradient"] == 2 * stream
    assert sharded["input of a stage and its gradient"] == stream
    assert sharded["tokens gathered from all GPUs for a block"] == stream
    assert "tokens gathered from all GPUs for a block" not in alone


def test_keys_and_values_go_round():
    found = exchanged(estimate_memory(DEEP, training(context=2), count=2))
    width = DEEP.main.groups[0].layer.mixer.kv_dim
    assert found["keys and values in transfer"] == 4 * 128 * width * 2


def test_latents_have_no_ring_of_heads():
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    found = estimate_memory(deepseek, Training(sequence_length=64, parallel=Parallel(context=2, zero=3)), count=2)
    assert exchanged(found).get("keys and values in transfer", 0) == 0


def test_the_fullest_stage_counts():
    # Layers of [1, 2, 2, 3]: tools that take them as even are a third too low.
    even, uneven = (
        estimate_memory(llama(num_hidden_layers=8), training(pipeline=4, pipeline_layers=layers), count=4)
        for layers in ((), (1, 2, 2, 3))
    )
    assert [row.layers for row in uneven.per_gpu] == [1, 2, 2, 3]
    assert uneven.fullest == 3
    assert uneven.total_bytes == uneven.per_gpu[3].total_bytes == max(row.total_bytes for row in uneven.per_gpu)
    # The head makes the last stage the fullest of even ones, too.
    assert uneven.total_bytes > even.total_bytes + 16 * llama().main.groups[0].layer.parameters


def test_only_the_last_stage_computes_the_loss():
    result = estimate_memory(llama(), training(pipeline=2), count=2)
    assert result.per_gpu[0].stage == 0
    for layers, fullest in (((7, 1), 0), ((1, 7), 1)):
        uneven = estimate_memory(DEEP, training(pipeline=2, pipeline_layers=layers), count=2)
        assert uneven.fullest == fullest
        assert ("loss" in {phase.name for phase in uneven.phases}) == (fullest == 1)


def test_replicas_that_answer_know_nothing_of_each_other():
    result = estimate_on(llama(), Inference(), cards(("h100-sxm5-80gb", 1), ("rtx-4090", 1)))
    assert result.per_gpu[0].total_bytes == pytest.approx(result.per_gpu[1].total_bytes, rel=0.1)


def test_autocast_of_shared_parameters_is_left_to_what_shares_them():
    plain = estimate_memory(llama(), training(zero=3), count=8)
    other_format = estimate_memory(llama(), Training(sequence_length=256, compute="bf16", parallel=Parallel(zero=3)))
    assert not any(term.name == "temporaries" for term in plain.terms)
    assert other_format.total_bytes > 0


def test_megatron_has_an_engine_beside_pytorch():
    found = estimate_memory(llama(), training().evolve(profile="megatron", compute="bf16"))
    assert exchanged(found) == {"workspace of Transformer Engine": 32 * 2**20}


def test_experts_of_a_group_are_a_share():
    mixtral = other("mixtral", MIXTRAL, num_hidden_layers=2)
    whole, sharded = (
        estimate_memory(mixtral, Training(sequence_length=64, parallel=Parallel(expert=e)), count=8) for e in (1, 8)
    )
    assert held(sharded, "step")["weights"] < held(whole, "step")["weights"] / 3


P = 6_738_415_616  # Llama 2 7B


def test_replicas_hold_the_gradients_twice_and_a_communicator():
    assert "communication" not in alive(snapshots(llama()), "step")
    for count, communicator in ((2, 544_000_000), (8, 688_000_000)):
        term = next(t for t in snapshots(llama(), count=count).snapshots[-1].terms if t.name == "communication")
        assert term.bytes == 2 * P + communicator
        assert (term.low_bytes, term.high_bytes) == (2 * P, 2 * P + communicator + 512 * MIB)


def test_formats_of_a_gguf_follow_the_place_in_the_whole_network():
    asked = Inference(profile="llama.cpp", weights="Q4_K_M", parallel=Parallel(pipeline=2))
    second = ranks(llama(), with_defaults(asked, llama(), 2))[1].stage.architecture.main
    assert second.first_place + second.layer_count == second.whole_depth == 32
