"""Temporary memory of the CPU's kernels that run other operators, and of LSTM layers, which oneDNN runs."""

from collections.abc import Callable
from math import prod
from typing import Any, Final, NamedTuple

import torch

from planner.trace.worker.cpu.convolutions import size_bytes
from planner.units import round_up

BytesFormula = Callable[[tuple[Any, ...], dict[str, Any], Any], int]
"""Function of an operator's arguments, keyword arguments and result."""

_PAGE_BYTES: Final = 4096
_GATES: Final = 4
_ALIGNMENT_BYTES: Final = 4664
"""Bytes that oneDNN adds to a scratchpad for alignment; measured, the same on every shape."""


class RnnLayer(NamedTuple):
    """Sizes of one layer in one direction: steps, batch, input width, state width, bytes per element."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    itemsize: int

    @property
    def state_bytes(self) -> int:
        """Return the size of one hidden state in bytes."""
        return self.batch * self.hidden * self.itemsize


def _rnn_layer(input_tensor: torch.Tensor, hidden: int) -> RnnLayer:
    """Return the sizes of a recurrent layer with this input and `hidden` units."""
    steps, batch, inputs = input_tensor.shape
    return RnnLayer(steps, batch, inputs, hidden, input_tensor.element_size())


def _padded_row_length(elements: int, itemsize: int) -> int:
    """Return the padded row length in elements of a oneDNN matrix, which avoids cache conflicts between rows.

    **Source**: `get_good_ld` in oneDNN's src/cpu/rnn/rnn_utils.cpp.
    """
    row = round_up(elements, 64 // itemsize)
    return row + 64 // itemsize if row % 256 == 0 else row


def _page_rounded_bytes(size: int) -> int:
    """Return `size` bytes rounded up to whole memory pages."""
    return round_up(size, _PAGE_BYTES)


def rnn_workspace_bytes(input_tensor: torch.Tensor, hidden: int) -> int:
    """Return the size in bytes of the workspace that the forward pass saves for the backward pass.

    **Formula**: gates, outputs, states, cell states, and the gradients of all kinds of state, each on whole pages:
    steps x batch x row(4 x hidden); steps x batch x row(hidden); then 2 x (steps + 1) x batch x row for each of the
    states; gradients in float32. **Source**: `init_conf` and `set_offsets` in oneDNN's src/cpu/rnn/rnn_utils.
    """
    layer = _rnn_layer(input_tensor, hidden)
    cells = layer.steps * layer.batch
    states = 2 * (layer.steps + 1) * layer.batch
    widest = max(layer.inputs, hidden)
    parts = (
        cells * _padded_row_length(_GATES * hidden, layer.itemsize) * layer.itemsize,
        cells * _padded_row_length(hidden, layer.itemsize) * layer.itemsize,
        states * _padded_row_length(widest, layer.itemsize) * layer.itemsize,
        states * hidden * layer.itemsize,
        states * _padded_row_length(widest, 4) * 4,
        states * _padded_row_length(widest, 4) * 4,
        states * hidden * 4,
    )
    return sum(map(_page_rounded_bytes, parts))


def forward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the temporary bytes of the kernel of `aten.mkldnn_rnn_layer`: one bias, reordered weights, and scratch.

    **Source**: `mkldnn_rnn_layer` in aten/src/ATen/native/mkldnn/RNN.cpp; measured with the profiler.
    """
    layer = _rnn_layer(args[0], args[10])
    held_bytes = _GATES * layer.hidden * layer.itemsize
    if layer.itemsize == 2 or not torch.is_grad_enabled():
        held_bytes += _GATES * layer.hidden * (layer.inputs + layer.hidden) * layer.itemsize
    else:
        held_bytes += _padded_row_length(_GATES * layer.hidden, 4) * (layer.inputs + layer.hidden) * 4
    scratch = _scratch_bytes(layer, merged=layer.batch < 128)
    if not torch.is_grad_enabled():
        states = 2 * (layer.steps + 1) * layer.batch * layer.itemsize
        widest = _padded_row_length(max(layer.inputs, layer.hidden), layer.itemsize)
        scratch = (
            _page_rounded_bytes(states * widest)
            + _page_rounded_bytes(states * layer.hidden)
            + _scratch_bytes(layer, merged=False)
        )
        scratch -= _page_rounded_bytes(layer.batch * _padded_row_length(layer.hidden, 4) * 4)
    return held_bytes + scratch


