"""Results of operators of which PyTorch's rules for fake tensors give others than its kernels."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

_aten: Final = torch.ops.aten


def _layer_norm_backward(
    _gradient: Tensor,
    tensor: Tensor,
    _shape: list[int],
    _mean: Tensor,
    _rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    wanted_gradients: list[bool],
) -> tuple[Tensor | None, ...]:
    """Return the contiguous gradients of a layer norm, whatever the strides of the incoming gradient.

    **Source**: `layer_norm_backward_cpu` and `layer_norm_backward_cuda` make them with LEGACY_CONTIGUOUS_MEMORY_FORMAT,
    while the rule for fake tensors keeps the strides of the incoming gradient.
    """
    return tuple(
        torch.empty(template.shape, dtype=template.dtype) if is_wanted and template is not None else None
        for template, is_wanted in zip((tensor, weight, bias), wanted_gradients, strict=True)
    )


def _grouped_mm(
    left: Tensor,
    right: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the result of a grouped matrix product, in any dtype.

    **Source**: `_grouped_mm` of PyTorch, whose kernels take float32 too while its rule for fake tensors needs bfloat16.
    """
    dtype = out_dtype or left.dtype
    if left.dim() == 3 and right.dim() == 3:
        return torch.empty((left.shape[0], left.shape[1], right.shape[2]), dtype=dtype)
    if left.dim() == 2 and right.dim() == 2 and offs is not None:
        return torch.empty((offs.shape[0], left.shape[0], right.shape[1]), dtype=dtype)
    return torch.empty((left.shape[-2], right.shape[-1]), dtype=dtype)


def _batch_norm(
    tensor: Tensor,
    weight: Tensor | None,
    _bias: Tensor | None,
    running_mean: Tensor | None,
    _running_variance: Tensor | None,
    training: bool,
    _momentum: float,
    _epsilon: float,
) -> tuple[Tensor, ...]:
    """Return the results of a batch norm: the output, contiguous or with channels last, and statistics of training.

    **Source**: `batch_norm_cpu` in aten/src/ATen/native/Normalization.cpp, and cuDNN's in `_batch_norm_impl_index`
    there, while the rule for fake tensors keeps the strides of the input.
    """
    parameters = next((given for given in (weight, running_mean) if given is not None), tensor)
    statistics = tensor.shape[1] if training else 0
    return _empty_in_format(tensor), parameters.new_empty(statistics), parameters.new_empty(statistics)


def _norm_gradients(tensor: Tensor, weight: Tensor | None, wanted: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """Return the `wanted` gradients of input, weight and bias."""
    parameters, channels = tensor if weight is None else weight, tensor.shape[1]
    return (
        _empty_in_format(tensor) if wanted[0] else None,
        parameters.new_empty(channels) if wanted[1] else None,
        parameters.new_empty(channels) if wanted[2] else None,
    )


def _empty_in_format(tensor: Tensor) -> Tensor:
    """Return an empty tensor that is contiguous, or has channels last if `tensor` has."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, memory_format=suggest_memory_format(tensor))


REPLACED_RULES: Final[dict[Any, Callable[..., Any]]] = {
    _aten.native_layer_norm_backward.default: _layer_norm_backward,
    _aten.native_batch_norm.default: _batch_norm,
    # The input's gradient is in the format of the input, while rules keep the strides of the incoming gradient, or fail
    # on them. **Source**: `batch_norm_backward_cpu_template` in aten/src/ATen/native/Normalization.cpp,
    # `native_group_norm_backward` in group_norm.cpp there.
    _aten.native_batch_norm_backward.default: lambda *args: _norm_gradients(args[1], args[2], args[-1]),
    _aten.native_group_norm_backward.default: lambda *args: _norm_gradients(args[1], args[4], args[-1]),
    # Contiguous, while the rule keeps the strides of the incoming gradient. **Source**:
    # `TORCH_META_FUNC(_log_softmax_backward_data)` in aten/src/ATen/native/SoftMax.cpp.
    _aten._log_softmax_backward_data.default: lambda _, output, __, dtype: torch.empty(output.shape, dtype=dtype),
    # With the strides of the incoming gradient, the first operand, while rules begin with the input. **Source**:
    # `hardswish_backward` and its like in aten/src/ATen/native/Activation.cpp.
    **dict.fromkeys(
        (
            _aten.hardswish_backward.default,
            _aten.hardsigmoid_backward.default,
            _aten.hardtanh_backward.default,
            _aten.softplus_backward.default,
        ),
        lambda gradient, *_: torch.empty_like(gradient),
    ),
    # Contiguous, while rules keep the strides of the input. **Source**: `mse_loss_backward` and its like in
    # aten/src/ATen/native/Loss.cpp.
    **dict.fromkeys(
        (_aten.mse_loss_backward.default, _aten.smooth_l1_loss_backward.default, _aten.huber_loss_backward.default),
        lambda _, tensor, *__: torch.empty(tensor.shape, dtype=tensor.dtype),
    ),
    **({_aten._grouped_mm.default: _grouped_mm} if hasattr(_aten, "_grouped_mm") else {}),
}
"""Functions that return the results of an operator, given its arguments, in place of the rule for fake tensors."""
