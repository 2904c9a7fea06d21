"""What heads and losses hold, against the same operations of PyTorch, restated from the libraries that have them."""

from typing import Any

import pytest
from loss_cases import NETWORK, H, T, V, losses

from planner.memory.precision import training_precision
from planner.memory.software import training_memory
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