def backward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the temporary bytes of the kernel of `aten.mkldnn_rnn_layer_backward`.

    **Formula**: zero gradients of states that were not computed, the bias, weights and their gradients in oneDNN's
    layout, scratch; in half precision also the incoming gradients in float32. **Source**: `mkldnn_rnn_layer_backward`
    in aten/src/ATen/native/mkldnn/RNN.cpp; measured with the profiler.
    """
    layer = _rnn_layer(args[0], args[15])
    hidden = layer.hidden
    held_bytes = _GATES * hidden * layer.itemsize
    for gradient, size in zip(
        args[10:13], (layer.steps * layer.state_bytes, layer.state_bytes, layer.state_bytes), strict=True
    ):
        if gradient is None or not gradient.is_contiguous():
            held_bytes += size
    held_bytes += _padded_row_length(_GATES * hidden, 4) * (layer.inputs + hidden) * 4
    if layer.itemsize == 2:
        held_bytes += (layer.steps + 2) * layer.batch * hidden * 4
        held_bytes += _GATES * hidden * (round_up(layer.inputs, 32) + round_up(hidden, 32)) * 2
        return held_bytes + _scratch_bytes(layer, merged=False)
    held_bytes += sum(
        _GATES * hidden * _padded_row_length(width, 4) * 4
        for width in (layer.inputs, hidden)
        if _padded_row_length(width, 4) != width
    )
    return held_bytes + _scratch_bytes(layer, merged=True)


def _scratch_bytes(layer: RnnLayer, *, merged: bool) -> int:
    """Return the bytes of scratch for gates (of all steps at once if `merged`, in float32 only) and for two states."""
    cells = layer.batch * (layer.steps if merged and layer.itemsize == 4 else 1)
    gates = cells * _padded_row_length(_GATES * layer.hidden, 4) * 4
    return (
        _page_rounded_bytes(gates)
        + 2 * _page_rounded_bytes(layer.batch * _padded_row_length(layer.hidden, 4) * 4)
        + _ALIGNMENT_BYTES
    )


_aten: Final = torch.ops.aten
_BAGS_MEAN, _BAGS_MAX = 1, 2
_INDEX_BYTES: Final = torch.int64.itemsize
_LAPACK_INTEGER_BYTES: Final = torch.int32.itemsize


def _counted_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a mask of what is not zero, and of its copy in 64-bit integers, which is summed.

    Without a dimension, a kernel counts. **Source**: `count_nonzero` in
    aten/src/ATen/native/TensorAdvancedIndexing.cpp.
    """
    has_dimension = len(args) > 1 and args[1] is not None
    return size_bytes(args[0], 1) + size_bytes(args[0], _INDEX_BYTES) if has_dimension else 0


def _scattered_mean_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of ones, of the counts in which they are summed, and of a mask of the zero counts.

    **Source**: `scatter_reduce_two` in aten/src/ATen/native/TensorAdvancedIndexing.cpp.
    """
    target, source, reduction = args[0], args[3], args[4]
    return size_bytes(target) + size_bytes(source) + size_bytes(target, 1) if reduction == "mean" else 0


def _trilinear_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of one slice of the product of the first two tensors, and of that with the third.

    **Source**: `_trilinear` in aten/src/ATen/native/Linear.cpp.
    """
    summed, unrolled = args[6], args[7] if len(args) > 7 else 1
    shapes = []
    for tensor, absent in zip(args[:3], args[3:6], strict=True):
        places = [place for place in range(tensor.dim() + len(absent)) if place not in absent]
        shapes.append({**dict(zip(places, tensor.shape, strict=True)), unrolled: 1})
    pair = shapes[0] | shapes[1]
    slice_elements = prod(width for place, width in pair.items() if place not in summed or place in shapes[2])
    product_elements = prod(width for place, width in (pair | shapes[2]).items() if place not in summed)
    return int(slice_elements + product_elements) * result.element_size()


def _bags_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: tuple[torch.Tensor, ...]) -> int:
    """Return the size in bytes of the running sum by which each row finds its bag, less what is not made by then.

    **Source**: `make_offset2bag` and `_embedding_bag_cpu_impl` in aten/src/ATen/native/EmbeddingBag.cpp.
    """
    rows, mode = args[1], args[4] if len(args) > 4 else 0
    if mode not in (_BAGS_MEAN, _BAGS_MAX):
        return 0
    return max(0, _INDEX_BYTES * (int(rows.numel()) + 1) - sum(map(size_bytes, result[2:])))


