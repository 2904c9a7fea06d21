"""Bytes of logits in inference and training, by hand."""

import pytest
from inference_terms import alive
from small_models import llama
from training_snapshots import alive as terms_of_training
from training_snapshots import snapshots

from planner.memory.logits import loss_bytes_per_logit
from planner.memory.precision import Precision


@pytest.mark.parametrize(("kept", "tokens"), [("last", 1), ("all", 500)])
def test_logits_of_the_last_token_or_of_the_whole_prompt(kept, tokens):
    shares = alive(llama(), "prefill", "logits", batch=3, context_length=500, prompt_logits=kept)
    assert shares["logits"] == 3 * tokens * 32_000 * (2 + 4)  # as computed in bf16, and the fp32 copy


def test_fp32_logits_are_not_copied():
    shares = alive(llama(), "prefill", "logits", compute="fp32", context_length=500)
    assert shares["logits"] == 32_000 * 4


@pytest.mark.parametrize(("compute", "per_logit"), [("bf16", 14), ("amp-bf16", 14), ("fp32", 16)])
def test_bytes_of_a_logit_when_the_loss_is_derived(compute, per_logit):
    loss = terms_of_training(snapshots(llama(), compute=compute, micro_batch=2, sequence_length=100), "loss")
    assert loss["logits"] == per_logit * 2 * 100 * 32_000


@pytest.mark.parametrize("size", [2, 4])
def test_softcapped_logits_are_kept_once_more_in_both_passes_of_the_loss(size):
    precision = Precision(parameter_bytes=size, compute_bytes=size, residual_bytes=size, autocast=False)
    found = [loss_bytes_per_logit(llama().evolve(softcapped_logits=one), precision) for one in (False, True)]
    plain = (2 + 4 + 4, 2 + 12) if size == 2 else (4 + 4, 4 + 12)
    assert found == [plain, (plain[0] + size, plain[1] + size)]


def test_a_loss_that_reads_the_logits_as_they_are_holds_their_logarithms_in_the_same_format():
    precision = Precision(parameter_bytes=2, compute_bytes=2, residual_bytes=2, autocast=False)
    # Logits and logarithms of 2 bytes; in the backward pass both gradients more.
    assert loss_bytes_per_logit(llama().evolve(loss_reads="logits"), precision) == (2 + 2, 2 + 2 + 2 + 2)


@pytest.mark.parametrize(
    ("reads", "expected"),
    [("logits", (2 * 2 + 4, 2 * 2 + 8)), ("biased-logits", (2 * 4, 4 * 4)), ("fp32-copy", (10, 14))],
)
def test_a_loss_under_autocast_copies_what_it_reads(reads, expected):
    autocast = Precision(parameter_bytes=4, compute_bytes=2, residual_bytes=4, autocast=True)
    assert loss_bytes_per_logit(llama().evolve(loss_reads=reads), autocast) == expected
