"""Shapes that operators were seen to give, so that a block of a network that repeats is worked out once."""

from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_PLAIN: Final = frozenset((int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format))
_CPU: Final = torch.device("cpu")

Rule = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


class ShapeRules:
    """Remembers the shape, stride and type that an operator gives for those of its arguments.

    Only for operators that return one new tensor; views, changes in place and everything unusual are left to
    `FakeTensorMode`, whose own cache is several times slower because it has to hold for symbolic shapes too.
    """

    def __init__(self) -> None:
        self._rules: dict[Any, Rule] = {}
        self._makes_one_tensor: dict[Any, bool] = {}

    def dispatch(
        self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what `func` returns in `mode`."""
        if not self._applies(func):
            return mode.dispatch(func, types, args, kwargs)
        try:
            key = (func, torch.get_default_dtype(), *map(_key, args), *map(_key, kwargs.items()))
        except _UnusualError:
            return mode.dispatch(func, types, args, kwargs)
        rule = self._rules.get(key)
        if rule is not None:
            shape, stride, dtype = rule
            return FakeTensor(mode, torch.empty_strided(shape, stride, dtype=dtype, device="meta"), _CPU)
        result = mode.dispatch(func, types, args, kwargs)
        if type(result) is FakeTensor and result.constant is None and result.fake_device == _CPU and _is_whole(result):
            self._rules[key] = (tuple(result.shape), result.stride(), result.dtype)
        return result

    def _applies(self, func: Any) -> bool:
        applies = self._makes_one_tensor.get(func)
        if applies is None:
            returns = func._schema.returns
            applies = len(returns) == 1 and str(returns[0].type) == "Tensor" and returns[0].alias_info is None
            applies = applies and not func._schema.is_mutable and torch.Tag.dynamic_output_shape not in func.tags
            self._makes_one_tensor[func] = applies
        return applies


class _UnusualError(Exception):
    """An argument that no rule is kept for."""


def _key(value: Any) -> Any:
    kind = type(value)
    if kind is FakeTensor:
        if value.constant is not None or value.fake_device != _CPU or value.layout is not torch.strided:
            raise _UnusualError
        return value.shape, value.stride(), value.dtype
    if kind in _PLAIN:
        return kind, value
    if kind is tuple or kind is list:
        return kind, *map(_key, value)
    if kind is torch.device and value == _CPU:
        return value
    raise _UnusualError


def _is_whole(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is all of its storage, in one of the layouts that an empty tensor can have."""
    if tensor.layout is not torch.strided or tensor.storage_offset() or tensor.is_conj() or tensor.is_neg():
        return False
    anew = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.untyped_storage().nbytes() == anew.untyped_storage().nbytes()
