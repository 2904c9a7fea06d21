"""Autograd on fake tensors as on real ones: derivatives that read values, and operators that run in place.

It is assumed that no factor of a product is zero, and that nothing is no number.
"""

import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import Function

_aten: Final = torch.ops.aten
_ZEROS: Final = frozenset((_aten.zeros.default, _aten.zeros_like.default, _aten.new_zeros.default))
_WRITES: Final[dict[Any, Any]] = {
    _aten.index_put.default: _aten.index_put_.default,
    _aten.index_add.default: _aten.index_add_.default,
    _aten.index_fill.int_Tensor: _aten.index_fill_.int_Tensor,
    _aten.put.default: _aten.put_.default,
    _aten.scatter.src: _aten.scatter_.src,
    _aten.scatter_add.default: _aten.scatter_add_.default,
    _aten.masked_scatter.default: _aten.masked_scatter_.default,
}
"""Operators that write into a tensor's copy, by which derivatives fill zeros, with those that write into the tensor."""
_CHAINS: Final[dict[Any, Any]] = {_aten.sub.Tensor: _aten.sub_.Tensor, _aten.mul.Tensor: _aten.mul_.Tensor}
_CHAINED_DERIVATIVE: Final = "BinaryCrossEntropyWithLogitsBackward0"
_MASKS: Final[dict[Any, Any]] = {
    _aten.logical_and.default: _aten.logical_and_.default,
    _aten.logical_or.default: _aten.logical_or_.default,
}
_MASKED_DERIVATIVE: Final = "ClampBackward"
_ADD: Final = _aten.add.Tensor
_REPLACED: Final = frozenset((*_WRITES, *_CHAINS, *_MASKS, _ADD))
_ENGINE_FUNCTION: Final = "_engine_run_backward"
_WRAPPER_PATHS: Final = (
    str(Path(__file__).parent.parent),
    *(str(Path(torch.__file__).parent / folder) for folder in ("_compile", "_dynamo")),
)
"""Source paths of functions between the autograd engine and a dispatch mode: this package, and PyTorch's wrappers."""
_WRAPPING_PATHS: Final = tuple(str(Path(torch.__file__).parent / name) for name in ("_functorch", "_vmap_internals"))
"""Source paths of functions that wrap tensors in others."""


