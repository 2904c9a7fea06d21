"""Operators on fake tensors, with real values of small tensors where they are known.

A fake tensor has no data. But masks, positions, lengths and labels are small, and a network may read their values:
those that follow from constants and from the inputs are computed for real along with the fake ones.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
    unset_fake_temporarily,
)
from torch.utils.weak import WeakTensorKeyDictionary

from planner.trace.worker.fake_tensors.assumptions import Assumptions

_PLAIN: Final = frozenset((int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format))
_CPU: Final = torch.device("cpu")


class ShapeRule(NamedTuple):
    """Output of an operator: a new tensor, or a view of its first argument that begins at `offset`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int | None = None


class ShapeRules:
    """Cache of the shape, stride and dtype of an operator's output, by its arguments.

    Only for operators that return one tensor and mutate none; everything else is left to `FakeTensorMode`, whose own
    cache is several times slower because it supports symbolic shapes too.
    """

    def __init__(self) -> None:
        self._rules: dict[Any, ShapeRule] = {}
        self._gives_one_tensor: dict[Any, bool] = {}

    def dispatch(
        self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of `func` in `mode`."""
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


def _rule(result: Any, args: tuple[Any, ...]) -> ShapeRule | None:
    """Return the rule for `result`, or None if it is unusual."""
    if type(result) is not FakeTensor or result.constant is not None or result.fake_device != _CPU:
        return None
    if result.layout is not torch.strided or result.is_conj() or result.is_neg():
        return None
    rule = ShapeRule(tuple(result.shape), result.stride(), result.dtype)
    storage = result.untyped_storage()._cdata
    given = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.untyped_storage()._cdata == storage]
    if given:
        return rule._replace(offset=int(result.storage_offset())) if given[0] is args[0] is not result else None
    return rule if _is_whole(result) else None


def _made(mode: FakeTensorMode, rule: ShapeRule, args: tuple[Any, ...]) -> FakeTensor:
    made = torch.empty_strided(rule.shape, rule.stride, dtype=rule.dtype, device="meta")
    if rule.offset is not None:
        with in_kernel_invocation_manager(mode):
            made.set_(args[0].untyped_storage(), rule.offset, rule.shape, rule.stride)
    return FakeTensor(mode, made, _CPU)


class _UnusualError(Exception):
    """An argument for which results are not cached."""


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
    """Return whether `tensor` is all of its storage, in a layout that an empty tensor can have."""
    anew = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == anew.untyped_storage().nbytes()


_aten: Final = torch.ops.aten
_MOST_WHOLE_NUMBERS: Final = 1 << 16
_MOST_FRACTIONS: Final = 1 << 12
_FACTORIES: Final = frozenset(
    (
        _aten.arange.default,
        _aten.arange.start,
        _aten.arange.start_step,
        _aten.zeros.default,
        _aten.ones.default,
        _aten.full.default,
        _aten.linspace.default,
        _aten.scalar_tensor.default,
        _aten.tril_indices.default,
        _aten.triu_indices.default,
        _aten.eye.default,
        _aten.randint.default,
        _aten.randint.low,
        _aten.randperm.default,
    )
)


class KnownValues:
    """Runs operators on fake tensors, and tracks the real values of small, known ones."""

    def __init__(self, assumptions: Assumptions) -> None:
        self._real = WeakTensorKeyDictionary()
        self._assumptions = assumptions
        self._rules = ShapeRules()
        self._mutates: dict[Any, bool] = {}

    def know(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        """Set the real values of `fake`."""
        self._real[fake] = real

    def run(self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `func` in `mode`; if it depends on values, from known or assumed ones."""
        replacement = self._assumptions.replacement(func)
        if replacement is not None:
            with mode:
                return replacement(*args, **kwargs)
        try:
            result = self._rules.dispatch(mode, func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            with mode:
                return self._by_value(func, args, kwargs)
        if func is _aten.lift_fresh.default:
            self._lift(args[0], result)
        elif self._changes_argument(func):
            self._follow_change(func, args, kwargs)
        elif _is_small(result) and self._follows(func, args, kwargs):
            self._remember(result, self._for_real(func, args, kwargs))
        self._assumptions.follow(func, args, result)
        return result

    def _by_value(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._all_known(args, kwargs):
            return self._assumptions.assume(func, args, kwargs)
        real = self._for_real(func, args, kwargs)
        if isinstance(real, tuple):
            return tuple(self._as_fake(value) for value in real)
        return self._as_fake(real)

    def _as_fake(self, real: Any) -> Any:
        if not isinstance(real, torch.Tensor):
            return real
        fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype)
        self._real[fake] = real
        return fake

    def _remember(self, result: Any, real: Any) -> None:
        if isinstance(result, torch.Tensor):
            self._real[result] = real
        elif isinstance(result, tuple | list):
            for fake, value in zip(result, real, strict=True):
                self._remember(fake, value)

    def _lift(self, constant: torch.Tensor, fake: torch.Tensor) -> None:
        # Fake tensors keep single constants, such as an optimizer's step counts, by themselves.
        if not isinstance(constant, FakeTensor) and constant.numel() > 1 and _is_small(constant):
            with unset_fake_temporarily():
                self._real[fake] = constant.clone()

    def _follows(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if func in _FACTORIES:
            return True
        tensors = list(_tensors((*args, *kwargs.values())))
        return bool(tensors) and all(tensor in self._real for tensor in tensors)

    def _all_known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return all(tensor in self._real for tensor in _tensors((*args, *kwargs.values())))

    def _changes_argument(self, func: Any) -> bool:
        known = self._mutates.get(func)
        if known is None:
            known = self._mutates[func] = func._schema.is_mutable
        return known

    def _follow_change(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Apply a mutation to the real values too, or forget them and all their views."""
        changed = args[0] if args else None
        if not isinstance(changed, torch.Tensor) or changed not in self._real:
            return
        if self._all_known(args, kwargs):
            self._for_real(func, args, kwargs)
            return
        storage = self._real[changed].untyped_storage()._cdata
        known: list[tuple[torch.Tensor, torch.Tensor]] = list(self._real.items())
        for fake, real in known:
            if real.untyped_storage()._cdata == storage:
                del self._real[fake]

    def _for_real(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with unset_fake_temporarily(), torch.no_grad():
            return func(*self._with_values(args), **dict(zip(kwargs, self._with_values(kwargs.values()), strict=True)))

    def _with_values(self, values: Iterable[Any]) -> list[Any]:
        return [self._real_value(value) for value in values]

    def _real_value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._real[value]
        if isinstance(value, list | tuple):
            return type(value)(self._real_value(item) for item in value)
        return value


def _is_small(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return bool(result) and all(map(_is_small, result))
    if not isinstance(result, torch.Tensor):
        return False
    return result.numel() <= (_MOST_FRACTIONS if result.is_floating_point() else _MOST_WHOLE_NUMBERS)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
