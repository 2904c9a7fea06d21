"""What log-probabilities hold, against the same operations of PyTorch, restated from the libraries that have them."""

from typing import Any

import pytest
from loss_cases import NETWORK, H, T, V, losses

from planner.memory.precision import training_precision
from planner.memory.software import training_memory
from planner.memory.training.log_probabilities import scored_logits
from planner.memory.training.losses import LossMemory
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

torch = pytest.importorskip("torch")
from watched_storages import Peak  # noqa: E402  # it imports torch

C = 300
"""Tokens of a completion; sequences have T."""


def aligned(sequences: int = 2, **how: Any) -> dict[str, Any]:
    alignment = {"method": "grpo", "completion_length": C, "group": sequences}
    return {"micro_batch": sequences, "alignment": alignment} | how


def selected(logits: Any, ids: Any) -> Any:
    """Return log-probabilities as TRL's selective_log_softmax computes them from fp32 logits."""
    gathered = torch.gather(logits, dim=-1, index=ids.unsqueeze(-1)).squeeze(-1)
    return gathered - torch.stack([torch.logsumexp(one, dim=-1) for one in logits])


@pytest.mark.parametrize("sequences", [1, 2, 4])
def test_the_backward_pass_makes_four_fp32_copies_of_the_logits(sequences: int) -> None:
    predicted = losses(**aligned(sequences, loss="full-logits", compute="amp-bf16"))
    hidden = torch.randn(sequences, C + 1, H, dtype=torch.bfloat16, requires_grad=True)
    weight, ids = torch.randn(V, H, dtype=torch.bfloat16), torch.randint(0, V, (sequences, C))
    with Peak([hidden, weight, ids]) as watched:
        logits = torch.nn.functional.linear(hidden, weight).float()[:, :-1]
        logits.div_(0.9)
        chosen = selected(logits, ids)
        del logits
    with watched:
        watched.peak = 0
        chosen.sum().backward()
    assert watched.peak == pytest.approx(predicted.loss.bytes, rel=0.03)
    assert predicted.loss.bytes == sequences * (C + 1) * V * 16
    assert predicted.forward.write().bytes == sequences * (C + 1) * V * 8
    assert predicted.head.bytes == sequences * (C + 1) * V * 6


def scored(sequences: int, in_parts: bool = False, **how: Any) -> int:
    asked = Training.model_validate({"sequence_length": T, "compute": "amp-bf16"} | aligned(sequences, **how))
    workload = with_defaults(asked, NETWORK, 1)
    assert isinstance(workload, Training)
    term = scored_logits(NETWORK, workload, sequences, training_precision(workload), in_parts=in_parts)
    assert term.write().bytes == term.bytes
    return term.bytes


def test_without_gradients_logits_are_held_in_both_formats() -> None:
    hidden, weight = torch.randn(4, C + 1, H, dtype=torch.bfloat16), torch.randn(V, H, dtype=torch.bfloat16)
    ids = torch.randint(0, V, (4, C))
    with Peak([hidden, weight, ids]) as watched, torch.no_grad():
        logits = torch.nn.functional.linear(hidden, weight).float()[:, :-1]
        selected(logits, ids)
    assert watched.peak == pytest.approx(scored(4, loss="full-logits"), rel=0.02)
    # One sequence: the exponents of logsumexp are as large as its logits.
    assert scored(1, loss="full-logits") == (C + 1) * V * 8
    assert scored(8, loss="full-logits", compute="fp32") == 8 * (C + 1) * V * 9 // 2


def frozen(sequences: int, loss: str) -> LossMemory:
    """Return the memory of log-probabilities under a head that is not trained."""
    asked = Training.model_validate({"sequence_length": T, "compute": "bf16"} | aligned(sequences, loss=loss))
    workload = with_defaults(asked, NETWORK, 1)
    assert isinstance(workload, Training)
    program = training_memory(workload.profile)
    return program.loss_memory(NETWORK, workload, training_precision(workload), head_is_trained=False)


def test_tiles_hold_one_block_of_logits_and_the_gradient_of_the_input() -> None:
    found = losses(**aligned(loss="chunked", compute="bf16"))
    tile, inputs = 2 * C * V * 2, 2 * C * H * 2
    assert found.forward.write().bytes == tile + inputs
    assert found.loss.write().bytes == tile + inputs + 2 * C * H * 4 + V * H * 4
    assert found.head.write().bytes == inputs + 2 * C * H * 4
    assert found.layers.bytes == 0
    assert scored(2, loss="chunked", compute="bf16") == tile + inputs
    assert frozen(2, "chunked").loss.write().bytes == tile + inputs + 2 * C * H * 4


def test_a_fused_head_takes_one_sequence_at_a_time() -> None:
    found = losses(**aligned(4, loss="fused-linear", compute="bf16"))
    written, part = found.forward.write(), C * V
    assert written.bytes == 2 * part * 2 + 4 * C * H * 2 + V * H * 2
    assert (written.low_bytes, written.high_bytes) == (written.bytes - 2 * part, written.bytes + 10 * part)
    assert frozen(4, "fused-linear").forward.write().bytes == written.bytes - V * H * 2
    assert found.loss.write().bytes == 4 * C * H * 2
    assert scored(4, in_parts=True, loss="fused-linear") == (C + 1) * V * 8 - V * 8
    assert scored(4, loss="fused-linear") == 4 * C * V * 6


@pytest.mark.parametrize(("objective", "tokens"), [("dpo", 2 * T), ("ppo", T)])
def test_other_objectives_make_the_logits_of_whole_sequences(objective: str, tokens: int) -> None:
    how = {"loss": "full-logits", "alignment": {"method": objective, "completion_length": C}, "micro_batch": 1}
    assert losses(**how).loss.bytes == tokens * V * 16 // (2 if objective == "dpo" else 1)
