"""Eager-mode behavior that fake tensors lack: in-place results, true storage sizes, in-place gradient sums."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.nn import functional

from planner.trace.worker.cpu.rnn import rnn_workspace_bytes

_linear = functional.linear


@contextmanager
def eager_behavior() -> Iterator[None]:
    """Make linear layers, conversions and copies of modules behave as without a dispatch mode."""
    replacements = (
        (functional, "linear", _linear_without_mode),
        (torch.utils, "swap_tensors", _set_data),
        (torch._VF, "_pad_packed_sequence", _pad_packed_sequence),
        (FakeTensor, "__deepcopy__", _deep_copy),
    )
    with ExitStack() as stack:
        for holder, name, replacement in replacements:
            stack.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, replacement)
        yield


def _linear_without_mode(
    input: torch.Tensor,  # noqa: A002  # as PyTorch calls it: it may be given by name
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a linear layer's output; if the input's rows are not contiguous, the bias is added in place.

    **Source**: `linear` in aten/src/ATen/native/Linear.cpp, which adds it to a copy if a tensor is a subclass.
    """
    if bias is None or input.dim() < 3 or input.is_contiguous():
        return _linear(input, weight, bias)
    result = _linear(input, weight)
    # Autocast would have converted the bias to the same type.
    return result.add_(bias.to(result.dtype))


def _set_data(old: torch.Tensor, new: torch.Tensor) -> None:
    """Set `old.data` to `new`, as `Module.to` does to convert a parameter.

    **Source**: `Module._apply` sets `data` of plain parameters; fake ones it swaps, which fails if they are weakly
    referenced, as the fake tensors' own bookkeeping does.
    """
    old.data = new.data


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


_aten: Final = torch.ops.aten


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


def mask_positions_bytes(func: Any, args: tuple[Any, ...], result: Any) -> int:
    """Return the size in bytes of the positions into which indexing turns a boolean mask.

    **Source**: `expandTensors` in aten/src/ATen/native/IndexingUtils.h; a single value is filled in by the mask itself.
    """
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


ADD: Final = torch.ops.aten.add.Tensor
ADD_IN_PLACE: Final = torch.ops.aten.add_.Tensor
_ENGINE_FUNCTION: Final = "_engine_run_backward"
_WRAPPER_PATHS: Final = (
    str(Path(__file__).parent.parent),
    *(str(Path(torch.__file__).parent / folder) for folder in ("_compile", "_dynamo")),
)
"""Source paths of functions between the autograd engine and a dispatch mode: this package, and PyTorch's wrappers."""


class GradientAccumulation:
    """Detector of gradient additions that autograd does in place.

    Autograd adds a gradient to an accumulated gradient in place if nothing else refers to the latter, but never for
    subclasses such as fake tensors.

    **Source**: `can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp.
    """

    def __init__(self) -> None:
        self._unshared_use_counts: tuple[int, int] | None = None

    def observe_use_counts(self) -> None:
        """Measure the use count of a gradient that only autograd refers to, under the active dispatch modes."""
        with torch.enable_grad():
            leaf = torch.empty(0, requires_grad=True)
            (leaf.sin() * leaf.cos()).backward(torch.empty(0))

    def is_in_place(self, args: tuple[Any, ...]) -> bool:
        """Return whether `args` are gradients whose addition would be in place with real tensors."""
        first, second = args[0], args[1]
        if not isinstance(second, torch.Tensor) or first.shape != second.shape or not _called_by_autograd_engine():
            return False
        use_counts = first._use_count(), torch._C._storage_Use_Count(first.untyped_storage()._cdata)
        if self._unshared_use_counts is None:
            self._unshared_use_counts = use_counts
        return use_counts == self._unshared_use_counts and not first._is_view()


def _called_by_autograd_engine() -> bool:
    """Return whether the autograd engine, not the user's code, called the operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_WRAPPER_PATHS):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == _ENGINE_FUNCTION
