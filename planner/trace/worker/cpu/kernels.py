"""Temporary memory of the CPU's kernels, invisible to the dispatcher: copies, tables, per-thread buffers."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final

import torch

from planner.trace.facts import TraceDifference
from planner.trace.request import TraceRequest
from planner.trace.worker.cpu import convolutions as cpu_convolutions
from planner.trace.worker.cpu import rnn as cpu_recurrent
from planner.trace.worker.cpu.convolutions import contiguous_copies_bytes, is_half, size_bytes
from planner.units import KIB, MIB, ceil_div

_aten: Final = torch.ops.aten
_MEAN_REDUCTION: Final = 1

BytesFormula = Callable[[tuple[Any, ...], dict[str, Any], Any], int]


def hidden_bytes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the maximum bytes held by the CPU's kernel of `func` in addition to its inputs and `result`.

    **Source**: PyTorch's and oneDNN's sources, as cited at each formula; all are measured with the profiler's
    `[memory]` events by `benchmarks/real_peaks.py`. **Assumes** this process's number of threads, and its CPU.
    """
    try:
        formula = _formulas[func]
    except KeyError:
        formula = _formulas[func] = _promoted_operands_bytes if torch.Tag.pointwise in func.tags else None
    return formula(args, kwargs, result) if formula is not None else 0


def _promoted_operands_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of operands converted to the common type before an elementwise kernel.

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
    return sum(size_bytes(operand, dtype.itemsize) for operand in operands if operand.dtype != dtype)


def _no_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return 0: the kernel needs no temporary memory."""
    return 0


def _mean_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the float32 copy from which a half-precision mean is computed.

    **Source**: `mean` in aten/src/ATen/native/ReduceOps.cpp.
    """
    if not is_half(args[0]):
        return 0
    return size_bytes(args[0], 4) + size_bytes(result, 4)


def _ctc_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the probabilities of the paths from the end.

    **Source**: `log_beta` of `ctc_loss_backward_cpu_template` in aten/src/ATen/native/LossCTC.cpp.
    """
    return size_bytes(args[6])


def _sum_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the bytes that copies need in a half-precision sum over non-adjacent dimensions or to another type.

    **Source**: `sum_kernel_impl` in aten/src/ATen/native/cpu/SumKernel.cpp; measured on 10 patterns of dimensions.
    """
    tensor = args[0]
    if not is_half(tensor):
        return 0
    if result.dtype != tensor.dtype:
        return size_bytes(tensor, 4)
    dimensions = sorted({dim % max(1, tensor.dim()) for dim in args[1] or ()})
    adjacent = not dimensions or dimensions[-1] - dimensions[0] + 1 == len(dimensions)
    return 0 if adjacent else size_bytes(tensor, 4) + size_bytes(result, 4)


def _safe_softmax_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of the masks that mark minus-infinite scores and rows, and of one zero.

    **Source**: `_safe_softmax` in aten/src/ATen/native/transformers/attention.cpp.
    """
    elements = size_bytes(result, 1)
    return elements + elements // max(1, int(result.shape[args[1]])) + 4


def _batch_norm_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a second gradient of the input's size, or of float32 buffers in half precision.

    **Source**: `batch_norm_backward_cpu_template` in aten/src/ATen/native/Normalization.cpp, measured.
    """
    gradient, input_tensor = args[0], args[1]
    if gradient.is_contiguous() or gradient.is_contiguous(memory_format=torch.channels_last):
        return size_bytes(input_tensor)
    return size_bytes(input_tensor, 4) if is_half(input_tensor) else 2 * input_tensor.shape[1] * 4


def _batch_norm_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a scale and a shift per channel.

    **Source**: `batch_norm_cpu_transform_input_template` in aten/src/ATen/native/Normalization.cpp.
    """
    return 2 * args[0].shape[1] * 4 if args[0].dim() > 1 else 0


def _layer_norm_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of per-thread gradients of weight and bias, and of contiguous copies.

    **Source**: `LayerNormBackwardKernelImplInternal` in aten/src/ATen/native/cpu/layer_norm_kernel.cpp.
    """
    return 2 * torch.get_num_threads() * int(prod(args[2])) * 4 + contiguous_copies_bytes(args[:2])


def _layer_norm_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a contiguous copy of the input.

    **Source**: `layer_norm_cpu` in aten/src/ATen/native/layer_norm.cpp.
    """
    return contiguous_copies_bytes(args[:1])


def _softmax_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of contiguous copies of the inputs: scores, or the gradient and the result of softmax.

    **Source**: `softmax_cpu_out` and its like in aten/src/ATen/native/SoftMax.cpp.
    """
    return contiguous_copies_bytes(args[:2])


def _pooling_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a contiguous copy of the input, unless the input is channels last.

    **Source**: `max_pool2d_kernel_impl` in aten/src/ATen/native/cpu/MaxPoolKernel.cpp, and its like.
    """
    return 0 if args[0].is_contiguous(memory_format=torch.channels_last) else contiguous_copies_bytes(args[:1])


def _group_norm_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of two sums per image and channel.

    **Source**: `GroupNormBackwardKernelImpl` in aten/src/ATen/native/cpu/group_norm_kernel.cpp.
    """
    return 2 * int(prod(args[1].shape[:2])) * 4


