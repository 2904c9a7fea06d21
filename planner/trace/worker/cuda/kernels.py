"""Temporary memory of CUDA kernels from the caching allocator, in addition to inputs and outputs."""

from collections.abc import Callable
from math import prod
from typing import Any, Final

import torch
from torch import Tensor

from planner.trace.worker.cuda import rnn as cuda_rnn
from planner.trace.worker.cuda.attention import Capability
from planner.trace.worker.cuda.dispatch import aten_overload, operator_exists
from planner.units import ceil_div, round_up

Arguments = tuple[Any, ...]
BytesFormula = Callable[[Arguments, Any, Capability], int]

_broadcast_shapes: Final[Any] = torch.broadcast_shapes
_HALF_DTYPES: Final = (torch.float16, torch.bfloat16)
_INDEX_BYTES: Final = 8
_MAX_UNSORTED_INDICES: Final = 3072
_ROWS_PER_PART: Final = 10
_MAX_KEY_SPLITS: Final = 200


def hidden_bytes(func: Any, args: Arguments, result: Any, capability: Capability) -> int:
    """Return the maximum bytes held by CUDA's kernel of `func` in addition to its inputs and `result`.

    **Source**: PyTorch 2.13, as cited at each formula; 0 without a formula. cuBLAS's workspace is counted elsewhere,
    and bounds for closed libraries are in `uncertainty`.
    """
    formula = _FORMULAS.get(func)
    return formula(args, result, capability) if formula is not None else 0


def flash_backward_bytes(query: Tensor, key: Tensor) -> int:
    """Return the size in bytes of fp32 sums of query gradients, row sums, and per-head key gradients.

    **Formula**: b·h·(s + s·d)·4 with s rounded up to 128 and d to 32 (64 above 128); for grouped queries 2·b·h·k·d.
    **Source**: `mha_bwd` of aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp.
    """
    batch, heads, rows, head = query.shape
    rows, wide = round_up(rows, 128), round_up(head, 32 if head <= 128 else 64)
    sums = batch * heads * (rows + rows * wide) * 4
    grouped = 2 * batch * heads * key.shape[2] * head * key.element_size() if key.shape[1] != heads else 0
    return sums + grouped


def _flash_backward_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes that the backward pass of flash attention needs beyond the gradients."""
    grad, query, key, out = (_tensor_argument(args, place) for place in (0, 1, 2, 4))
    return _copies_bytes(grad.transpose(1, 2), out.transpose(1, 2)) + flash_backward_bytes(query, key)


def _efficient_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of the fp32 accumulator for half-precision results with wide heads.

    **Source**: `kNeedsOutputAccumulatorBuffer` of …/mem_eff_attention/kernel_forward.h.
    """
    query, value = _tensor_argument(args, 0), _tensor_argument(args, 2)
    if query.dtype not in _HALF_DTYPES or value.shape[-1] <= 128:
        return 0
    return prod(query.shape[:-1]) * value.shape[-1] * 4


