"""Temporary memory of the CPU's kernels, invisible to the dispatcher: copies, tables, per-thread buffers."""

import functools
from math import prod
from typing import Any, Final

import torch

from planner.trace.worker.cpu import convolutions as cpu_convolutions
from planner.trace.worker.cpu.composed import (
    COMPOSED_FORMULAS,
    BytesFormula,
    backward_hidden_bytes,
    forward_hidden_bytes,
)
from planner.trace.worker.cpu.convolutions import (
    SCRATCH_ALIGNMENT_BYTES,
    contiguous_copies_bytes,
    is_half,
    size_bytes,
    vector_units,
)
from planner.units import ceil_div, round_up

_aten: Final = torch.ops.aten
_MEAN_REDUCTION: Final = 1


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

    Integers are computed in the type of a floating-point result, or of a floating-point scalar among the operands.

    **Source**: `TensorIteratorBase::compute_types` in aten/src/ATen/TensorIterator.cpp.
    """
    operands = [value for value in args if isinstance(value, torch.Tensor) and value.dim()]
    if not operands or all(operand.is_floating_point() and operand.dtype == operands[0].dtype for operand in operands):
        return 0
    dtypes = [operand.dtype for operand in operands]
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        dtypes.append(result.dtype)
    if any(isinstance(value, float) for value in args):
        dtypes.append(torch.result_type(operands[0], 1.0))
    dtype = functools.reduce(torch.promote_types, dtypes)
    return sum(size_bytes(operand, dtype.itemsize) for operand in operands if operand.dtype != dtype)


def _converted_copy_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of a copy in the result's type, in which booleans and short integers are summed.

    **Source**: `make_reduction` in aten/src/ATen/native/ReduceOpsUtils.h.
    """
    return 0 if args[0].dtype == result.dtype else size_bytes(args[0], result.element_size())


def _sum_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the bytes that copies need in a half-precision sum over non-adjacent dimensions or to another type.

    **Source**: `sum_kernel_impl` in aten/src/ATen/native/cpu/SumKernel.cpp; measured on 10 patterns of dimensions.
    """
    tensor = args[0]
    if not is_half(tensor) or result.dtype != tensor.dtype:
        return _converted_copy_bytes(args, kwargs, result)
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


def _layer_norm_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of per-thread gradients of weight and bias, if wanted, and of contiguous copies.

    **Source**: `LayerNormBackwardKernelImplInternal` in aten/src/ATen/native/cpu/layer_norm_kernel.cpp.
    """
    if not any(args[7][1:]):
        return contiguous_copies_bytes(args[:2])
    statistics_bytes = 4 if args[5] is None else args[5].element_size()
    return 2 * torch.get_num_threads() * int(prod(args[2])) * statistics_bytes + contiguous_copies_bytes(args[:2])


def _formatted_copy_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a contiguous copy of the first operand, unless that is channels last.

    **Source**: `max_pool2d_kernel_impl` and its backward in aten/src/ATen/native/cpu/MaxPoolKernel.cpp,
    `upsample_bilinear2d_backward_kernel_impl` in UpSampleMoreKernel.cpp there, and their like.
    """
    formats = (torch.channels_last, torch.channels_last_3d)
    return 0 if any(args[0].is_contiguous(memory_format=one) for one in formats) else contiguous_copies_bytes(args[:1])


def _loss_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the elementwise loss before its reduction; a half-precision mean uses float32.

    **Source**: `mse_loss` and its like in aten/src/ATen/native/Loss.cpp.
    """
    reduction = args[2] if len(args) > 2 else _MEAN_REDUCTION
    held_bytes = size_bytes(args[0]) if reduction else 0
    return held_bytes + (size_bytes(args[0], 4) if reduction == _MEAN_REDUCTION and is_half(args[0]) else 0)


def _binary_cross_entropy_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of two temporaries of the input's size, one the unreduced loss, and of copies.

    The input is copied if it is not contiguous; a half-precision mean uses float32.

    **Source**: `binary_cross_entropy_with_logits` in aten/src/ATen/native/Loss.cpp.
    """
    reduction = args[4] if len(args) > 4 else _MEAN_REDUCTION
    mean_bytes = size_bytes(args[0], 4) if reduction == _MEAN_REDUCTION and is_half(args[0]) else 0
    temporaries_bytes = (2 if reduction else 1) * size_bytes(args[0])
    return temporaries_bytes + _log_sigmoid_bytes(args, kwargs, result) + mean_bytes


def _log_sigmoid_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a contiguous copy of the input, and of the block through which it is copied.

    **Source**: `log_sigmoid_cpu_kernel` in aten/src/ATen/native/cpu/Activation.cpp.
    """
    return contiguous_copies_bytes(args[:1]) + _transposed_block_bytes(args[0], args[0].dtype)


