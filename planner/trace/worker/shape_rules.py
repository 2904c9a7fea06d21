"""Shapes that operators were seen to give, so that a block of a network that repeats is worked out once."""

from typing import Any, Final, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

_PLAIN: Final = frozenset((int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format))
_CPU: Final = torch.device("cpu")


class Rule(NamedTuple):
    """What an operator gives: a tensor of its own, or a view of its first argument that begins at `offset`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int | None = None


class ShapeRules:
    """Remembers the shape, stride and type that an operator gives for those of its arguments.

    Only for operators that return one tensor and change none; everything unusual is left to `FakeTensorMode`, whose own
    cache is several times slower because it has to hold for symbolic shapes too.
    """

    def __init__(self) -> None:
        self._rules: dict[Any, Rule] = {}
        self._gives_one_tensor: dict[Any, bool] = {}

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
            return _made(mode, rule, args)
        result = mode.dispatch(func, types, args, kwargs)
        rule = _rule(result, args)
        if rule is not None:
            self._rules[key] = rule
        return result

    def _applies(self, func: Any) -> bool:
        applies = self._gives_one_tensor.get(func)
        if applies is None:
            returns = func._schema.returns
            applies = len(returns) == 1 and str(returns[0].type) == "Tensor" and not func._schema.is_mutable
            applies = applies and torch.Tag.dynamic_output_shape not in func.tags
            self._gives_one_tensor[func] = applies
        return applies


def _rule(result: Any, args: tuple[Any, ...]) -> Rule | None:
    """Return the rule that `result` is an instance of, or none if it is unusual."""
    if type(result) is not FakeTensor or result.constant is not None or result.fake_device != _CPU:
        return None
    if result.layout is not torch.strided or result.is_conj() or result.is_neg():
        return None
    rule = Rule(tuple(result.shape), result.stride(), result.dtype)
    storage = result.untyped_storage()._cdata
    given = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.untyped_storage()._cdata == storage]
    if given:
        return rule._replace(offset=int(result.storage_offset())) if given[0] is args[0] is not result else None
    return rule if _is_whole(result) else None


def _made(mode: FakeTensorMode, rule: Rule, args: tuple[Any, ...]) -> FakeTensor:
    made = torch.empty_strided(rule.shape, rule.stride, dtype=rule.dtype, device="meta")
    if rule.offset is not None:
        with in_kernel_invocation_manager(mode):
            made.set_(args[0].untyped_storage(), rule.offset, rule.shape, rule.stride)
    return FakeTensor(mode, made, _CPU)


class _UnusualError(Exception):
    """An argument that no rule is kept for."""


def _key(value: Any) -> Any:
    kind = type(value)
    if kind is FakeTensor:
        if value.constant is not None or value.fake_device != _CPU or value.layout is not torch.strided:
            raise _UnusualError
        return value.shape, value.stride(), value.storage_offset(), value.dtype
    if kind in _PLAIN:
        return kind, value
    if kind is tuple or kind is list:
        return kind, *map(_key, value)
    if kind is torch.device and value == _CPU:
        return value
    raise _UnusualError


def _is_whole(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is all of its storage, in one of the layouts that an empty tensor can have."""
    anew = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == anew.untyped_storage().nbytes()
