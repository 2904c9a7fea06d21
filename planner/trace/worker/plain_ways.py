"""Ways that PyTorch takes for plain tensors but not for fake ones, taken for fake ones too."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional

_linear = functional.linear


@contextmanager
def plain_ways() -> Iterator[None]:
    """Let linear layers, conversions and copies of modules go as they do without a mode."""
    plain = ((functional, "linear", _linear_as_plain), (torch.utils, "swap_tensors", _set_data))
    with ExitStack() as stack:
        for holder, name, way in (*plain, (FakeTensor, "__deepcopy__", _copied)):
            stack.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, way)
        yield


def _linear_as_plain(
    input: torch.Tensor,  # noqa: A002  # as PyTorch calls it: it may be given by name
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Add the bias in place where the input's rows are not in one piece.

    **Source**: `linear` in aten/src/ATen/native/Linear.cpp, which adds it to a copy if a tensor is a subclass.
    """
    if bias is None or input.dim() < 3 or input.is_contiguous():
        return _linear(input, weight, bias)
    result = _linear(input, weight)
    # Autocast would have made it of the same type.
    return result.add_(bias.to(result.dtype))


def _set_data(old: torch.Tensor, new: torch.Tensor) -> None:
    """Put the converted parameter into the old one.

    **Source**: `Module._apply` sets `data` of plain parameters; those that are fake it swaps, which fails if anything
    refers to them weakly, as fake tensors' own bookkeeping does.
    """
    old.data = new.data


def _copied(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """Copy a tensor with its gradient, as layers that are repeated and averages of weights do.

    **Source**: `Parameter.__deepcopy__`. That of fake tensors copies the mode with them, which then is another run's.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]  # type: ignore[no-any-return]  # what was copied is of the same type
    result = tensor.detach().clone(memory_format=torch.preserve_format)
    if isinstance(tensor, nn.Parameter):
        result = nn.Parameter(result, tensor.requires_grad)
    else:
        result.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        result.grad = _copied(tensor.grad, memo)
    memo[id(tensor)] = result
    return result
