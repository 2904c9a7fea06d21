"""The layouts of results for which PyTorch's rules for fake tensors are not used, against those of real tensors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ledger_kit import Books
from torch import nn
from torch.nn import functional

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: torch.randn(4, 8, 6),
    "transposed": lambda: torch.randn(4, 6, 8).transpose(1, 2),
    "channels last": lambda: torch.randn(4, 8, 6, 5).to(memory_format=torch.channels_last),
    "transposed image": lambda: torch.randn(4, 6, 8, 5).transpose(1, 2),
    "volume with channels last": lambda: torch.randn(2, 8, 4, 3, 5).to(memory_format=torch.channels_last_3d),
}


def batch_norm(tensor: torch.Tensor) -> torch.Tensor:
    return nn.BatchNorm1d(8)(tensor) if tensor.dim() == 3 else functional.batch_norm(tensor, None, None, training=True)


def known_batch_norm(tensor: torch.Tensor) -> torch.Tensor:
    return functional.batch_norm(tensor, torch.zeros(8), torch.ones(8), torch.ones(8), torch.zeros(8))


def group_norm(tensor: torch.Tensor) -> torch.Tensor:
    return functional.group_norm(tensor, 4, torch.ones(8), torch.zeros(8))


def layer_norm(tensor: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(tensor, tensor.shape[1:])


def log_softmax(tensor: torch.Tensor) -> torch.Tensor:
    return functional.log_softmax(tensor, 1)


def loss(kind: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: kind(tensor, torch.zeros(tensor.shape), reduction="none")


LOSSES = (functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss)
ACTIVATIONS = (functional.hardswish, functional.hardsigmoid, functional.hardtanh, functional.softplus)
NORMS = (batch_norm, known_batch_norm, group_norm, layer_norm)
FUNCTIONS = (*NORMS, *ACTIVATIONS, log_softmax, *map(loss, LOSSES))


def strides(function: Callable[[torch.Tensor], torch.Tensor], layout: str, gradient_layout: str) -> list[Any]:
    """Return the strides of the result and of the input's gradient, for an incoming gradient of a layout."""
    tensor = LAYOUTS[layout]().requires_grad_()
    result = function(tensor)
    gradient = torch.randn_like(result, memory_format=torch.contiguous_format)
    if gradient_layout == "transposed":
        gradient = gradient.transpose(0, 2).contiguous().transpose(0, 2)
    (made,) = torch.autograd.grad(result, tensor, gradient)
    return [result.stride(), made.stride()]


@pytest.mark.parametrize("gradient_layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_laid_out_as_by_the_kernels(
    function: Callable[[torch.Tensor], torch.Tensor], layout: str, gradient_layout: str
) -> None:
    real = strides(function, layout, gradient_layout)
    with Books().open():
        assert strides(function, layout, gradient_layout) == real