class AutogradInPlace:
    """Detector of operators that autograd runs in place, but never for subclasses such as fake tensors.

    Autograd adds a gradient to an accumulated gradient that nothing else refers to; the derivatives of operators that
    select elements write into zeros; that of a binary cross-entropy changes its own intermediate results.

    **Source**: `can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp; uses of `areAnyTensorSubclassLike` in
    `index_backward`, `take_backward`, `trace_backward`, `masked_select_backward` and
    `binary_cross_entropy_with_logits_backward` of torch/csrc/autograd/FunctionsManual.cpp, in `gather_backward` and
    `index_select_backward_symint` of aten/src/ATen/native/TensorAdvancedIndexing.cpp, and in
    `value_selecting_reduction_backward_symint` and `cummaxmin_backward` of aten/src/ATen/native/ReduceOps.cpp.
    """

    def __init__(self) -> None:
        self._unshared_use_counts: tuple[int, int] | None = None
        self._intermediate: weakref.ref[torch.Tensor] | None = None
        self._node: tuple[str, int] | None = None
        self._made = set[int]()

    def observe_use_counts(self) -> None:
        """Measure the use count of a gradient that only autograd refers to, under the active dispatch modes."""
        with torch.enable_grad():
            leaf = torch.empty(0, requires_grad=True)
            (leaf.sin() * leaf.cos()).backward(torch.empty(0))

    def observe_result(self, func: Any, result: Any) -> None:
        """Remember the zeros that `func` made, into which a derivative may write next."""
        if func in _ZEROS and isinstance(result, torch.Tensor):
            self._intermediate = weakref.ref(result)
        node = torch._C._current_autograd_node()
        if node is None:
            return
        key = (node.name(), node._sequence_nr())
        if key != self._node:
            self._node = key
            self._made.clear()
        for value in result if isinstance(result, tuple | list) else (result,):
            self._made.add(id(value))

    def operator_with_real_tensors(self, func: Any, args: tuple[Any, ...]) -> Any:
        """Return the operator that autograd would run on real tensors instead of `func`, or `func`."""
        if func not in _REPLACED:
            return func
        if func in _WRITES:
            return _WRITES[func] if self._is_intermediate(args[0]) and _called_by_autograd_engine() else func
        if func is _ADD:
            is_in_place = isinstance(args[1], torch.Tensor) and (
                (args[0].shape == args[1].shape and self._is_accumulated(args[0])) or _is_bias_of_recurrence(*args)
            )
            return _aten.add_.Tensor if is_in_place else func
        if func in _CHAINS and _current_derivative() == _CHAINED_DERIVATIVE:
            is_first = func is _aten.sub.Tensor and self._is_autograds_alone(args[0])
            if not is_first and not self._is_intermediate(args[0]):
                return func
            self._intermediate = weakref.ref(args[0])
            return _CHAINS[func]
        if func in _MASKS and (_current_derivative() or "").startswith(_MASKED_DERIVATIVE):
            return _MASKS[func]
        return func

    def _is_intermediate(self, tensor: torch.Tensor) -> bool:
        """Return whether `tensor` is the one that a derivative made last, or changed last."""
        return self._intermediate is not None and self._intermediate() is tensor

    def _is_accumulated(self, tensor: torch.Tensor) -> bool:
        """Return whether autograd adds to a gradient to which nothing else refers, rather than a derivative to its own.

        What the current derivative made is a gradient already only if it makes two for the same place.
        """
        node = torch._C._current_autograd_node()
        if id(tensor) in self._made and node is not None and len({*node.next_functions}) == len(node.next_functions):
            return False
        return self._is_autograds_alone(tensor)

    def _is_autograds_alone(self, tensor: Any) -> bool:
        """Return whether autograd runs an operator on `tensor`, to which nothing else refers."""
        if not _called_by_autograd_engine():
            return False
        use_counts = tensor._use_count(), torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
        if self._unshared_use_counts is None:
            self._unshared_use_counts = use_counts
        return use_counts == self._unshared_use_counts and not tensor._is_view()


def _is_bias_of_recurrence(product: torch.Tensor, bias: torch.Tensor) -> bool:
    """Return whether a recurrent layer adds the bias of its linear layer, which runs without `functional.linear`.

    **Source**: `linear` in aten/src/ATen/native/Linear.cpp, as called by aten/src/ATen/native/RNN.cpp.
    """
    if product.dim() != 3 or bias.dim() != 1:
        return False
    frame = _calling_frame()
    return frame is not None and frame.f_code.co_filename == nn.modules.rnn.__file__


def _calling_frame() -> FrameType | None:
    """Return the frame of the function that called the operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_WRAPPER_PATHS):
        frame = frame.f_back
    return frame


def _current_derivative() -> str | None:
    """Return the name of the derivative that autograd computes, if any."""
    node = torch._C._current_autograd_node()
    return None if node is None else node.name()


def _called_by_autograd_engine() -> bool:
    """Return whether the autograd engine, not the user's code, called the operator, on tensors that nothing wraps.

    `torch.func.grad` and `vmap` wrap tensors, which are subclasses in a real run too.
    """
    frame = _calling_frame()
    if frame is None or frame.f_code.co_name != _ENGINE_FUNCTION:
        return False
    while frame is not None:
        if frame.f_code.co_filename.startswith(_WRAPPING_PATHS):
            return False
        frame = frame.f_back
    return True


_Operator = Callable[..., Any]


class _Product(Function):
    """Product of all elements, or of those along a dimension.

    **Source**: `prod_backward` in torch/csrc/autograd/FunctionsManual.cpp.
    """

    @staticmethod
    def forward(ctx: Any, operator: _Operator, tensor: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
        """Return the product, and save it with its factors."""
        result: torch.Tensor = operator(tensor) if dim is None else operator(tensor, dim, keepdim)
        ctx.save_for_backward(tensor, result)
        ctx.dim, ctx.is_dropped = dim, dim is not None and not keepdim and tensor.dim() > 1
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Count the zeros, and return the gradient of the factors: the product without each."""
        (gradient,) = gradients
        tensor, result = ctx.saved_tensors
        if ctx.is_dropped:
            gradient, result = gradient.unsqueeze(ctx.dim), result.unsqueeze(ctx.dim)
        zeros = [tensor == 0]
        if ctx.dim is None:
            zeros.clear()
        else:
            zeros.append(zeros[0].sum(ctx.dim, keepdim=True))
        return None, gradient * (result / tensor), None, None


