"""Unsloth's adapters and chunked loss."""

import pytest
from loss_cases import H, T, V, losses
from small_models import llama

from planner.memory.software import training_memory
from planner.memory.software.unsloth import unsloth_chunk_count
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

TOKENS, WIDTH, Q, KV, WIDE, A, L = 1024, 4096, 4096, 4096, 11008, 32, 32


def kept(architecture: Architecture, profile: str, **how: object) -> int:
    asked = {"profile": profile, "compute": "bf16", "sequence_length": TOKENS} | how
    workload = with_defaults(Training.model_validate(asked), architecture, 1)
    assert isinstance(workload, Training)
    assert training_memory(workload.profile).fused.norms
    return training_memory(workload.profile).setup(architecture, workload).saved.total


def test_adapters_of_unsloth_keep_their_input_once() -> None:
    # LoRA_QKV saves X, LoRA_W its input, which is attention's output, LoRA_MLP X, e and g; A and B are parameters.
    norms = 2 * (2 * WIDTH + 4)
    inputs = 2 * (WIDTH + WIDTH)
    attention = 2 * (Q + KV + KV + Q) + 4 * A
    gates = 2 * (WIDE + WIDE)
    found = kept(llama(), "unsloth", method="lora", compute="amp-bf16", weights="bf16")
    assert found == pytest.approx(TOKENS * L * (norms + inputs + attention + gates), rel=0.01)


@pytest.mark.parametrize(
    ("tokens", "vocabulary", "parts"),
    [(2048, 128_256, 1), (8192, 128_256, 1), (8400, 128_256, 4), (65_536, 128_256, 8)],
)
def test_unsloth_takes_4_gib_of_logits_at_once(tokens: int, vocabulary: int, parts: int) -> None:
    assert unsloth_chunk_count(tokens, vocabulary) == parts


def test_unsloth_holds_at_least_its_logits_and_at_most_all_of_the_loss() -> None:
    found = losses(profile="unsloth")
    written = found.forward.write()
    assert written.certainty == "assumed"
    assert (written.bytes, written.high_bytes) == (found.forward.bytes, found.forward.high_bytes)
    assert written.high_bytes - written.bytes == T * V * 10
    assert found.head_gradient == V * H
