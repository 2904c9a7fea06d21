"""What products of matrices and attention hold on the CPU: blocks for each thread, and matrices laid out anew."""

from typing import Any, Final

import torch

from planner.trace.worker.cpu_copies import bytes_of, bytes_of_copies, is_half
from planner.units import ceil_div

_PACKED_BYTES: Final = 1_441_792
"""The most that a product was seen to lay out anew at once, with 2 MiB of second-level cache."""


def _splits(queries: int, keys: int) -> tuple[int, int]:
    rows = 256 if queries >= 768 else 64 if queries >= 192 else 32
    return min(rows, queries), min(512, keys)


def attention(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each thread, a block of scores, its maxima and sums, and a block of the result.

    In half precision also that block, and keys and values in the order that matrix tiles want, where that pays.
    **Source**: `cpu_flash_attention` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[0], args[1]
    batch, heads, queries, width = map(int, query.shape)
    keys, threads = int(key.shape[2]), torch.get_num_threads()
    rows, columns = _splits(queries, keys)
    held = threads * 4 * (rows * columns + 2 * rows + rows * width)
    if not is_half(query):
        return held
    held += threads * 2 * rows * columns
    blocks = ceil_div(batch * heads * ceil_div(queries, rows), threads)
    causal = bool(args[4]) if len(args) > 4 else False
    work = blocks * rows * (min(queries, keys) if causal else keys) * width
    if work // (batch * key.shape[1] * keys * width) >= 4:
        held += 2 * bytes_of(key) + threads * 2 * columns * width
    return held


def attention_backward(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """For each thread, two blocks of scores, in half precision in that too; the gradient with heads after positions.

    **Source**: `cpu_flash_attention_backward` in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    query, key = args[1], args[2]
    rows, columns = _splits(int(query.shape[2]), int(key.shape[2]))
    threads = torch.get_num_threads()
    held = threads * 4 * (2 * rows * columns + rows) + bytes_of_copies((args[0].transpose(1, 2),))
    return held + (threads * 2 * 2 * rows * columns if is_half(query) else 0)


def product(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Matrices in one piece that lie neither by rows nor by columns, such as those that repeat one number.

    In half precision also the second matrix in the order that matrix tiles want, as much as the cache holds of it.
    **Source**: measured by `benchmarks/real_peaks.py --operators`; the layouts are those that oneDNN's brgemm_matmul
    wants.
    **Assumes** blocks as they were seen; the bound of what may be missing is in `cpu_bounds`.
    """
    left, right = args[-2:]
    apart = sum(
        bytes_of(matrix) for matrix in (left, right) if matrix.dim() == 2 and not _is_by_rows_or_columns(matrix)
    )
    if not is_half(right):
        return apart
    depth, columns = map(int, right.shape[-2:])
    if not left.is_contiguous():
        columns = min(columns, 256)
    elif not right.is_contiguous() and columns > 256:
        columns = 32
    return apart + min(min(depth, 1024) * columns * 2, _PACKED_BYTES)


def _is_by_rows_or_columns(matrix: torch.Tensor) -> bool:
    (rows, columns), (down, along) = matrix.shape, matrix.stride()
    return bool((along == 1 and down >= max(1, columns)) or (down == 1 and along >= max(1, rows)))
