"""Ways that PyTorch takes for plain tensors but not for fake ones, taken for fake ones too."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn import functional

_linear = functional.linear


@contextmanager
def plain_ways() -> Iterator[None]:
    """Let linear layers and conversions of modules go as they do without a mode."""
    swap = torch.utils.swap_tensors
    functional.linear, torch.utils.swap_tensors = _linear_as_plain, _set_data
    try:
        yield
    finally:
        functional.linear, torch.utils.swap_tensors = _linear, swap


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
    return _linear(input, weight).add_(bias)


def _set_data(old: torch.Tensor, new: torch.Tensor) -> None:
    """Put the converted parameter into the old one.

    **Source**: `Module._apply` sets `data` of plain parameters; those that are fake it swaps, which fails if anything
    refers to them weakly, as fake tensors' own bookkeeping does.
    """
    old.data = new.data
