"""What operators hold on the CPU while they run, which no dispatcher sees: copies, tables, buffers for each thread."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Final

import torch

from planner.trace.worker import cpu_convolutions, cpu_recurrent
from planner.units import ceil_div

_aten: Final = torch.ops.aten
_REDUCED: Final = (torch.bfloat16, torch.float16)
_MEAN: Final = 1
_PACKED_BYTES: Final = 1_441_792
"""The most that a product lays out anew at once, with 2 MiB of second-level cache; measured."""

Formula = Callable[[tuple[Any, ...], dict[str, Any], Any], int]


def hidden_bytes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the bytes that the CPU's kernel of `func` holds at most beside its inputs and `result`.

    **Source**: PyTorch's and oneDNN's sources, as said at each formula; all are measured with the profiler's `[memory]`
    events by `benchmarks/real_peaks.py`.
    **Assumes** as many threads as this process has, and its processor.
    """
    try:
        formula = _known[func]
    except KeyError:
        formula = _known[func] = _promoted if torch.Tag.pointwise in func.tags else None
    return formula(args, kwargs, result) if formula is not None else 0


def _bytes(tensor: torch.Tensor, itemsize: int | None = None) -> int:
    return int(tensor.numel()) * (itemsize or tensor.element_size())


def _promoted(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Operands of another type than the common one are converted as a whole before an elementwise kernel runs.

    **Source**: `TensorIteratorBase::compute_types` in aten/src/ATen/TensorIterator.cpp.
    """
    operands = [value for value in args if isinstance(value, torch.Tensor) and value.dim()]
    if len(operands) < 2:
        return 0
    dtype = operands[0].dtype
    if all(operand.dtype == dtype for operand in operands):
        return 0
    for operand in operands[1:]:
        dtype = torch.promote_types(dtype, operand.dtype)
    return sum(_bytes(operand, dtype.itemsize) for operand in operands if operand.dtype != dtype)


def _nothing(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    return 0


def _reduction_in_float32(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The mean in half precision is that of a copy in float32.

    **Source**: `mean` in aten/src/ATen/native/ReduceOps.cpp.
    """
    if args[0].dtype not in _REDUCED:
        return 0
    return _bytes(args[0], 4) + _bytes(result, 4)


def _sum(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """A sum in half precision over dimensions with a kept one between them, or into another type, copies the input.

    **Source**: `sum_kernel_impl` in aten/src/ATen/native/cpu/SumKernel.cpp; measured on 10 patterns of dimensions.
    """
    tensor = args[0]
    if tensor.dtype not in _REDUCED:
        return 0
    if result.dtype != tensor.dtype:
        return _bytes(tensor, 4)
    dims = sorted({dim % max(1, tensor.dim()) for dim in args[1] or ()})
    together = not dims or dims[-1] - dims[0] + 1 == len(dims)
    return 0 if together else _bytes(tensor, 4) + _bytes(result, 4)


def _safe_softmax(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Where an entry is minus infinity, whether a whole row is, and a zero.

    **Source**: `_safe_softmax` in aten/src/ATen/native/transformers/attention.cpp.
    """
    elements = _bytes(result, 1)
    return elements + elements // max(1, int(result.shape[args[1]])) + 4


def _batch_norm_backward(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """A second gradient of the input's size; in half precision in float32, if the first has other strides.

    **Source**: `batch_norm_backward_cpu_template` in aten/src/ATen/native/Normalization.cpp; measured on 12 shapes.
    """
    gradient, given = args[0], args[1]
    if gradient.is_contiguous() or gradient.is_contiguous(memory_format=torch.channels_last):
        return _bytes(given)
    return _bytes(given, 4) if given.dtype in _REDUCED else 2 * given.shape[1] * 4


def _batch_norm(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """A scale and a shift of each channel.

    **Source**: `batch_norm_cpu_transform_input_template` in aten/src/ATen/native/Normalization.cpp.
    """
    return 2 * args[0].shape[1] * 4 if args[0].dim() > 1 else 0


def _layer_norm_backward(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each thread, the gradients of weight and bias; gradient and input in one piece.

    **Source**: `LayerNormBackwardKernelImplInternal` in aten/src/ATen/native/cpu/layer_norm_kernel.cpp.
    """
    return 2 * torch.get_num_threads() * int(prod(args[2])) * 4 + _made_contiguous(args[:2])


def _layer_norm(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The input in one piece.

    **Source**: `layer_norm_cpu` in aten/src/ATen/native/layer_norm.cpp.
    """
    return _made_contiguous(args[:1])


def _softmax(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Inputs in one piece: scores, or the gradient and the result of softmax.

    **Source**: `softmax_cpu_out` and its like in aten/src/ATen/native/SoftMax.cpp.
    """
    return _made_contiguous(args[:2])


def _pooling(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The input in one piece, channels first or last.

    **Source**: `max_pool2d_kernel_impl` in aten/src/ATen/native/cpu/MaxPoolKernel.cpp, and its like.
    """
    return 0 if args[0].is_contiguous(memory_format=torch.channels_last) else _made_contiguous(args[:1])


def _made_contiguous(values: Iterable[Any]) -> int:
    return sum(_bytes(value) for value in values if isinstance(value, torch.Tensor) and not value.is_contiguous())


def _group_norm_backward(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each image and channel, two sums.

    **Source**: `GroupNormBackwardKernelImpl` in aten/src/ATen/native/cpu/group_norm_kernel.cpp.
    """
    return 2 * int(prod(args[1].shape[:2])) * 4


def _dropout(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The mask in the input's type.

    **Source**: `native_dropout_cpu` in aten/src/ATen/native/Dropout.cpp.
    """
    return _bytes(args[0])


def _loss(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """The loss of each element, before the mean or the sum; the mean of half precision in float32.

    **Source**: `mse_loss` and its like in aten/src/ATen/native/Loss.cpp.
    """
    reduction = args[2] if len(args) > 2 else _MEAN
    held = _bytes(args[0]) if reduction else 0
    return held + (_bytes(args[0], 4) if reduction == _MEAN and args[0].dtype in _REDUCED else 0)


def _binary_cross_entropy(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Two more of the input's size.

    **Source**: `binary_cross_entropy_with_logits` in aten/src/ATen/native/Loss.cpp.
    """
    return 2 * _bytes(args[0]) + (_bytes(args[0], 4) if _half(args[0]) else 0)


def _half(tensor: torch.Tensor) -> bool:
    return tensor.dtype in _REDUCED


def _whole_input(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """A second tensor of the input's size: `roll` and `logsumexp` make one.

    **Source**: `roll_common` in aten/src/ATen/native/TensorTransformations.h; `logsumexp` in ReduceOps.cpp.
    """
    return _bytes(args[0])


def _upsample(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Small images are enlarged with their channels last: the input, and the output, are laid out anew.

    **Source**: `_use_vectorized_kernel_cond_2d` in aten/src/ATen/native/cpu/UpSampleKernel.cpp.
    """
    given = args[0]
    if given.is_contiguous(memory_format=torch.channels_last) or result.shape[-2] + result.shape[-1] > 128:
        return 0
    return _bytes(given) + _bytes(result)


def _attention_splits(queries: int, keys: int) -> tuple[int, int]:
    rows = 256 if queries >= 768 else 64 if queries >= 192 else 32
    return min(rows, queries), min(512, keys)


def _attention(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each thread, a block of scores, its maxima and sums, and a block of the result.

    In half precision also that block, and keys and values in the order that matrix tiles want, where that pays.
    **Source**: `cpu_flash_attention` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[0], args[1]
    batch, heads, queries, width = map(int, query.shape)
    keys, threads = int(key.shape[2]), torch.get_num_threads()
    rows, columns = _attention_splits(queries, keys)
    held = threads * 4 * (rows * columns + 2 * rows + rows * width)
    if not _half(query):
        return held
    held += threads * 2 * rows * columns
    blocks = ceil_div(batch * heads * ceil_div(queries, rows), threads)
    causal = bool(args[4]) if len(args) > 4 else False
    work = blocks * rows * (min(queries, keys) if causal else keys) * width
    if work // (batch * key.shape[1] * keys * width) >= 4:
        held += 2 * _bytes(key) + threads * 2 * columns * width
    return held


def _attention_backward(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each thread, two blocks of scores; in half precision in that too.

    **Source**: `cpu_flash_attention_backward` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[1], args[2]
    rows, columns = _attention_splits(int(query.shape[2]), int(key.shape[2]))
    threads = torch.get_num_threads()
    held = threads * 4 * (2 * rows * columns + rows)
    return held + (threads * 2 * 2 * rows * columns if _half(query) else 0)


def _product(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """In half precision, the second matrix in the order that matrix tiles want, as much as the cache holds of it.

    **Source**: `brgemm_matmul_conf_t` in oneDNN's src/cpu/x64/matmul; measured on 30 shapes, within 0.1 MiB.
    """
    left, right = args[-2:]
    if not _half(right):
        return 0
    depth, columns = map(int, right.shape[-2:])
    if not left.is_contiguous():
        columns = min(columns, 256)
    elif not right.is_contiguous() and columns > 256:
        columns = 32
    return min(min(depth, 1024) * columns * right.dtype.itemsize, _PACKED_BYTES)


_known: dict[Any, Formula | None] = {
    _aten.convolution.default: cpu_convolutions.convolution,
    _aten.convolution_backward.default: cpu_convolutions.convolution_backward,
    _aten.mkldnn_rnn_layer.default: cpu_recurrent.forward,
    _aten.mkldnn_rnn_layer_backward.default: cpu_recurrent.backward,
    _aten.native_batch_norm.default: _batch_norm,
    _aten.native_batch_norm_backward.default: _batch_norm_backward,
    _aten.native_layer_norm.default: _layer_norm,
    _aten._softmax.default: _softmax,
    _aten._softmax_backward_data.default: _softmax,
    _aten._log_softmax.default: _softmax,
    _aten._log_softmax_backward_data.default: _softmax,
    _aten.max_pool2d_with_indices.default: _pooling,
    _aten.avg_pool2d.default: _pooling,
    _aten._adaptive_avg_pool2d.default: _pooling,
    _aten.native_layer_norm_backward.default: _layer_norm_backward,
    _aten.native_group_norm_backward.default: _group_norm_backward,
    _aten._safe_softmax.default: _safe_softmax,
    _aten.native_dropout.default: _dropout,
    _aten.mean.default: _reduction_in_float32,
    _aten.mean.dim: _reduction_in_float32,
    _aten.sum.dim_IntList: _sum,
    _aten.roll.default: _whole_input,
    _aten.logsumexp.default: _whole_input,
    _aten.mse_loss.default: _loss,
    _aten.smooth_l1_loss.default: _loss,
    _aten.huber_loss.default: _loss,
    _aten.binary_cross_entropy_with_logits.default: _binary_cross_entropy,
    _aten.binary_cross_entropy.default: _binary_cross_entropy,
    _aten.upsample_nearest2d.default: _upsample,
    _aten.upsample_bilinear2d.default: _upsample,
    _aten.mm.default: _product,
    _aten.addmm.default: _product,
    _aten.bmm.default: _product,
    _aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention_backward,
    # The condition and the mask are used as they are.
    _aten.where.self: _nothing,
    _aten.masked_fill.Scalar: _nothing,
    _aten.masked_fill_.Scalar: _nothing,
    _aten.copy_.default: _nothing,
}