def _bags_backward_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of the rows sorted with their places, and of their bags, computed if they are not given.

    **Source**: `_embedding_bag_backward` and `_embedding_bag_dense_backward_cpu` in
    aten/src/ATen/native/EmbeddingBag.cpp.
    """
    gradient, rows, _offsets, bags, sizes, largest = args[:6]
    mode, is_sparse = args[8], args[9]
    if is_sparse:
        return 0
    if mode == _BAGS_MAX:
        return size_bytes(largest) + size_bytes(gradient) + size_bytes(sizes)
    return 3 * size_bytes(rows, _INDEX_BYTES) + (0 if bags.numel() else _INDEX_BYTES * (rows.numel() + 1))


def _eigenvectors_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of LAPACK's workspace for a symmetric matrix's vectors, or of a copy without.

    **Source**: `apply_lapack_eigh` in aten/src/ATen/native/BatchLinearAlgebraKernel.cpp; LAPACK's `syevd`: LWORK is
    1 + 6 N + 2 N², and LIWORK is 3 + 5 N.
    """
    width = int(args[0].shape[-1])
    needs_vectors = len(args) <= 2 or args[2]
    if not needs_vectors:
        return size_bytes(args[0])
    itemsize = int(args[0].element_size())
    return (1 + 6 * width + 2 * width**2) * itemsize + (3 + 5 * width) * _LAPACK_INTEGER_BYTES


_LEAST_SQUARES_BLOCK: Final = 32
_HESSENBERG_BLOCK: Final = 32


def _eigenvalues_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of a copy of the matrix, of the values' two parts, and of LAPACK's workspace.

    **Source**: `linalg_eigvals_out_info` in aten/src/ATen/native/BatchLinearAlgebra.cpp; LAPACK's `geev`: LWORK is
    (2 + NB) N.
    """
    width, itemsize = int(args[0].shape[-1]), int(args[0].element_size())
    values_bytes = 0 if args[0].is_complex() else size_bytes(result)
    return size_bytes(args[0]) + values_bytes + (2 + _HESSENBERG_BLOCK) * width * itemsize


def _eigen_decomposition_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a copy of the matrix and of LAPACK's workspace, and the real parts of a real one's.

    **Source**: `linalg_eig_out_info` and `linalg_eig_make_complex_eigenvectors` in
    aten/src/ATen/native/BatchLinearAlgebra.cpp; LAPACK's `geev` with vectors: MKL asks for an LWORK of 386 N, or
    2 N² + 4 N for complex numbers, measured with 48 and 64 rows.
    """
    width, itemsize = int(args[0].shape[-1]), int(args[0].element_size())
    if args[0].is_complex():
        return size_bytes(args[0]) + (2 * width + 4) * width * itemsize
    return 2 * size_bytes(args[0]) + size_bytes(result[0]) + 386 * width * itemsize


def _exponential_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the size in bytes of the powers of matrices and of their sums, as many as the polynomial needs.

    Of several matrices it is the same whatever their norm; of one, that of the largest degree, the most that is needed.
    **Source**: `mexp_impl` in aten/src/ATen/native/LinearAlgebra.cpp; measured with 1, 4 and 8 matrices.
    """
    size = int(args[0].shape[-1])
    count = int(args[0].numel()) // max(size**2, 1)
    norms_bytes = count * int(args[0].element_size())
    return 10 * size_bytes(args[0]) + 3 * norms_bytes if count > 1 else 12 * size_bytes(args[0]) + 6 * norms_bytes


def _least_squares_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of a copy of the matrix, of its pivots, and of LAPACK's workspace.

    **Source**: `linalg_lstsq_out_info` in aten/src/ATen/native/BatchLinearAlgebra.cpp; LAPACK's `gelsy`: LWORK is
    MN + 2 N + NB (N + 1).
    """
    rows, width = map(int, args[0].shape[-2:])
    workspace = min(rows, width) + 2 * width + _LEAST_SQUARES_BLOCK * (width + 1)
    return size_bytes(args[0]) + width * _LAPACK_INTEGER_BYTES + workspace * int(args[0].element_size())


