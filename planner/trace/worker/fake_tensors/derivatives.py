"""Derivatives that read values, which PyTorch computes otherwise for fake tensors: as they run on real ones.

It is assumed that no factor of a product is zero, and that nothing is no number.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import Function

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
