"""Fused kernels, and the loss that Liger computes with the head."""

from typing import Any

import pytest
from loss_cases import H, T, V, losses
from tuned_networks import kept, needed, network

from planner.memory.training.fused import fused_chunk_tokens, fused_linear_loss_memory
from planner.memory.training.losses import OutputHead

torch = pytest.importorskip("torch")
from watched_storages import Peak  # noqa: E402  # it imports torch


def tensors(dtype: Any) -> tuple[Any, Any, Any]:
    hidden = torch.randn(T, H).to(dtype).requires_grad_()
    return hidden, torch.randn(V, H).to(dtype).requires_grad_(), torch.randint(0, V, (T,))


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