class _RunningProduct(Function):
    """Running product along a dimension.

    **Source**: `cumprod_backward` and `reversed_cumsum` in torch/csrc/autograd/FunctionsManual.cpp.
    """

    @staticmethod
    def forward(ctx: Any, operator: _Operator, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """Return the products, and save them with their factors."""
        result: torch.Tensor = operator(tensor, dim)
        ctx.save_for_backward(tensor, result)
        ctx.dim = dim
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Look for zeros, and return the gradient of the factors: running sums from the end, divided by each."""
        tensor, result = ctx.saved_tensors
        products = result * gradients[0]
        _zeros = tensor == 0
        return None, _summed_from_the_end(products, ctx.dim).div(tensor), None


def _summed_from_the_end(products: torch.Tensor, dim: int) -> torch.Tensor:
    flipped = products.flip(dim)
    summed = flipped.cumsum(dim)
    return summed.flip(dim)


class _Selected(Function):
    """One value of all elements, such as the largest, whose gradient goes to the elements that are equal to it.

    **Source**: `evenly_distribute_backward` in torch/csrc/autograd/FunctionsManual.cpp; on a card it reads no values.
    """

    @staticmethod
    def forward(ctx: Any, operator: _Operator, tensor: torch.Tensor) -> torch.Tensor:
        """Return the value, and save it with the elements."""
        result: torch.Tensor = operator(tensor)
        ctx.save_for_backward(tensor, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient, which equal elements share."""
        (gradient,) = gradients
        tensor, result = ctx.saved_tensors
        mask = tensor == result
        zeros = gradient.new_zeros(tensor.shape)
        return None, zeros.masked_fill_(mask, gradient / mask.sum())


def _product(operator: _Operator) -> _Operator:
    def prod(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        is_plain = len(args) <= 2 and kwargs.keys() <= {"dim", "keepdim"}
        if not (is_plain and _has_derivative(tensor) and tensor.dim()):
            return operator(tensor, *args, **kwargs)  # type: ignore[no-any-return]
        given = dict(zip(("dim", "keepdim"), args, strict=False)) | kwargs
        result: torch.Tensor = _Product.apply(operator, tensor, given.get("dim"), given.get("keepdim", False))
        return result

    return prod


def _running_product(operator: _Operator) -> _Operator:
    def cumprod(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        dim = args[0] if len(args) == 1 and not kwargs else kwargs.get("dim") if kwargs.keys() == {"dim"} else None
        if dim is None or not _has_derivative(tensor) or tensor.dim() == 0 or tensor.shape[dim] == 1:
            return operator(tensor, *args, **kwargs)  # type: ignore[no-any-return]
        result: torch.Tensor = _RunningProduct.apply(operator, tensor, dim)
        return result

    return cumprod


def _selected(operator: _Operator) -> _Operator:
    def select(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or not _has_derivative(tensor) or tensor.is_cuda:
            return operator(tensor, *args, **kwargs)
        return _Selected.apply(operator, tensor)

    return select


def _has_derivative(tensor: Any) -> bool:
    """Return whether a derivative by a plain `tensor` will be wanted; `torch.func` wraps tensors in real runs too."""
    return (
        isinstance(tensor, FakeTensor)
        and tensor.requires_grad
        and torch.is_grad_enabled()
        and not torch._C._are_functorch_transforms_active()
    )


_REPLACEMENTS: Final[dict[str, Callable[[_Operator], _Operator]]] = {
    "prod": _product,
    "cumprod": _running_product,
    **dict.fromkeys(("max", "min", "median", "nanmedian"), _selected),
}


def real_derivatives() -> Iterator[tuple[Any, str, _Operator]]:
    """Yield functions of PyTorch to replace, each with the place that holds it and its name."""
    for name, replacement in _REPLACEMENTS.items():
        for holder in (torch, torch.Tensor):
            yield holder, name, replacement(getattr(holder, name))
