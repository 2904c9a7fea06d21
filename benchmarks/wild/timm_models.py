"""Image classifiers of timm, by name."""

from typing import Any

import torch
import torchvision_import  # noqa: F401  # before timm, which imports torchvision
from torch import nn


def classifier(name: str, size: int = 96, batch: int = 4, fixed_size: bool = True) -> tuple[nn.Module, torch.Tensor]:
    """Return the model `name` of timm for 10 classes, with square images."""
    import timm

    options: dict[str, Any] = {} if fixed_size else {"img_size": size}
    return timm.create_model(name, num_classes=10, **options), torch.randn(batch, 3, size, size)