def _sort_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the positions along the sorted dimension, from which the indices are filled.

    **Source**: `sort_stable_out` in aten/src/ATen/native/Sorting.cpp.
    """
    tensor, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", -1)
    return 8 * int(tensor.shape[dim]) if tensor.dim() else 0


def _copy_of_input_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a copy of the input."""
    return size_bytes(args[0])


_GRAIN_ELEMENTS: Final = 32768
"""Fewest elements that are worth a thread of their own. **Source**: `GRAIN_SIZE` in aten/src/ATen/Parallel.h."""


def _median_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a copy of the input in which the reduced dimension is the last.

    **Source**: `median_with_indices_impl` in aten/src/ATen/native/Sorting.cpp.
    """
    if not args[0].dim():
        return 0
    last = args[0].transpose(args[1], -1)
    return contiguous_copies_bytes((last,)) + _transposed_block_bytes(last, last.dtype)


def _masked_select_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of the mask in 64-bit integers, and of its running sum unless one thread selects.

    **Source**: `masked_select_out_impl_cpu` in aten/src/ATen/native/TensorAdvancedIndexing.cpp.
    """
    tensor, mask = torch.broadcast_tensors(args[0], args[1])
    is_alone = torch.get_num_threads() == 1 or tensor.numel() < _GRAIN_ELEMENTS
    if is_alone and tensor.is_contiguous() and mask.is_contiguous():
        return max(0, size_bytes(mask, 8) - size_bytes(result))
    return 2 * size_bytes(tensor, 8)


_TRANSPOSED_BLOCK: Final = 60