def _pseudoinverse_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the size in bytes of the left vectors, of the right ones and their scaled copy, and of two sets of values.

    **Source**: `linalg_pinv` in aten/src/ATen/native/LinearAlgebra.cpp.
    """
    rows, columns = map(int, args[0].shape[-2:])
    fewest = min(rows, columns)
    elements = fewest * (rows + 2 * columns + 2)
    return size_bytes(args[0]) // (rows * columns) * elements


def _interpolation(points: int) -> BytesFormula:
    """Return a formula for the tables of the positions and weights of `points` neighbors along each dimension.

    **Source**: `HelperInterpBase` and its heirs in aten/src/ATen/native/cpu/UpSampleKernel.cpp.
    """
    return lambda _args, _kwargs, result: points * sum(result.shape[2:]) * (_INDEX_BYTES + result.element_size())


COMPOSED_FORMULAS: Final[dict[Any, BytesFormula]] = {
    # The arguments of one gamma function per order. **Source**: `mvlgamma` in UnaryOps.cpp.
    _aten.mvlgamma.default: lambda args, _, result: int(args[1]) * size_bytes(result),
    # The powers of two. **Source**: `ldexp` in BinaryOps.cpp.
    _aten.ldexp.Tensor: lambda args, _, result: size_bytes(args[1], result.element_size()),
    _aten.count_nonzero.default: _counted_bytes,
    _aten.count_nonzero.dim_IntList: _counted_bytes,
    # The difference whose norm is a distance. **Source**: `dist` in Distance.cpp.
    _aten.dist.default: lambda args, _, result: (
        int(prod(torch.broadcast_shapes(args[0].shape, args[1].shape))) * result.element_size()
    ),
    # Points with their squared norm and a one, whose product is the squared distance. **Source**: `_euclidean_dist` in
    # Distance.cpp.
    _aten._euclidean_dist.default: lambda args, _, __: sum(
        size_bytes(points[..., :1]) * (points.shape[-1] + 2) for points in args[:2]
    ),
    _aten.scatter_reduce.two: _scattered_mean_bytes,
    _aten._trilinear.default: _trilinear_bytes,
    _aten._embedding_bag.default: _bags_bytes,
    _aten._embedding_bag_forward_only.default: _bags_bytes,
    _aten._embedding_bag_backward.default: _bags_backward_bytes,
    _aten.upsample_nearest1d.default: _interpolation(1),
    _aten._upsample_nearest_exact1d.default: _interpolation(1),
    _aten.upsample_linear1d.default: _interpolation(2),
    _aten.upsample_bicubic2d.default: _interpolation(4),
    # The image whose rows are resized, but not its columns. **Source**: `separable_upsample_generic_Nd_kernel_impl` in
    # cpu/UpSampleKernel.cpp.
    **dict.fromkeys(
        (_aten._upsample_bilinear2d_aa.default, _aten._upsample_bicubic2d_aa.default),
        lambda args, _, result: size_bytes(result) // result.shape[-2] * int(args[0].shape[-2]),
    ),
    # The grid that is transformed, with a one for each point. **Source**: `affine_grid_generator` in
    # AffineGridGenerator.cpp.
    _aten.affine_grid_generator.default: lambda _, __, result: (
        size_bytes(result) // result.shape[-1] * (result.shape[-1] + 1)
    ),
    # The triangular factors, their pivots, and a mask of these. **Source**: `linalg_inv_ex_out` in
    # BatchLinearAlgebra.cpp.
    _aten.linalg_inv_ex.default: lambda args, _, __: (
        size_bytes(args[0]) + size_bytes(args[0][..., 0], _LAPACK_INTEGER_BYTES + 1)
    ),
    # The matrix or factor, which LAPACK overwrites. **Source**: `_linalg_svd_out`, `linalg_lu_out` and
    # `_cholesky_solve_helper_cpu` in BatchLinearAlgebra.cpp.
    _aten._linalg_svd.default: lambda args, _, __: size_bytes(args[0]),
    _aten.linalg_lu.default: lambda args, _, __: size_bytes(args[0]),
    _aten.cholesky_solve.default: lambda args, _, __: size_bytes(args[1]),
    _aten._linalg_eigh.default: _eigenvectors_bytes,
    _aten.linalg_lstsq.default: _least_squares_bytes,
    _aten._linalg_eigvals.default: _eigenvalues_bytes,
    _aten.linalg_eig.default: _eigen_decomposition_bytes,
    _aten.linalg_matrix_exp.default: _exponential_bytes,
    _aten.linalg_pinv.atol_rtol_tensor: _pseudoinverse_bytes,
}
"""Formulas by operator; files are those of aten/src/ATen/native."""
