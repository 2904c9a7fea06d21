"""Eager-mode behavior that fake tensors lack: in-place results, true storage sizes, in-place gradient sums."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.nn import functional
from torch.utils.weak import WeakIdKeyDictionary

from planner.trace.worker.cpu.composed import rnn_workspace_bytes
from planner.trace.worker.cuda.dispatch import patched_attributes, replaced_compositions, replaced_kernels
from planner.trace.worker.fake_tensors.derivatives import real_derivatives

_aten: Final = torch.ops.aten
_linear = functional.linear
_pool = torch.max_pool1d
_align = torch.ctc_loss
_generator_state = torch.get_rng_state
_module_to = nn.Module.to
_data_address = torch.UntypedStorage.data_ptr
_NO_MEMORY: Final = 1 << 62
"""Bit of addresses that no process has, on any processor."""


@contextmanager
def eager_behavior() -> Iterator[None]:
    """Make linear layers, conversions and copies of modules behave as without a dispatch mode."""
    replacements = (
        (functional, "linear", _linear_without_mode),
        (torch.utils, "swap_tensors", _set_data),
        (nn.Module, "to_empty", _to_empty),
        (nn.Module, "to", _to),
        (torch._VF, "_pad_packed_sequence", _pad_packed_sequence),
        (FakeTensor, "__deepcopy__", _deep_copy),
        (torch, "max_pool1d", _max_pool1d),
        (torch, "ctc_loss", _ctc_loss),
        (torch, "get_rng_state", _get_rng_state),
        *real_derivatives(),
        (FakeTensor, "__copy__", _shallow_copy),
        (FakeTensor, "__reduce_ex__", _reduce),
        (FakeTensor, "__format__", _format),
        (FakeTensor, "get_nested_int", _nested_int),
        (torch.Tensor, "share_memory_", lambda tensor: tensor),
        (torch.Tensor, "is_shared", lambda _tensor: True),
        (torch.UntypedStorage, "data_ptr", _address),
        (FakeTensor, "data_ptr", _data_ptr),
    )
    with ExitStack() as stack:
        for holder, name, replacement in replacements:
            stack.enter_context(patched_attributes(holder, **{name: replacement}))
        stack.enter_context(replaced_compositions(_COMPOSITIONS))
        stack.enter_context(replaced_kernels("AutocastCPU", {"_transformer_encoder_layer_fwd": _encoder_layer}))
        yield


def _linear_without_mode(
    input: torch.Tensor,  # noqa: A002  # as PyTorch calls it: it may be given by name
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a linear layer's output; if the input's rows are not contiguous, the bias is added in place.

    **Source**: `linear` in aten/src/ATen/native/Linear.cpp, which adds it to a copy if a tensor is a subclass.
    """
    # What torch.fx traces symbolically is no tensor.
    if bias is None or not isinstance(input, torch.Tensor) or input.dim() < 3 or input.is_contiguous():
        return _linear(input, weight, bias)
    result = _linear(input, weight)
    # Autocast would have converted the bias to the same type.
    return result.add_(bias.to(result.dtype))


def _max_pool1d(
    input: torch.Tensor,  # noqa: A002  # as PyTorch calls it: it may be given by name
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
) -> torch.Tensor:
    """Return pooled sequences; on the CPU without gradients, no positions of the largest elements are kept.

    **Source**: `max_pool1d` in aten/src/ATen/native/MaxPooling.cpp.
    """
    if not isinstance(input, FakeTensor) or input.is_cuda or _needs_gradient(input):
        return _pool(input, kernel_size, stride or kernel_size, padding, dilation, ceil_mode)
    kernel, step, before, gap = (
        value if isinstance(value, int) else value[0]
        for value in (kernel_size, stride or kernel_size, padding, dilation)
    )
    length = int(input.shape[-1])
    last = length + 2 * before - gap * (kernel - 1) - 1 + (step - 1 if ceil_mode else 0)
    count = last // step + 1
    if ceil_mode and (count - 1) * step >= length + before:
        count -= 1
    return input.new_empty((*input.shape[:-1], count))


def _ctc_loss(
    scores: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor | Sequence[int],
    target_lengths: torch.Tensor | Sequence[int],
    *options: Any,
) -> torch.Tensor:
    """Return the CTC loss, with lengths as tensors.

    **Source**: `ctc_loss` in aten/src/ATen/native/LossCTC.cpp, which writes a list of lengths to a tensor's memory.
    """
    lengths = torch.as_tensor(input_lengths), torch.as_tensor(target_lengths)
    result: torch.Tensor = _align(scores, targets, *lengths, *options)
    return result