def _dropout_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the mask in the input's type.

    **Source**: `native_dropout_cpu` in aten/src/ATen/native/Dropout.cpp.
    """
    return size_bytes(args[0])


def _loss_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the elementwise loss before its reduction; a half-precision mean uses float32.

    **Source**: `mse_loss` and its like in aten/src/ATen/native/Loss.cpp.
    """
    reduction = args[2] if len(args) > 2 else _MEAN_REDUCTION
    held_bytes = size_bytes(args[0]) if reduction else 0
    return held_bytes + (size_bytes(args[0], 4) if reduction == _MEAN_REDUCTION and is_half(args[0]) else 0)


def _binary_cross_entropy_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of two temporaries of the input's size.

    **Source**: `binary_cross_entropy_with_logits` in aten/src/ATen/native/Loss.cpp.
    """
    return 2 * size_bytes(args[0]) + (size_bytes(args[0], 4) if is_half(args[0]) else 0)


def _roll_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the intermediate result of a roll along several dimensions.

    **Source**: `roll_common` in aten/src/ATen/native/TensorTransformations.h.
    """
    return size_bytes(args[0]) if len(args[1]) > 1 else 0


def _logsumexp_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the exponentials before they are summed.

    **Source**: `logsumexp_out_impl` in aten/src/ATen/native/ReduceOps.cpp.
    """
    return size_bytes(args[0])


def _upsample_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of channels-last copies of input and output, with which small images are enlarged.

    **Source**: `_use_vectorized_kernel_cond_2d` in aten/src/ATen/native/cpu/UpSampleKernel.cpp.
    """
    input_tensor = args[0]
    if input_tensor.is_contiguous(memory_format=torch.channels_last) or result.shape[-2] + result.shape[-1] > 128:
        return 0
    return size_bytes(input_tensor) + size_bytes(result)


_MAX_PACKED_BYTES: Final = 1_441_792
"""Largest packed operand measured in a matrix product, in bytes, with 2 MiB of second-level cache."""


def _attention_block_lengths(queries: int, keys: int) -> tuple[int, int]:
    """Return how many queries and how many keys are in one block of the CPU's flash attention."""
    rows = 256 if queries >= 768 else 64 if queries >= 192 else 32
    return min(rows, queries), min(512, keys)


def attention_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the total bytes of each thread's block of scores, row maxima and sums, and a block of the result.

    In half precision also a converted block, and keys and values packed for matrix tiles if that pays off. **Source**:
    `cpu_flash_attention` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[0], args[1]
    batch, heads, queries, width = map(int, query.shape)
    keys, threads = int(key.shape[2]), torch.get_num_threads()
    rows, columns = _attention_block_lengths(queries, keys)
    held_bytes = threads * 4 * (rows * columns + 2 * rows + rows * width)
    if not is_half(query):
        return held_bytes
    held_bytes += threads * 2 * rows * columns
    blocks = ceil_div(batch * heads * ceil_div(queries, rows), threads)
    causal = bool(args[4]) if len(args) > 4 else False
    work = blocks * rows * (min(queries, keys) if causal else keys) * width
    if work // (batch * key.shape[1] * keys * width) >= 4:
        held_bytes += 2 * size_bytes(key) + threads * 2 * columns * width
    return held_bytes


def attention_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of each thread's two blocks of scores, also in half precision, and of a gradient copy.

    **Source**: `cpu_flash_attention_backward` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[1], args[2]
    rows, columns = _attention_block_lengths(int(query.shape[2]), int(key.shape[2]))
    threads = torch.get_num_threads()
    held_bytes = threads * 4 * (2 * rows * columns + rows) + contiguous_copies_bytes((args[0].transpose(1, 2),))
    return held_bytes + (threads * 2 * 2 * rows * columns if is_half(query) else 0)