def _transposed_copy_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of the block through which a transposed matrix is copied.

    **Source**: `copy_transpose_valid` and `copy_same_type_transpose_` in aten/src/ATen/native/Copy.cpp.
    """
    target, source = args[:2]
    is_like_source = target.is_contiguous() and target.shape == source.shape
    return _transposed_block_bytes(source, target.dtype) if is_like_source else 0


def _transposed_block_bytes(source: torch.Tensor, dtype: torch.dtype) -> int:
    """Return the size in bytes of the block through which `source` is copied to a contiguous matrix of `dtype`."""
    is_large = source.numel() >= _TRANSPOSED_BLOCK**2 and source.dtype == dtype
    is_transposed = source.dim() == 2 and source.stride() == (1, source.shape[0])
    return _TRANSPOSED_BLOCK**2 * dtype.itemsize if is_large and is_transposed else 0


def _upsample_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of channels-last copies of input and output, with which small images are enlarged.

    **Source**: `_use_vectorized_kernel_cond_2d` in aten/src/ATen/native/cpu/UpSampleKernel.cpp.
    """
    input_tensor = args[0]
    if input_tensor.is_contiguous(memory_format=torch.channels_last):
        # Images of one pixel are both; their result is contiguous.
        return 0 if result.is_contiguous(memory_format=torch.channels_last) else size_bytes(result)
    if result.shape[-2] + result.shape[-1] > 128:
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

    In half precision also a converted block, and keys and values packed for matrix tiles if there are any and it pays
    off. **Source**: `cpu_flash_attention` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp, `could_pack` in
    CPUBlas.cpp beside it.
    """
    query, key = args[0], args[1]
    batch, heads, queries, width = map(int, query.shape)
    keys, threads = int(key.shape[2]), torch.get_num_threads()
    rows, columns = _attention_block_lengths(queries, keys)
    held_bytes = threads * 4 * (rows * columns + 2 * rows + rows * width)
    if not is_half(query):
        return held_bytes
    held_bytes += threads * 2 * rows * columns
    # The first tested versions of PyTorch cannot tell whether tiles take fp16; few processors have such.
    has_half_tiles = getattr(torch.cpu, "_is_amx_fp16_supported", bool)
    if not (vector_units().has_tiles if query.dtype == torch.bfloat16 else has_half_tiles()):
        return held_bytes
    blocks = ceil_div(batch * heads * ceil_div(queries, rows), threads)
    causal = bool(args[4]) if len(args) > 4 else False
    work = blocks * rows * (min(queries, keys) if causal else keys) * width
    if work // (batch * key.shape[1] * keys * width) >= 4:
        held_bytes += 2 * size_bytes(key) + threads * 2 * columns * width
    return held_bytes


def attention_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of each thread's two blocks of scores, also in half precision, and of a gradient copy.

    Beside them the largest blocks of their products with gradients, with keys and with queries. **Source**:
    `cpu_flash_attention_backward` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[1], args[2]
    rows, columns = _attention_block_lengths(int(query.shape[2]), int(key.shape[2]))
    threads, width = torch.get_num_threads(), int(query.shape[3])
    held_bytes = threads * 4 * (2 * rows * columns + rows) + contiguous_copies_bytes((args[0].transpose(1, 2),))
    held_bytes += threads * 2 * 2 * rows * columns if is_half(query) else 0
    return held_bytes + max(
        _product_blocks_bytes(query.dtype, columns, rows, width, is_transposed=True),
        _product_blocks_bytes(query.dtype, rows, columns, width),
    )


def _fused_attention_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: tuple[torch.Tensor, ...]) -> int:
    """Return the bytes that fused attention in evaluation holds beside its results.

    **Formula**: max(queries, keys and values twice; them once with the scores; them with the attended values and the
    result, and with the scores if they are returned; with all that is returned, and the scores), with the blocks of the
    product that makes them.

    **Source**: `native_multi_head_attention_cpu` in aten/src/ATen/native/transformers/attention.cpp.
    """
    output, weights = result
    scores_bytes = _scores_bytes(args[0], args[4])
    returned_bytes = size_bytes(output)
    if weights is None or not weights.numel():
        return max(_fused_attention_moments_bytes(args[0], args[4], 0)) - returned_bytes
    returned_bytes += size_bytes(weights)
    last_bytes = 3 * size_bytes(args[0]) + scores_bytes + returned_bytes
    return max(last_bytes, *_fused_attention_moments_bytes(args[0], args[4], scores_bytes)) - returned_bytes


def _fused_layer_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the bytes that a fused encoder layer in evaluation holds beside its result.

    **Formula**: that of fused attention; or the inner layer with its input and its result, and the blocks of products.
    Norms that come first hold their result meanwhile. **Source**: `transformer_encoder_layer_forward` in
    aten/src/ATen/native/transformers/transformer.cpp.
    """
    source, norm_first, inner_weight = args[0], args[8], args[14]
    attention = max(_fused_attention_moments_bytes(source, args[2], 0))
    inner_width, width = map(int, inner_weight.shape)
    rows = source.numel() // width
    inner = 2 * size_bytes(source) + size_bytes(source) // width * inner_width
    inner += max(
        _product_blocks_bytes(source.dtype, rows, width, inner_width),
        _product_blocks_bytes(source.dtype, rows, inner_width, width),
    )
    return max(attention, inner) + (size_bytes(source) if norm_first else 0) - size_bytes(source)


def _scores_bytes(query: torch.Tensor, heads: int) -> int:
    """Return the size in bytes of the scores of self-attention."""
    batch, length, _ = map(int, query.shape)
    return batch * heads * length**2 * query.element_size()


