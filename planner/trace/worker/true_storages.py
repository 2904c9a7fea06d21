"""Storages that fake tensors make too small: those of which a kernel keeps more than its result shows."""

from collections.abc import Callable
from typing import Any, Final

import torch

from planner.trace.worker.cpu_recurrent import workspace_bytes

_aten: Final = torch.ops.aten


def correct(func: Any, args: tuple[Any, ...], result: Any) -> None:
    """Give the storages that `func` made the sizes that they really have."""
    correction = _CORRECTIONS.get(func)
    if correction is not None:
        correction(args, result)


def _loss(args: tuple[Any, ...], result: torch.Tensor) -> None:
    """The loss is reduced to one number in a tensor that was made for all elements, and keeps its storage.

    **Source**: `TORCH_META_FUNC(mse_loss)` in aten/src/ATen/native/Loss.cpp resizes its output after it was made.
    """
    if len(args) < 3 or args[2]:
        shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
        result.untyped_storage().resize_(shape.numel() * result.element_size())


def _layer_norm(args: tuple[Any, ...], result: tuple[torch.Tensor, ...]) -> None:
    """Statistics of an input in half the bits of its weight are in fp32, not in the input's format.

    **Source**: `layer_norm_cpu` of aten/src/ATen/native/layer_norm.cpp: `param_scalar_type` of mixed formats.
    """
    if args[2] is not None and args[2].dtype != args[0].dtype:
        for statistics in result[1:]:
            statistics.untyped_storage().resize_(statistics.numel() * torch.float32.itemsize)


def _recurrent(args: tuple[Any, ...], result: tuple[torch.Tensor, ...]) -> None:
    """The rule for fake tensors makes an empty workspace."""
    if torch.is_grad_enabled():
        result[3].untyped_storage().resize_(workspace_bytes(args[0], args[10]))


_CORRECTIONS: Final[dict[Any, Callable[[tuple[Any, ...], Any], None]]] = {
    _aten.mse_loss.default: _loss,
    _aten.smooth_l1_loss.default: _loss,
    _aten.native_layer_norm.default: _layer_norm,
    _aten.mkldnn_rnn_layer.default: _recurrent,
}