def _efficient_backward_bytes(args: Arguments, _result: Any, capability: Capability) -> int:
    """Return the size in bytes of the workspace for the query gradient in fp32 tiles, and of the row sums.

    **Source**: `workspace_size` and `kKernelComputesDelta` of …/mem_eff_attention/kernel_backward.h and
    `_efficient_attention_backward` of …/transformers/cuda/attention_backward.cu. **Assumes** tiles of 64 × 64, and of
    128 × 128 for heads between 65 and 128 in half precision.
    """
    grad, query, key, value = (_tensor_argument(args, place) for place in range(4))
    batch, heads, rows, head = query.shape
    half = query.dtype in _HALF_DTYPES
    tile = 128 if 64 < head <= 128 and half else 64
    tiles = ceil_div(rows, tile) * ceil_div(head, tile)
    values = tiles * (tile * tile + 4)
    if half and head > 128:
        # With such wide heads, the gradients of keys and values do not fit into registers either.
        splits = max(1, min(ceil_div(key.shape[2], tile), _MAX_KEY_SPLITS // (batch * heads)))
        values += splits * tile * (round_up(head, tile) + round_up(value.shape[-1], tile))
    workspace = batch * heads * values * 4
    in_kernel = half and (head <= tile or not (7, 0) <= capability < (7, 5))
    sums = batch * heads * rows * 4 if in_kernel else (3 if half else 1) * grad.numel() * 4
    return workspace + sums + _copies_bytes(grad.transpose(1, 2))


def _softmax_backward_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of the product of gradient and output.

    **Source**: `softmax_backward_cuda_out` of aten/src/ATen/native/cuda/SoftMax.cu.
    """
    grad, output = _tensor_argument(args, 0), _tensor_argument(args, 1)
    return grad.numel() * max(grad.element_size(), output.element_size()) + _copies_bytes(output)


def _embedding_backward_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of sorted indices, and of fp32 partial sums of up to ten rows per index.

    **Source**: `embedding_dense_backward_cuda` of aten/src/ATen/native/cuda/Embedding.cu and
    `embedding_backward_cuda_kernel` of EmbeddingBackwardKernel.cu.
    """
    grad, indices, rows, by_frequency = (
        _tensor_argument(args, 0),
        _tensor_argument(args, 1),
        int(args[2]),
        bool(args[4]),
    )
    count, itemsize = indices.numel(), indices.element_size()
    if count <= _MAX_UNSORTED_INDICES and not by_frequency:
        return _copies_bytes(grad)
    segments = min(count, rows)
    parts = count // _ROWS_PER_PART + segments
    integers = (3 if by_frequency else 2) * count + 3 * segments + parts
    return integers * itemsize + parts * grad.shape[-1] * max(4, grad.element_size()) + _copies_bytes(grad)


def _index_put_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of flat indices, their sorted order and the sort's copies, if values are accumulated.

    **Source**: `index_put_with_sort_kernel` of aten/src/ATen/native/cuda/Indexing.cu; CUB's radix sort needs another
    key and value for each item.
    """
    indices, values = args[1], args[2]
    if not (len(args) > 3 and args[3]):
        return 0
    count = int(prod(_broadcast_shapes(*(index.shape for index in indices if index is not None))))
    return 6 * count * _INDEX_BYTES + _copies_bytes(values)


def _group_norm_backward_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of three values per channel and sample, and two per group.

    **Source**: `GroupNormBackwardKernelImplInternal` of aten/src/ATen/native/cuda/group_norm_kernel.cu.
    """
    batch, channels, groups = int(args[5]), int(args[6]), int(args[8])
    return (3 * batch * channels + 2 * batch * groups) * 4


def _product_bytes(args: Arguments, result: Any, _capability: Capability) -> int:
    """Return the size in bytes of copies that a matrix product makes.

    **Formula**: of a sparse matrix, 4·(rows + 1) for the rows' ends and 4 for each stored element, in int32, and the
    result column by column.
    **Source**: `s_addmm_out_sparse_dense_cuda_worker` of sparse/cuda/SparseCUDATensorMath.cu and
    `s_addmm_out_csr_sparse_dense_cuda_worker` of sparse/cuda/SparseBlasLegacy.cpp.
    """
    left, right = args[-2:]
    if left.layout is torch.sparse_coo:
        numbers: int = left.shape[0] + 1 + left._nnz()
        return 4 * numbers + _size_bytes(result)
    return sum(_size_bytes(matrix) for matrix in (left, right) if not _suits_cublas(matrix))


def _suits_cublas(matrix: Tensor) -> bool:
    """Return whether cuBLAS can read the matrix without a copy: row- or column-major."""
    rows, columns = matrix.shape[-2:]
    down, across = matrix.stride()[-2:]
    return (across == 1 and down >= max(1, columns)) or (down == 1 and across >= max(1, rows))


def _layout_copies_bytes(input_tensor: Tensor, weight: Tensor, *others: Tensor) -> int:
    """Return the size in bytes of copies to the memory format that cuDNN uses for the convolution."""
    channels_last_format = {4: torch.channels_last, 5: torch.channels_last_3d}.get(input_tensor.dim())
    copy_format = torch.contiguous_format
    for tensor in (input_tensor, weight):
        if (
            channels_last_format is not None
            and tensor.is_contiguous(memory_format=channels_last_format)
            and not tensor.is_contiguous()
        ):
            copy_format = channels_last_format
    tensors = (input_tensor, weight, *others)
    return sum(_size_bytes(tensor) for tensor in tensors if not tensor.is_contiguous(memory_format=copy_format))


def _rnn_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of cuDNN's workspace, and of a batch-first input transposed to steps first.

    **Source**: `_cudnn_rnn` of aten/src/ATen/native/cudnn/RNN.cpp.
    """
    call = cuda_rnn.RnnCall.from_forward_arguments(args)
    return cuda_rnn.workspace_bytes(call) + _transposed_copy_bytes(args[0], args[10])


def _rnn_backward_bytes(args: Arguments, _result: Any, _capability: Capability) -> int:
    """Return the size in bytes of cuDNN's workspace, and of transposed copies of batch-first tensors."""
    call, grad = cuda_rnn.RnnCall.from_backward_arguments(args), args[7]
    copies = sum(_transposed_copy_bytes(tensor, args[14]) for tensor in (args[0], grad) if tensor is not None)
    return cuda_rnn.workspace_bytes(call) + copies


def _transposed_copy_bytes(tensor: Tensor, batch_first: bool) -> int:
    """Return the size in bytes of a copy with the steps first, if `tensor` has the batch first."""
    steps_first = tensor.transpose(0, 1) if batch_first and tensor.dim() == 3 else tensor
    return _copies_bytes(steps_first)


def _tensor_argument(args: Arguments, place: int) -> Tensor:
    """Return the positional argument at `place` as a tensor."""
    tensor: Tensor = args[place]
    return tensor


def _copies_bytes(*tensors: Tensor) -> int:
    """Return the size in bytes of contiguous copies of the non-contiguous tensors among `tensors`."""
    return sum(_size_bytes(tensor) for tensor in tensors if not tensor.is_contiguous())


def _size_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _copies_formula(*places: int) -> BytesFormula:
    """Return the formula for contiguous copies of the non-contiguous arguments at `places`."""
    return lambda args, _result, _capability: _copies_bytes(*(args[place] for place in places))


_FORMULAS: Final[dict[Any, BytesFormula]] = {
    aten_overload(name): formula
    for name, formula in {
        "_scaled_dot_product_flash_attention_backward": _flash_backward_bytes,
        "_scaled_dot_product_efficient_attention": _efficient_bytes,
        "_scaled_dot_product_efficient_attention_backward": _efficient_backward_bytes,
        "_softmax": _copies_formula(0),
        "_log_softmax": _copies_formula(0),
        "_softmax_backward_data": _softmax_backward_bytes,
        "_log_softmax_backward_data": _copies_formula(0, 1),
        # The softmax, and one-byte masks for each score and each row. **Source**: `_safe_softmax` of
        # transformers/attention.cpp.
        "_safe_softmax": lambda _, result, __: (
            _size_bytes(result) + result.numel() + result.numel() // max(1, result.shape[-1])
        ),
        "embedding_dense_backward": _embedding_backward_bytes,
        **dict.fromkeys(("index_put", "index_put_", "_unsafe_index_put", "_index_put_impl_"), _index_put_bytes),
        "native_layer_norm": _copies_formula(0),
        "native_layer_norm_backward": _copies_formula(0, 1),
        "_fused_rms_norm": _copies_formula(0),
        "_fused_rms_norm_backward": _copies_formula(0, 1),
        # A scale and a shift per channel and sample. **Source**: `GroupNormKernelImplInternal` of
        # cuda/group_norm_kernel.cu.
        "native_group_norm": lambda args, _, __: 2 * int(args[3]) * int(args[4]) * 4,
        "native_group_norm_backward": _group_norm_backward_bytes,
        # The loss before its reduction. **Source**: `mse_loss_out`, `smooth_l1_loss_out` and `huber_loss` of Loss.cpp.
        **dict.fromkeys(
            ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
            lambda args, result, _: 0 if result.dim() else _size_bytes(args[0]),
        ),
        # The log-sigmoid, and the elementwise loss. **Source**: `binary_cross_entropy_with_logits` of Loss.cpp.
        "binary_cross_entropy_with_logits": lambda args, result, _: (1 if result.dim() else 2) * _size_bytes(args[0]),
        # The exponentials before they are summed. **Source**: `logsumexp_out_impl` of ReduceOps.cpp.
        "logsumexp": lambda args, _, __: _size_bytes(args[0]),
        # The tensor rolled over the first of several dimensions. **Source**: `roll_common` of TensorTransformations.h.
        "roll": lambda args, _, __: _size_bytes(args[0]) if len(args[1]) > 1 else 0,
        # Copies of matrices that are neither row- nor column-major. **Source**: `prepare_matrix_for_cublas` of
        # cuda/Blas.cpp.
        **dict.fromkeys(("mm", "addmm", "_sparse_addmm", "bmm", "baddbmm"), _product_bytes),
        # Copies to cuDNN's memory format: channels last if input or weight has it, else contiguous. **Source**:
        # `cudnn_conv_suggest_memory_format` of ConvUtils.h.
        "convolution": lambda args, _, __: _layout_copies_bytes(args[0], args[1]),
        "convolution_backward": lambda args, _, __: _layout_copies_bytes(args[1], args[2], args[0]),
        "_cudnn_rnn": _rnn_bytes,
        "_cudnn_rnn_backward": _rnn_backward_bytes,
    }.items()
    if operator_exists(name)
}
"""Formulas by operator; files are those of aten/src/ATen/native."""
