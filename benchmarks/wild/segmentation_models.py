"""Networks of segmentation-models-pytorch, by decoder and encoder."""

import torch
import torchvision_import  # noqa: F401  # before timm, which imports torchvision
from torch import nn


def segmentation(decoder: str, encoder: str = "resnet18", size: int = 96) -> tuple[nn.Module, torch.Tensor]:
    """Return the decoder of that name on an encoder without weights, for 3 classes."""
    import segmentation_models_pytorch as models

    module: nn.Module = getattr(models, decoder)(encoder, encoder_weights=None, classes=3)
    return module, torch.randn(2, 3, size, size)
