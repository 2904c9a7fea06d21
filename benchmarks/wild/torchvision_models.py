"""Models of torchvision, by name."""

from typing import Any

import torch
from torch import nn
from torchvision_import import torchvision


def classifier(name: str, size: int = 96, batch: int = 4, **options: Any) -> tuple[nn.Module, torch.Tensor]:
    """Return the image classifier `name` for 10 classes."""
    return torchvision.models.get_model(name, num_classes=10, **options), torch.randn(batch, 3, size, size)


def segmentation(name: str, size: int = 96) -> tuple[nn.Module, torch.Tensor]:
    """Return the segmentation model `name` for 5 classes."""
    module = torchvision.models.get_model(name, num_classes=5, weights_backbone=None)
    return module, torch.randn(2, 3, size, size)


def video(name: str, frames: int = 8, size: int = 64) -> tuple[nn.Module, torch.Tensor]:
    """Return the classifier of videos `name` for 10 classes."""
    return torchvision.models.get_model(name, num_classes=10), torch.randn(2, 3, frames, size, size)


def raft() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the small RAFT, which estimates the motion between two images."""
    return torchvision.models.get_model("raft_small"), (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128))
