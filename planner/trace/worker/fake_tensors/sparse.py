"""Sparse tensors of coordinates and values: how many elements they store, which PyTorch's own rules leave at none."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from planner.trace.worker.refusals import BY_LAYOUT, UntraceableError

_aten: Final = torch.ops.aten
_COMPLETE: Final = frozenset(
    getattr(_aten, name)
    for name in (
        *("_sparse_coo_tensor_with_dims_and_tensors", "_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_unsafe"),
        *("detach", "alias", "_coalesced_", "zeros", "empty"),
    )
)
"""Operators that PyTorch's rules follow."""
_ELEMENTWISE: Final = frozenset(
    getattr(_aten, name)
    for name in (
        *("mul", "div", "neg", "abs", "pow", "sqrt", "relu", "tanh", "sin", "log1p", "expm1", "sign", "clone"),
        *("_to_copy", "t", "transpose", "unsqueeze", "sparse_mask", "_sparse_softmax", "_sparse_log_softmax"),
    )
)
"""Operators whose result stores as many elements as their sparse argument, in tensors of its own."""
_MOVED: Final = frozenset((_aten.t, _aten.transpose))


def complete_sparse(
    func: Any,
    args: tuple[Any, ...],
    result: Tensor,
    distinct_count: Callable[[int], int],
    positions_of: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return the sparse `result` of `func` with as many elements as a real run stores; call it in the mode.

    `distinct_count` tells how many of so many positions differ, `positions_of` where a dense tensor is not 0.

    **Source**: aten/src/ATen/native/sparse, SparseTensor.cpp and cuda/SparseCUDATensor.cu: a sum of sparse tensors
    stores the elements of both, `coalesce` those at different positions.

    Raises:
        UntraceableError: If it is not known how many elements `func` makes.
    """
    packet = func._overloadpacket
    if packet in _COMPLETE:
        return result
    sparse = [value for value in args if isinstance(value, Tensor) and value.layout is torch.sparse_coo]
    count, indices, is_coalesced = None, None, False
    if packet is _aten._embedding_bag_backward:
        count, indices = args[1].numel(), args[1].reshape(1, -1)
    elif packet is _aten._to_sparse and not sparse:
        count, is_coalesced = positions_of(args[0]).shape[0], True
    elif packet is _aten._coalesce:
        count, is_coalesced = distinct_count(sparse[0]._nnz()), True
    elif packet is _aten.add and len(sparse) == 2:
        count = sparse[0]._nnz() + sparse[1]._nnz()
    elif packet in _ELEMENTWISE and sparse:
        count = min(tensor._nnz() for tensor in sparse)
        is_coalesced = packet not in _MOVED and all(tensor.is_coalesced() for tensor in sparse)
    if count is None:
        raise UntraceableError(*BY_LAYOUT["sparse_coo"])
    dimensions = result.sparse_dim()
    if indices is None:
        indices = torch.empty((dimensions, count), dtype=torch.int64)
    values = torch.empty((count, *result.shape[dimensions:]), dtype=result.dtype)
    size, form = tuple(result.shape), {"dtype": result.dtype, "layout": torch.sparse_coo, "is_coalesced": is_coalesced}
    completed: Tensor = _aten._sparse_coo_tensor_with_dims_and_tensors(
        dimensions, len(size) - dimensions, size, indices, values, **form
    )
    return completed