def _fused_attention_moments_bytes(query: torch.Tensor, heads: int, kept_bytes: int) -> tuple[int, ...]:
    """Return the bytes that fused attention holds at each moment, of the scores `kept_bytes` to its end."""
    batch, length, width = map(int, query.shape)
    projected_bytes = 3 * size_bytes(query)
    return (
        projected_bytes + _product_blocks_bytes(query.dtype, batch * length, width, 3 * width),
        2 * projected_bytes,
        projected_bytes
        + _scores_bytes(query, heads)
        + _product_blocks_bytes(query.dtype, length, width // heads, length),
        projected_bytes + kept_bytes + 2 * size_bytes(query),
    )


def matrix_product_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of contiguous copies of matrices that are neither row- nor column-major.

    In half precision also blocks of them; with matrix tiles, the part of the second matrix that is packed, limited by
    the cache. **Source**: measured by `benchmarks/real_peaks.py --operators`; the layouts are those of oneDNN's
    brgemm_matmul. **Assumes** the measured block sizes; the bound on the error is in `differences`.
    """
    left, right = args[-2:]
    if left.layout is not torch.strided:
        # `_sparse_mm` adds to zeros, out of place. **Source**: aten/src/ATen/native/sparse/SparseTensorMath.cpp.
        return size_bytes(result) if left is args[0] else 0
    copies_bytes = sum(
        size_bytes(matrix) for matrix in (left, right) if matrix.dim() == 2 and not _is_row_or_column_major(matrix)
    )
    if not is_half(right):
        return copies_bytes
    depth, columns = map(int, right.shape[-2:])
    if right.dtype == torch.bfloat16 and not vector_units().has_tiles:
        *batch, rows, _ = map(int, left.shape)
        blocks_bytes = _product_blocks_bytes(
            right.dtype, rows, depth, columns, is_transposed=left.stride(-1) != 1, count=prod(batch)
        )
        return copies_bytes + blocks_bytes
    if not left.is_contiguous():
        columns = min(columns, 256)
    elif not right.is_contiguous() and columns > 256:
        columns = 32
    return copies_bytes + min(min(depth, 1024) * columns * 2, _MAX_PACKED_BYTES)


_MAX_ROWS, _MAX_DEPTH, _MAX_COLUMNS = 256, 512, 64
"""Sizes of the largest blocks of a product in brain floats, of which as many are made evenly as are needed."""
_MAX_BLOCKS_AT_ONCE: Final = 16
_DEPTH_STEP: Final = 32
_WORKSPACE_BYTES: Final = 1024


def _product_blocks_bytes(
    dtype: torch.dtype, rows: int, depth: int, columns: int, *, is_transposed: bool = False, count: int = 1
) -> int:
    """Return the bytes of the blocks in which a product of brain floats is computed by vector units.

    One of the second matrix, or two if it is deep; one of the result in float32; and one of the first matrix if it is
    transposed, for more columns of the result at once where there is more than one in depth. **Source**:
    `init_aux_values` in oneDNN's src/cpu/x64/matmul/brgemm_matmul_utils.cpp (`buffer_a`, `buffer_b`, `buffer_c`,
    `wsp_tile`), and `mkldnn_gemm` and `checksize` in aten/src/ATen/native/mkldnn/Matmul.cpp, which leave small products
    out. The blocks' sizes were measured: 292 of 300 random products are exact.
    """
    units = vector_units()
    if dtype != torch.bfloat16 or units.has_tiles or not units.has_avx512 or count * rows * depth * columns <= 16**3:
        return 0
    block_rows = ceil_div(rows, ceil_div(rows, _MAX_ROWS))
    block_depth = round_up(min(depth, _MAX_DEPTH), _DEPTH_STEP)
    weight_bytes = 2 * block_depth * _MAX_COLUMNS
    result_bytes = 4 * block_rows * min(columns, _MAX_COLUMNS)
    if not is_transposed or columns == 1:
        return _WORKSPACE_BYTES + weight_bytes * (2 if depth > 2 * _MAX_DEPTH else 1) + result_bytes
    # Rows of a multiple of 1 KiB would meet in the cache.
    padding = _DEPTH_STEP if block_depth == _MAX_DEPTH else 0
    if depth > _MAX_DEPTH:
        blocks = ceil_div(columns, _MAX_COLUMNS)
        result_bytes *= next(number for number in range(_MAX_BLOCKS_AT_ONCE, 0, -1) if blocks % number == 0)
    source_bytes = 2 * block_rows * (block_depth + padding) + SCRATCH_ALIGNMENT_BYTES
    return _WORKSPACE_BYTES + weight_bytes + result_bytes + source_bytes


def _is_row_or_column_major(matrix: torch.Tensor) -> bool:
    """Return whether the matrix is contiguous in one of its two dimensions."""
    (rows, columns), (down, along) = matrix.shape, matrix.stride()
    return bool((along == 1 and down >= max(1, columns)) or (down == 1 and along >= max(1, rows)))


def _copies_formula(first: int, end: int) -> BytesFormula:
    """Return the formula for contiguous copies of the arguments from place `first` up to, but excluding, `end`."""
    return lambda args, _kwargs, _result: contiguous_copies_bytes(args[first:end])


_formulas: dict[Any, BytesFormula | None] = {
    **COMPOSED_FORMULAS,
    _aten.convolution.default: cpu_convolutions.convolution_hidden_bytes,
    _aten.convolution_backward.default: cpu_convolutions.convolution_backward_hidden_bytes,
    _aten.mkldnn_rnn_layer.default: forward_hidden_bytes,
    _aten.mkldnn_rnn_layer_backward.default: backward_hidden_bytes,
    # A scale and a shift per channel. **Source**: `batch_norm_cpu_transform_input_template` in Normalization.cpp.
    _aten.native_batch_norm.default: lambda args, _, __: 2 * args[0].shape[1] * 4 if args[0].dim() > 1 else 0,
    _aten.native_batch_norm_backward.default: _batch_norm_backward_bytes,
    # **Source**: `layer_norm_cpu` in layer_norm.cpp.
    _aten.native_layer_norm.default: _copies_formula(0, 1),
    _aten.native_layer_norm_backward.default: _layer_norm_backward_bytes,
    # Two sums per image and channel. **Source**: `GroupNormBackwardKernelImpl` in cpu/group_norm_kernel.cpp.
    _aten.native_group_norm_backward.default: lambda args, _, __: 2 * int(prod(args[1].shape[:2])) * 4,
    # Copies of the scores, or of gradient and result. **Source**: `softmax_cpu_out` and its like in SoftMax.cpp.
    **dict.fromkeys(
        (
            _aten._softmax.default,
            _aten._softmax_backward_data.default,
            _aten._log_softmax.default,
            _aten._log_softmax_backward_data.default,
        ),
        _copies_formula(0, 2),
    ),
    _aten._safe_softmax.default: _safe_softmax_bytes,
    # The mask in the input's type. **Source**: `native_dropout_cpu` in Dropout.cpp.
    _aten.native_dropout.default: _copy_of_input_bytes,
    # The float32 copy from which a half-precision mean is computed. **Source**: `mean` in ReduceOps.cpp.
    **dict.fromkeys(
        (_aten.mean.default, _aten.mean.dim),
        lambda args, _, result: size_bytes(args[0], 4) + size_bytes(result, 4) if is_half(args[0]) else 0,
    ),
    _aten.sum.dim_IntList: _sum_bytes,
    **dict.fromkeys(
        (_aten.sum.default, _aten.prod.default, _aten.prod.dim_int, _aten.cumsum.default), _converted_copy_bytes
    ),
    # A copy in booleans. **Source**: `allany_impl` in ReduceOps.cpp.
    **dict.fromkeys(
        (_aten.any.default, _aten.any.dim, _aten.all.default, _aten.all.dim),
        lambda args, _, __: 0 if args[0].dtype in (torch.bool, torch.uint8) else size_bytes(args[0], 1),
    ),
    _aten.sort.default: _sort_bytes,
    _aten.sort.stable: _sort_bytes,
    # Values and indices, which are partly sorted. **Source**: `kthvalue_out_impl_cpu` in Sorting.cpp.
    _aten.kthvalue.default: lambda args, _, __: size_bytes(args[0]) + size_bytes(args[0], 8),
    # A copy that is partly sorted. **Source**: `median_impl` in Sorting.cpp.
    _aten.median.default: _copy_of_input_bytes,
    _aten.nanmedian.default: _copy_of_input_bytes,
    _aten.median.dim: _median_bytes,
    _aten.nanmedian.dim: _median_bytes,
    # Random numbers. **Source**: `multinomial_out` in Distributions.cpp.
    _aten.multinomial.default: _copy_of_input_bytes,
    _aten.masked_select.default: _masked_select_bytes,
    # The elements that a mask places. **Source**: `masked_scatter__cpu` in TensorAdvancedIndexing.cpp.
    _aten.masked_scatter.default: _copies_formula(2, 3),
    _aten.masked_scatter_.default: _copies_formula(2, 3),
    # The result's first storage, made in the input's size and then resized. **Source**: `im2col_out_cpu_template` in
    # Im2Col.cpp, `col2im_out_cpu_template` in Col2Im.cpp.
    **dict.fromkeys(
        (_aten.im2col.default, _aten.col2im.default),
        lambda args, _, result: size_bytes(args[0]) if size_bytes(result) > size_bytes(args[0]) else 0,
    ),
    # The result of a roll along the first of several dimensions. **Source**: `roll_common` in TensorTransformations.h.
    _aten.roll.default: lambda args, _, __: size_bytes(args[0]) if len(args[1]) > 1 else 0,
    # The exponentials before they are summed, and the maxima. **Source**: `logsumexp_out_impl` in ReduceOps.cpp.
    _aten.logsumexp.default: lambda args, _, result: size_bytes(args[0]) + size_bytes(result),
    _aten.mse_loss.default: _loss_bytes,
    _aten.smooth_l1_loss.default: _loss_bytes,
    _aten.huber_loss.default: _loss_bytes,
    _aten.binary_cross_entropy_with_logits.default: _binary_cross_entropy_bytes,
    # Two temporaries of the input's size. **Source**: `soft_margin_loss_backward_out` in Loss.cpp.
    _aten.soft_margin_loss_backward.default: lambda args, _, __: 2 * size_bytes(args[1]),
    _aten.upsample_nearest2d.default: _upsample_bytes,
    _aten._upsample_nearest_exact2d.default: _upsample_bytes,
    _aten.upsample_bilinear2d.default: _upsample_bytes,
    # The probabilities of the paths from the end. **Source**: `log_beta` of `ctc_loss_backward_cpu_template` in
    # LossCTC.cpp.
    **dict.fromkeys(
        (_aten._ctc_loss_backward.default, _aten._ctc_loss_backward.Tensor), lambda args, _, __: size_bytes(args[6])
    ),
    _aten.log_sigmoid_forward.default: _log_sigmoid_bytes,
    _aten._native_multi_head_attention.default: _fused_attention_bytes,
    _aten._transformer_encoder_layer_fwd.default: _fused_layer_bytes,
    _aten.mm.default: matrix_product_bytes,
    _aten.addmm.default: matrix_product_bytes,
    _aten.bmm.default: matrix_product_bytes,
    _aten._scaled_dot_product_flash_attention_for_cpu.default: attention_bytes,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward_bytes,
    # Operands between which a condition chooses, itself used without a copy. **Source**: `where` in TensorCompare.cpp.
    _aten.where.self: lambda args, kwargs, result: _promoted_operands_bytes(args[1:], kwargs, result),
    **dict.fromkeys(
        (
            _aten.max_pool2d_with_indices.default,
            _aten.avg_pool2d.default,
            _aten._adaptive_avg_pool2d.default,
            _aten.max_pool2d_with_indices_backward.default,
            _aten.max_pool3d_with_indices.default,
            _aten.max_pool3d_with_indices_backward.default,
            _aten.adaptive_max_pool2d.default,
            _aten.adaptive_max_pool2d_backward.default,
            _aten.avg_pool2d_backward.default,
            _aten._adaptive_avg_pool2d_backward.default,
            _aten.upsample_nearest2d_backward.default,
            _aten.upsample_nearest3d_backward.default,
            _aten.upsample_bilinear2d_backward.default,
            _aten.upsample_trilinear3d_backward.default,
            _aten.reflection_pad2d_backward.default,
            _aten.replication_pad2d_backward.default,
            _aten.pixel_shuffle.default,
            _aten.pixel_unshuffle.default,
        ),
        _formatted_copy_bytes,
    ),
    # A copy of the input, or of the incoming gradient. **Source**: `avg_pool3d_out_cpu` in AveragePool3d.cpp,
    # `nll_loss2d_forward_out_frame` in NLLLoss2d.cpp, `embedding_dense_backward_cpu` in Embedding.cpp, and their like.
    **dict.fromkeys(
        (
            _aten.avg_pool3d.default,
            _aten.avg_pool3d_backward.default,
            _aten._adaptive_avg_pool3d_backward.default,
            _aten.upsample_nearest1d_backward.default,
            _aten.upsample_linear1d_backward.default,
            _aten.upsample_bicubic2d_backward.default,
            _aten.reflection_pad1d_backward.default,
            _aten.grid_sampler_2d_backward.default,
            _aten.embedding_dense_backward.default,
            _aten.nll_loss2d_forward.default,
        ),
        _copies_formula(0, 1),
    ),
    # The mask is used without a copy.
    _aten.masked_fill.Scalar: None,
    _aten.masked_fill_.Scalar: None,
    _aten.copy_.default: _transposed_copy_bytes,
    # As of `copy_`.
    _aten.clone.default: lambda args, _, result: (
        _transposed_block_bytes(args[0], result.dtype) if result.is_contiguous() else 0
    ),
}
"""Formulas by operator; files are those of aten/src/ATen/native."""
