"""What heads and losses hold, against the same operations of PyTorch, restated from the libraries that have them."""

from typing import Any

import pytest
from loss_cases import NETWORK, H, T, V, losses
from tuned_networks import kept, needed, network

from planner.memory.precision import training_precision
from planner.memory.software import training_memory
from planner.memory.training.losses import (
    LossMemory,
    OutputHead,
    fused_chunk_tokens,
    fused_linear_loss_memory,
    scored_logits,
)
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

torch = pytest.importorskip("torch")
from watched_storages import Peak  # noqa: E402  # it imports torch


def tensors(dtype: Any) -> tuple[Any, Any, Any]:
    hidden = torch.randn(T, H).to(dtype).requires_grad_()
    return hidden, torch.randn(V, H).to(dtype).requires_grad_(), torch.randint(0, V, (T,))


def linear_cross_entropy(hidden: Any, weight: Any, labels: Any, parts: int) -> Any:
    """Return the loss as torchtune's LinearCrossEntropyLoss computes it."""
    total = torch.zeros(())
    for some, of_those in zip(hidden.tensor_split(parts), labels.tensor_split(parts), strict=True):
        logits = torch.nn.functional.linear(some, weight)
        total = total + torch.nn.functional.cross_entropy(logits.float(), of_those, reduction="sum")
    return total


@pytest.mark.parametrize(("compute", "dtype"), [("bf16", "bfloat16"), ("fp32", "float32")])
@pytest.mark.parametrize("parts", [1, 2, 4, 8, 30])
def test_torchtune_keeps_the_log_probabilities_of_every_part(compute: str, dtype: str, parts: int) -> None:
    hidden, weight, labels = tensors(getattr(torch, dtype))
    predicted = losses(loss="chunked", loss_chunks=parts, compute=compute)
    with Peak([hidden, weight, labels]) as watched:
        loss = linear_cross_entropy(hidden, weight, labels, parts)
    assert watched.peak == pytest.approx(predicted.forward.bytes, rel=0.03)
    with watched:
        loss.backward()
    assert watched.peak == pytest.approx(max(predicted.forward.bytes, predicted.loss.bytes), rel=0.03)


def test_a_network_without_a_head_says_that_its_loss_is_elsewhere() -> None:
    headless = NETWORK.evolve(head=(), tied_head=False)
    workload = with_defaults(Training(sequence_length=T), headless, 1)
    assert isinstance(workload, Training)
    assert (
        "has no output head"
        in training_memory(workload.profile).loss_memory(headless, workload, training_precision(workload)).explanation
    )


def fused_linear_cross_entropy(hidden: Any, weight: Any, labels: Any) -> tuple[Any, ...]:
    """Return what Liger's forward pass returns; its kernel puts the gradient of the logits in their place."""
    size = fused_chunk_tokens(T, V, H)
    grad_input, grad_weight, loss = torch.zeros_like(hidden), torch.zeros_like(weight), torch.zeros(T)
    for start in range(0, T, size):
        some = hidden[start : start + size]
        logits = some @ weight.t()
        loss[start : start + size] = labels[start : start + size].float()
        grad_input[start : start + size] = logits @ weight
        grad_weight += torch.mm(logits.t(), some).float()
    return loss, grad_input, grad_weight


@pytest.mark.parametrize(("compute", "dtype"), [("bf16", "bfloat16"), ("fp32", "float32")])
def test_liger_adds_the_gradient_of_the_head_from_a_copy(compute: str, dtype: str) -> None:
    hidden, weight, labels = (tensor.detach() for tensor in tensors(getattr(torch, dtype)))
    predicted = losses(profile="liger", compute=compute)
    with Peak([hidden, weight, labels]) as watched:
        fused_linear_cross_entropy(hidden, weight, labels)
    head = predicted.head_gradient * (2 if compute == "bf16" else 4)
    assert watched.peak == pytest.approx(predicted.forward.bytes + head, rel=0.02)


@pytest.mark.parametrize(("trained", "more"), [(V * H, " + V × h × (w + 4)"), (0, "")])
def test_a_trained_head_adds_its_gradient_and_an_fp32_copy_to_ligers_loss(trained: int, more: str) -> None:
    memory = fused_linear_loss_memory(OutputHead(T, V, H, 2), 2, trained)
    formula = memory.forward.write().formula
    assert formula == f"C × V × w + T × h × r{more}"
    assert memory.forward.bytes == 32 * V * 2 + T * H * 2 + (V * H * (2 + 4) if trained else 0)


def test_liger_makes_about_as_many_logits_as_the_input_has_numbers() -> None:
    assert fused_chunk_tokens(4096, 128_256, 4096) == 128
    assert fused_chunk_tokens(T, V, H) == 32
    assert fused_chunk_tokens(1, 4000, 128) == 1


def test_full_training_with_fused_kernels_keeps_less():
    for name in ("mixtral", "llama", "deepseek_v3"):
        fused, plain = (needed(network(name), profile=profile, loss="full-logits") for profile in ("liger", "hf"))
        assert kept(fused) <= kept(plain)
        assert fused.term("weights") == plain.term("weights")


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