def _get_rng_state() -> torch.Tensor:
    """Return the state of the CPU's random generator, which checkpoints keep, and record it; a card does not hold it.

    **Source**: `CPUGeneratorImpl::get_state` in aten/src/ATen/CPUGeneratorImpl.cpp, which makes it without an operator.
    """
    state = _generator_state()
    ledger: Any = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    if ledger is not None and not state.is_cuda:
        ledger.record_result(state, _aten.empty.memory_format, (), {})
    return state


def _singular_values(matrix: torch.Tensor, *, driver: str | None = None) -> torch.Tensor:
    """Return singular values; vectors are computed only for a gradient.

    **Source**: `linalg_svdvals` in aten/src/ATen/native/BatchLinearAlgebra.cpp; a subclass gets them always.
    """
    values: torch.Tensor = _aten._linalg_svd(matrix, False, _needs_gradient(matrix), driver=driver)[1]
    return values


def _eigenvalues(matrix: torch.Tensor, UPLO: str = "L") -> torch.Tensor:  # noqa: N803  # as PyTorch calls it
    """Return eigenvalues of a symmetric matrix; vectors are computed only for a gradient.

    **Source**: `linalg_eigvalsh` in aten/src/ATen/native/BatchLinearAlgebra.cpp; a subclass gets them always.
    """
    values: torch.Tensor = _aten._linalg_eigh(matrix, UPLO, _needs_gradient(matrix))[0]
    return values


def _general_eigenvalues(matrix: torch.Tensor) -> torch.Tensor:
    """Return eigenvalues of any matrix; vectors are computed only for a gradient.

    **Source**: `linalg_eigvals` in aten/src/ATen/native/BatchLinearAlgebra.cpp; a subclass gets them always.
    """
    values: torch.Tensor = (
        torch.linalg.eig(matrix).eigenvalues if _needs_gradient(matrix) else _aten._linalg_eigvals(matrix)
    )
    return values


def _tensor_split(tensor: torch.Tensor, places: torch.Tensor, dim: int = 0) -> Sequence[torch.Tensor]:
    """Return the parts of a tensor; another tensor holds their starts or their number.

    **Source**: `tensor_split` in aten/src/ATen/native/TensorShape.cpp, which reads that tensor's memory.
    """
    parts: Sequence[torch.Tensor] = torch.tensor_split(tensor, places.tolist(), dim)
    return parts


