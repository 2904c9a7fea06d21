"""Networks of MONAI for medical images, of small sizes."""

from typing import Any

import torch
from monai.networks import nets
from torch import nn


def volumes(
    name: str, size: int = 32, input_channels: int = 1, batch: int = 1, **options: Any
) -> tuple[nn.Module, torch.Tensor]:
    """Return the network `name` of MONAI with cubes of `size`."""
    module: nn.Module = getattr(nets, name)(**_without_tuples(options))
    return module, torch.randn(batch, input_channels, size, size, size)


def images(
    name: str, size: int = 64, input_channels: int = 1, batch: int = 2, **options: Any
) -> tuple[nn.Module, torch.Tensor]:
    """Return the network `name` of MONAI with square images of `size`."""
    module: nn.Module = getattr(nets, name)(**_without_tuples(options))
    return module, torch.randn(batch, input_channels, size, size)


def _without_tuples(options: dict[str, Any]) -> dict[str, Any]:
    """Return `options` with lists, as MONAI's networks add to some of them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
