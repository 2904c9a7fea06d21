"""Sizes of tensors, and of the copies that kernels make of them."""

from collections.abc import Iterable
from typing import Any, Final

import torch

_HALF: Final = (torch.bfloat16, torch.float16)


def bytes_of(tensor: torch.Tensor, itemsize: int | None = None) -> int:
    """Return the bytes of a tensor of the shape of `tensor`, with elements of `itemsize` if given."""
    return int(tensor.numel()) * (itemsize or tensor.element_size())


def is_half(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is in half precision, which kernels often compute in float32."""
    return tensor.dtype in _HALF


def bytes_of_copies(values: Iterable[Any]) -> int:
    """Return the bytes of contiguous copies of those tensors among `values` that are not contiguous."""
    return sum(bytes_of(value) for value in values if isinstance(value, torch.Tensor) and not value.is_contiguous())