def _all_close(
    one: torch.Tensor, other: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether two tensors are nearly equal.

    **Source**: `allclose` in aten/src/ATen/native/TensorCompare.cpp.
    """
    with torch.no_grad():
        return bool(torch.isclose(one, other, rtol, atol, equal_nan).all())


_COMPOSITIONS: Final[dict[str, Callable[..., Any]]] = {
    "linalg_svdvals": _singular_values,
    "linalg_eigvalsh": _eigenvalues,
    "linalg_eigvals": _general_eigenvalues,
    "tensor_split.tensor_indices_or_sections": _tensor_split,
    "allclose": _all_close,
}


def _encoder_layer(
    source: torch.Tensor,
    width: int,
    heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    output_weight: torch.Tensor,
    output_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    *parameters: Any,
) -> torch.Tensor:
    """Run a fused encoder layer within autocast, which also converts the operators that the layer runs.

    **Source**: `transformer_encoder_layer_forward` in aten/src/ATen/native/transformers/transformer.cpp.
    """
    norms, (inner_weight, inner_bias, last_weight, last_bias), mask = parameters[:4], parameters[4:8], parameters[8:]

    def norm(tensor: torch.Tensor, number: int) -> torch.Tensor:
        weight, bias = norms[2 * number : 2 * number + 2]
        return functional.layer_norm(tensor, (width,), weight, bias, epsilon)

    state = norm(source, 0) if norm_first else source
    weights = (qkv_weight, qkv_bias, output_weight, output_bias)
    mask, kind = (*mask, None, None)[:2]
    state = _aten._native_multi_head_attention(state, state, state, width, heads, *weights, mask, False, True, kind)[0]
    state.add_(source)
    state = state if norm_first else norm(state, 0)
    rows = (norm(state, 1) if norm_first else state).view(-1, width)
    # Autocast knows the product without an activation only.
    inner = _aten._addmm_activation(inner_bias, rows, inner_weight.t(), use_gelu=use_gelu)
    result = torch.addmm(last_bias, inner, last_weight.t()).view_as(state).add_(state)
    return result if norm_first else norm(result, 1)


def _needs_gradient(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()


def _set_data(old: torch.Tensor, new: torch.Tensor) -> None:
    """Set `old.data` to `new`, as `Module.to` does to convert a parameter.

    **Source**: `Module._apply` sets `data` of plain parameters; fake ones it swaps, which fails if they are weakly
    referenced, as the fake tensors' own bookkeeping does.
    """
    old.data = new.data


def _to_empty(module: nn.Module, *, device: Any, recurse: bool = True) -> nn.Module:
    """Make empty parameters and buffers on `device`, as for a module that was built on the meta device.

    **Source**: `Module._apply` makes new parameters where the old ones are of another kind; fake ones it swaps.
    """
    for part in module.modules() if recurse else (module,):
        for name, parameter in part._parameters.items():
            if parameter is not None:
                empty = torch.empty_like(parameter, device=device)
                part._parameters[name] = nn.Parameter(empty, parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = torch.empty_like(buffer, device=device)
    return module


def _address(storage: torch.UntypedStorage) -> int:
    """Return the address of a storage, where it has no data one that nothing can read: shared ones are found by it."""
    return _NO_MEMORY | storage._cdata if storage.device.type == "meta" else _data_address(storage)


def _data_ptr(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's first element, by which views are told apart."""
    return _address(tensor.untyped_storage()) + int(tensor.storage_offset()) * tensor.dtype.itemsize


def _to(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Move or convert a module as `Module.to` does; one that is moved to the meta device gets new parameters there."""
    device = torch._C._nn._parse_to(*args, **kwargs)[0]
    if device is not None and device.type == "meta":
        module.to_empty(device=device)
    return _module_to(module, *args, **kwargs)


def _pad_packed_sequence(
    data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return padded sequences and their lengths; `batch_sizes` is a real tensor.

    **Source**: `_pad_packed_sequence` in aten/src/ATen/native/PackedSequence.cpp, which writes to a tensor's memory.
    """
    with unset_fake_temporarily():
        sizes = list(map(int, batch_sizes.tolist()))
    output = data.new_full((max(total_length, len(sizes)), sizes[0], *data.shape[1:]), padding_value)
    lengths, begin, offset = list[int](), 0, 0
    for step, (size, following) in enumerate(zip(sizes, [*sizes[1:], 0], strict=True), 1):
        if size != following:
            rows = data[offset : offset + (step - begin) * size].view(step - begin, size, *data.shape[1:])
            output[begin:step, :size].copy_(rows)
            lengths += [step] * (size - following)
            begin, offset = step, offset + (step - begin) * size
    return output.transpose(0, 1) if batch_first else output, torch.tensor(lengths[::-1], dtype=torch.int64)


def _deep_copy(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """Return a copy of a tensor with its gradient, for `copy.deepcopy` of repeated layers or averaged weights.

    **Source**: `Parameter.__deepcopy__`. The method of fake tensors copies their mode too, so copies
    belong to another run.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]  # type: ignore[no-any-return]  # what was copied is of the same type
    result = tensor.detach().clone(memory_format=torch.preserve_format)
    if isinstance(tensor, nn.Parameter):
        result = nn.Parameter(result, tensor.requires_grad)
    else:
        result.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        result.grad = _deep_copy(tensor.grad, memo)
    memo[id(tensor)] = result
    return result


def _shallow_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return another tensor of the same storage, for `copy.copy`."""
    alias = tensor.detach()
    return nn.Parameter(alias, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else alias


def _format(tensor: torch.Tensor, form: str) -> str:
    """Return the text of a single number in the given form, as in an f-string, or else of the tensor."""
    return format(tensor.item(), form) if tensor.dim() == 0 else object.__format__(tensor, form)


def _reduce(tensor: torch.Tensor, _protocol: int) -> tuple[Any, ...]:
    """Return how pickle makes a tensor again, which has its shape."""
    form = tuple(tensor.shape), tensor.stride(), tensor.dtype
    return _tensor_again, (*form, tensor.requires_grad, isinstance(tensor, nn.Parameter), tensor.device)


def _tensor_again(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    requires_grad: bool,
    is_parameter: bool,
    device: torch.device,
) -> torch.Tensor:
    """Return a new tensor in place of one that was pickled."""
    made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    return nn.Parameter(made, requires_grad) if is_parameter else made.requires_grad_(requires_grad)


_nested_numbers: Final = WeakIdKeyDictionary()
"""Numbers of the lengths of jagged tensors, by the tensors of their offsets."""
_nested_count: Final = itertools.count(1 << 20)


def _nested_int(tensor: torch.Tensor, *, coeff: int = 1) -> torch.SymInt:
    """Return the symbol for the lengths of a jagged tensor, which needs no environment of other symbols.

    **Source**: `get_tensor_symint` in torch/nested/_internal/nested_tensor.py.
    """
    if tensor not in _nested_numbers:
        _nested_numbers[tensor] = next(_nested_count)
    symbol: torch.SymInt = torch._C._get_nested_int(_nested_numbers[tensor], coeff)
    return symbol


def correct_storage_sizes(func: Any, args: tuple[Any, ...], result: Any) -> None:
    """Resize the storages that `func` created to the sizes that real kernels allocate."""
    correction = _CORRECTIONS.get(func)
    if correction is not None:
        correction(args, result)


def _correct_loss_storage(args: tuple[Any, ...], result: torch.Tensor) -> None:
    """Resize the storage of a reduced loss, which kernels allocate for all elements and keep.

    **Source**: `TORCH_META_FUNC(mse_loss)` in aten/src/ATen/native/Loss.cpp resizes its output after creating it.
    """
    if len(args) < 3 or args[2]:
        shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
        result.untyped_storage().resize_(shape.numel() * result.element_size())


def _correct_elementwise_loss_storage(args: tuple[Any, ...], result: torch.Tensor) -> None:
    """Resize the storage of a reduced loss, which is computed for all elements in the tensor that is returned.

    **Source**: `binary_cross_entropy_out_cpu` and `soft_margin_loss_out` in aten/src/ATen/native/Loss.cpp, which resize
    that tensor to the reduced loss.
    """
    result.untyped_storage().resize_(args[0].numel() * result.element_size())


def _correct_unfolded_storage(args: tuple[Any, ...], result: torch.Tensor) -> None:
    """Resize the storage of unfolded blocks, or of an image folded from them, which is not smaller than the input's.

    **Source**: `im2col_out_cpu_template` in aten/src/ATen/native/Im2Col.cpp and `col2im_out_cpu_template` in Col2Im.cpp
    there, and their like for CUDA: the output is made in the input's size, and resized.
    """
    elements = max(args[0].numel(), result.numel())
    result.untyped_storage().resize_(elements * result.element_size())


def _correct_layer_norm_storage(args: tuple[Any, ...], result: tuple[torch.Tensor, ...]) -> None:
    """Resize the storages of a layer norm's statistics to fp32 if the input has half the bits of its weight.

    **Source**: `layer_norm_cpu` of aten/src/ATen/native/layer_norm.cpp: `param_scalar_type` of mixed formats.
    """
    if args[2] is not None and args[2].dtype != args[0].dtype:
        for statistics in result[1:]:
            statistics.untyped_storage().resize_(statistics.numel() * torch.float32.itemsize)


def _correct_rnn_workspace(args: tuple[Any, ...], result: tuple[torch.Tensor, ...]) -> None:
    """Resize a recurrent layer's workspace, which PyTorch's rule for fake tensors leaves empty."""
    if torch.is_grad_enabled():
        result[3].untyped_storage().resize_(rnn_workspace_bytes(args[0], args[10]))


_CORRECTIONS: Final[dict[Any, Callable[[tuple[Any, ...], Any], None]]] = {
    _aten.mse_loss.default: _correct_loss_storage,
    _aten.smooth_l1_loss.default: _correct_loss_storage,
    _aten.binary_cross_entropy.default: _correct_elementwise_loss_storage,
    _aten.soft_margin_loss.default: _correct_elementwise_loss_storage,
    _aten.im2col.default: _correct_unfolded_storage,
    _aten.col2im.default: _correct_unfolded_storage,
    _aten.native_layer_norm.default: _correct_layer_norm_storage,
    _aten.mkldnn_rnn_layer.default: _correct_rnn_workspace,
}

_INDEXING: Final = frozenset(
    (
        _aten.index.Tensor,
        _aten.index_put.default,
        _aten.index_put_.default,
        _aten._index_put_impl_.default,
        _aten._unsafe_index_put.default,
    )
)
_TRANSPOSING: Final = (_aten.t.default, _aten.transpose.int)


def index_bytes(func: Any, args: tuple[Any, ...], result: Any) -> int:
    """Return the size in bytes of the positions into which indexing turns a mask, or of those that are exchanged.

    **Source**: `expandTensors` in aten/src/ATen/native/IndexingUtils.h; a single value is filled in by the mask itself.
    `sparse_transpose_` in TensorShape.cpp, which exchanges two rows of a sparse tensor's positions over a copy of one.
    """
    if func in _TRANSPOSING and args[0].layout is torch.sparse_coo:
        return int(args[0]._nnz()) * torch.int64.itemsize
    if func not in _INDEXING:
        return 0
    values = args[2] if len(args) > 2 else result
    indexed, positions = 1, 0
    place = 0
    for index in args[1]:
        is_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        dimensions = index.dim() if is_mask else 1
        if index is not None:
            indexed *= math.prod(args[0].shape[place : place + dimensions])
        positions += dimensions if is_mask else 0
        place += dimensions
    if values.numel() == 1 or not positions:
        return 0
    selected: int = values.numel() * indexed // max(args[0].numel(), 1)
    return selected * positions * torch.int64.itemsize
