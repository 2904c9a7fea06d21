"""What heads and losses hold, against the same operations of PyTorch, restated from the libraries that have them."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from small_models import small_llama  # noqa: E402  # only where there is a torch
from watched_storages import Peak  # noqa: E402

from planner.memory.precision import training_precision  # noqa: E402
from planner.memory.software import training_memory  # noqa: E402
from planner.memory.software.unsloth import unsloth_chunk_count  # noqa: E402
from planner.memory.training.fused import fused_chunk_tokens  # noqa: E402
from planner.memory.training.losses import LossMemory  # noqa: E402
from planner.workload.defaults import with_defaults  # noqa: E402
from planner.workload.training import Training  # noqa: E402

V, H, T = 4_000, 128, 600
NETWORK = small_llama(vocab_size=V, hidden_size=H, intermediate_size=256, max_position_embeddings=1024)


def losses(**how: Any) -> LossMemory:
    workload = with_defaults(Training.model_validate({"sequence_length": T, "compute": "bf16"} | how), NETWORK, 1)
    assert isinstance(workload, Training)
    return training_memory(workload.profile).loss_memory(NETWORK, workload, training_precision(workload))


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


def test_liger_makes_about_as_many_logits_as_the_input_has_numbers() -> None:
    assert fused_chunk_tokens(4096, 128_256, 4096) == 128
    assert fused_chunk_tokens(T, V, H) == 32
    assert fused_chunk_tokens(1, 4000, 128) == 1


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


def test_a_network_without_a_head_says_that_its_loss_is_elsewhere() -> None:
    headless = NETWORK.evolve(head=(), tied_head=False)
    workload = with_defaults(Training(sequence_length=T), headless, 1)
    assert isinstance(workload, Training)
    assert (
        "has no output head"
        in training_memory(workload.profile).loss_memory(headless, workload, training_precision(workload)).explanation
    )
