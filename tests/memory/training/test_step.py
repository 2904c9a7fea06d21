"""The phases of one training step, with the arithmetic."""

import pytest
from small_models import llama
from training_snapshots import alive, snapshots
from tuned_networks import network

from planner.memory.estimate import estimate_memory
from planner.memory.training.step import cast_terms
from planner.workload.workload import Training

P = 6_738_415_616  # Llama 2 7B


def test_pure_bf16_adamw_is_8_bytes_a_parameter():
    step = alive(snapshots(llama()), "step")
    assert step == {"weights": 2 * P, "gradients": 2 * P, "optimizer_states": 4 * P}
    assert sum(step.values()) == 8 * P


@pytest.mark.parametrize("compute", ["fp32", "tf32", "amp-bf16", "amp-fp16"])
def test_fp32_parameters_are_16_bytes_with_adamw(compute):
    assert sum(alive(snapshots(llama(), compute=compute), "step").values()) == 16 * P


def test_accumulated_gradients_stay():
    found = snapshots(llama(), gradient_accumulation=4)
    assert alive(found, "forward")["gradients"] == 2 * P
    assert alive(found, "backward", "first layer")["gradients"] == 2 * P
    assert alive(found, "step")["gradients"] == 2 * P


@pytest.mark.parametrize(
    ("shape", "phase"),
    [
        ({"micro_batch": 8, "sequence_length": 2048}, "loss"),
        ({"micro_batch": 1, "sequence_length": 16}, "backward"),
    ],
)
def test_which_phase_peaks(shape, phase):
    assert estimate_memory(llama(), Training(compute="bf16", **shape)).peak_phase == phase


def test_plain_sgd_with_few_tokens_peaks_where_all_gradients_meet_the_logits():
    result = estimate_memory(llama(), Training(compute="bf16", optimizer="sgd", sequence_length=16))
    assert result.peak_phase == "backward"
    assert {term.name for term in result.terms} == {"weights", "gradients", "logits", "framework_overhead"}


def test_an_update_of_all_parameters_in_one_call_holds_copies_of_them():
    assert "temporaries" not in alive(snapshots(llama()), "step")
    assert alive(snapshots(llama(), optimizer_step="foreach"), "step")["temporaries"] == 2 * P


def test_the_backward_pass_leaves_the_decoder_before_it_reaches_the_first_layer_of_the_encoder():
    told = [one.explanation for one in snapshots(network("t5")).snapshots if one.name == "backward"]
    order = (
        "at the head",
        "last layer",
        "decoder's first layer",
        "decoder's embedding",
        "first layer",
        "the embedding",
    )
    assert all(words in one for words, one in zip(order, told, strict=True))


def test_copies_take_two_bytes_for_each_cast_parameter():
    (copies,) = cast_terms(1000, 2)
    assert (copies.name, copies.bytes, copies.formula) == ("temporaries", 2000, "P_c × w")
    assert [symbol.value for symbol in copies.symbols] == [1000, 2]


def test_without_cast_parameters_there_is_no_term():
    assert cast_terms(0, 2) == ()
