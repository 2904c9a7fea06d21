"""torchvision without its compiled operators, where they were built for another variant of PyTorch."""

import torch

try:
    import torchvision
except RuntimeError:
    # As it is imported, torchvision declares how these operators act on fake tensors; no model here calls them.
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