def matrix_product_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of contiguous copies of matrices that are neither row- nor column-major.

    In half precision also the part of the second matrix that is packed for matrix tiles, limited by the cache.
    **Source**: measured by `benchmarks/real_peaks.py --operators`; the layouts are those of oneDNN's brgemm_matmul.
    **Assumes** the measured block sizes; the bound on the error is in `differences`.
    """
    left, right = args[-2:]
    copies_bytes = sum(
        size_bytes(matrix) for matrix in (left, right) if matrix.dim() == 2 and not _is_row_or_column_major(matrix)
    )
    if not is_half(right):
        return copies_bytes
    depth, columns = map(int, right.shape[-2:])
    if not left.is_contiguous():
        columns = min(columns, 256)
    elif not right.is_contiguous() and columns > 256:
        columns = 32
    return copies_bytes + min(min(depth, 1024) * columns * 2, _MAX_PACKED_BYTES)


def _is_row_or_column_major(matrix: torch.Tensor) -> bool:
    """Return whether the matrix is contiguous in one of its two dimensions."""
    (rows, columns), (down, along) = matrix.shape, matrix.stride()
    return bool((along == 1 and down >= max(1, columns)) or (down == 1 and along >= max(1, rows)))


_formulas: dict[Any, BytesFormula | None] = {
    _aten.convolution.default: cpu_convolutions.convolution_hidden_bytes,
    _aten.convolution_backward.default: cpu_convolutions.convolution_backward_hidden_bytes,
    _aten.mkldnn_rnn_layer.default: cpu_recurrent.forward_hidden_bytes,
    _aten.mkldnn_rnn_layer_backward.default: cpu_recurrent.backward_hidden_bytes,
    _aten.native_batch_norm.default: _batch_norm_bytes,
    _aten.native_batch_norm_backward.default: _batch_norm_backward_bytes,
    _aten.native_layer_norm.default: _layer_norm_bytes,
    _aten._softmax.default: _softmax_bytes,
    _aten._softmax_backward_data.default: _softmax_bytes,
    _aten._log_softmax.default: _softmax_bytes,
    _aten._log_softmax_backward_data.default: _softmax_bytes,
    _aten.max_pool2d_with_indices.default: _pooling_bytes,
    _aten.avg_pool2d.default: _pooling_bytes,
    _aten._adaptive_avg_pool2d.default: _pooling_bytes,
    _aten.native_layer_norm_backward.default: _layer_norm_backward_bytes,
    _aten.native_group_norm_backward.default: _group_norm_backward_bytes,
    _aten._safe_softmax.default: _safe_softmax_bytes,
    _aten.native_dropout.default: _dropout_bytes,
    _aten.mean.default: _mean_bytes,
    _aten.mean.dim: _mean_bytes,
    _aten.sum.dim_IntList: _sum_bytes,
    _aten.roll.default: _roll_bytes,
    _aten.logsumexp.default: _logsumexp_bytes,
    _aten.mse_loss.default: _loss_bytes,
    _aten.smooth_l1_loss.default: _loss_bytes,
    _aten.huber_loss.default: _loss_bytes,
    _aten.binary_cross_entropy_with_logits.default: _binary_cross_entropy_bytes,
    _aten.binary_cross_entropy.default: _binary_cross_entropy_bytes,
    _aten.upsample_nearest2d.default: _upsample_bytes,
    _aten.upsample_bilinear2d.default: _upsample_bytes,
    _aten._ctc_loss_backward.default: _ctc_backward_bytes,
    _aten._ctc_loss_backward.Tensor: _ctc_backward_bytes,
    _aten.mm.default: matrix_product_bytes,
    _aten.addmm.default: matrix_product_bytes,
    _aten.bmm.default: matrix_product_bytes,
    _aten._scaled_dot_product_flash_attention_for_cpu.default: attention_bytes,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward_bytes,
    # The condition and the mask are used without a copy.
    _aten.where.self: _no_bytes,
    _aten.masked_fill.Scalar: _no_bytes,
    _aten.masked_fill_.Scalar: _no_bytes,
    _aten.copy_.default: _no_bytes,
}

_HALF_PRECISIONS: Final = ("bf16", "fp16")
_CONVOLUTION_SCRATCH_BYTES: Final = 2355 * KIB
"""Largest measured excess of a half-precision convolution over the formulas: forward pass with a stride."""
_PRODUCT_SCRATCH_BYTES: Final = MIB
"""Largest measured error of the formula for a half-precision matrix product."""
_CHECKED_CAPABILITIES: Final = ("AVX512", "AVX2")


def cpu_differences(request: TraceRequest, operators: tuple[str, ...]) -> Iterator[TraceDifference]:
    """Yield the possible errors of a trace with the CPU's operators, by the operators that ran.

    **Source**: `benchmarks/real_peaks.py --operators` and `benchmarks/trace_accuracy.py`, which compare kernels and
    whole runs with the profiler's events.
    """
    names = {name.partition(".")[0] for name in operators}
    half = request.autocast in _HALF_PRECISIONS or request.dtype in _HALF_PRECISIONS
    if half and names & {"aten::convolution", "aten::convolution_backward"}:
        yield _scratch_difference(
            "oneDNN's scratch memory for convolutions in half precision", _CONVOLUTION_SCRATCH_BYTES
        )
    if half and names & {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}:
        yield _scratch_difference(
            "oneDNN's blocks of matrices in half precision", _PRODUCT_SCRATCH_BYTES, low_bytes=-_PRODUCT_SCRATCH_BYTES
        )
    if torch.backends.cpu.get_cpu_capability() not in _CHECKED_CAPABILITIES:
        yield TraceDifference(
            name="this CPU's kernels",
            explanation="layouts and scratch memory were checked only on CPUs with AVX2 and AVX-512",
            source="benchmarks/trace_accuracy.py",
        )


def _scratch_difference(name: str, high_bytes: int, low_bytes: int = 0) -> TraceDifference:
    """Return a difference for memory that is computed by a formula, with its largest measured errors as bounds."""
    return TraceDifference(
        name=name,
        explanation="invisible to the dispatcher; computed by formula, with the largest measured error as bound",
        source="measured with the profiler: benchmarks/real_peaks.py --operators",
        low_bytes=low_bytes,
        high_bytes=high_bytes,
    )
