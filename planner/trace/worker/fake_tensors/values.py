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

_PLAIN_TYPES: Final = frozenset((int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format))
_CPU: Final = torch.device("cpu")


class ShapeRule(NamedTuple):
    """Cached form of an operator's output: a new tensor, or a view of the first argument that begins at `offset`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int | None = None


class ShapeRules:
    """Cache of the shape, stride and dtype of an operator's output, by its arguments.

    Only for operators that return one tensor and mutate none; all other operators are left to `FakeTensorMode`. Its own
    cache is several times slower because it supports symbolic shapes too.
    """

    def __init__(self) -> None:
        self._rules: dict[Any, ShapeRule] = {}
        self._gives_one_tensor: dict[Any, bool] = {}

    def dispatch(
        self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the fake result of `func` in `mode`, from the cache if the same shapes have occurred."""
        if not self._is_cacheable(func):
            return mode.dispatch(func, types, args, kwargs)
        try:
            key = (func, torch.get_default_dtype(), *map(_cache_key, args), *map(_cache_key, kwargs.items()))
        except _UncacheableArgumentError:
            return mode.dispatch(func, types, args, kwargs)
        rule = self._rules.get(key)
        if rule is not None:
            return _fake_result(mode, rule, args)
        result = mode.dispatch(func, types, args, kwargs)
        rule = _shape_rule(result, args)
        if rule is not None:
            self._rules[key] = rule
        return result

    def _is_cacheable(self, func: Any) -> bool:
        """Return whether the output's shape follows from the operator's arguments, so that it can be cached."""
        cacheable = self._gives_one_tensor.get(func)
        if cacheable is None:
            returns = func._schema.returns
            cacheable = len(returns) == 1 and str(returns[0].type) == "Tensor" and not func._schema.is_mutable
            cacheable = cacheable and torch.Tag.dynamic_output_shape not in func.tags
            self._gives_one_tensor[func] = cacheable
        return cacheable


def _shape_rule(result: Any, args: tuple[Any, ...]) -> ShapeRule | None:
    """Return the shape rule for `result`, or None if it cannot be cached."""
    if type(result) is not FakeTensor or result.constant is not None or result.fake_device != _CPU:
        return None
    if result.layout is not torch.strided or result.is_conj() or result.is_neg():
        return None
    rule = ShapeRule(tuple(result.shape), result.stride(), result.dtype)
    storage = result.untyped_storage()._cdata
    aliased = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.untyped_storage()._cdata == storage]
    if aliased:
        return rule._replace(offset=int(result.storage_offset())) if aliased[0] is args[0] is not result else None
    return rule if _fills_storage(result) else None


def _fake_result(mode: FakeTensorMode, rule: ShapeRule, args: tuple[Any, ...]) -> FakeTensor:
    """Return a fake tensor by its cached shape rule."""
    meta_tensor = torch.empty_strided(rule.shape, rule.stride, dtype=rule.dtype, device="meta")
    if rule.offset is not None:
        with in_kernel_invocation_manager(mode):
            meta_tensor.set_(args[0].untyped_storage(), rule.offset, rule.shape, rule.stride)
    return FakeTensor(mode, meta_tensor, _CPU)


class _UncacheableArgumentError(Exception):
    """Raised for an argument for which results are not cached."""


def _cache_key(value: Any) -> Any:
    """Return `value` as part of a cache key: tensors by shape, stride, offset and dtype."""
    kind = type(value)
    if kind is FakeTensor:
        if value.constant is not None or value.fake_device != _CPU or value.layout is not torch.strided:
            raise _UncacheableArgumentError
        return value.shape, value.stride(), value.storage_offset(), value.dtype
    if kind in _PLAIN_TYPES:
        return kind, value
    if kind is tuple or kind is list:
        return kind, *map(_cache_key, value)
    if kind is torch.device and value == _CPU:
        return value
    raise _UncacheableArgumentError


def _fills_storage(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` fills its whole storage, in a layout that an empty tensor can have."""
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == fresh.untyped_storage().nbytes()


_aten: Final = torch.ops.aten
_MAX_INTEGERS: Final = 1 << 16
_MAX_FLOATS: Final = 1 << 12
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
    """Runs operators on fake tensors, and tracks the real values of small tensors where known."""

    def __init__(self, assumptions: Assumptions) -> None:
        self._real_tensors = WeakTensorKeyDictionary()
        self._assumptions = assumptions
        self._rules = ShapeRules()
        self._mutates: dict[Any, bool] = {}

    def set_real_values(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        """Set the real values of `fake`."""
        self._real_tensors[fake] = real

    def run(self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the fake result of `func` in `mode`; where it depends on values, from known or assumed values."""
        replacement = self._assumptions.replacement(func)
        if replacement is not None:
            with mode:
                return replacement(*args, **kwargs)
        try:
            result = self._rules.dispatch(mode, func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            with mode:
                return self._result_by_value(func, args, kwargs)
        if func is _aten.lift_fresh.default:
            self._set_known_constant(args[0], result)
        elif self._is_mutating(func):
            self._track_mutation(func, args, kwargs)
        elif _is_small(result) and self._has_known_inputs(func, args, kwargs):
            self._set_known_result(result, self._run_on_real_values(func, args, kwargs))
        self._assumptions.track_selected_fraction(func, args, result)
        return result

    def _result_by_value(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `func` from its inputs' known values, or an assumed result."""
        if not self._are_all_known(args, kwargs):
            return self._assumptions.assumed_result(func, args, kwargs)
        real = self._run_on_real_values(func, args, kwargs)
        if isinstance(real, tuple):
            return tuple(self._fake_with_real_values(value) for value in real)
        return self._fake_with_real_values(real)

    def _fake_with_real_values(self, real: Any) -> Any:
        """Return a fake tensor that stands for `real`, with known values."""
        if not isinstance(real, torch.Tensor):
            return real
        fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype)
        self._real_tensors[fake] = real
        return fake

    def _set_known_result(self, result: Any, real: Any) -> None:
        """Set the real values of the fake tensors in `result`."""
        if isinstance(result, torch.Tensor):
            self._real_tensors[result] = real
        elif isinstance(result, tuple | list):
            for fake, value in zip(result, real, strict=True):
                self._set_known_result(fake, value)

    def _set_known_constant(self, constant: torch.Tensor, fake: torch.Tensor) -> None:
        """Set the known values of `fake` to those of a small constant."""
        # Fake tensors keep single constants, such as an optimizer's step counts, by themselves.
        if not isinstance(constant, FakeTensor) and constant.numel() > 1 and _is_small(constant):
            with unset_fake_temporarily():
                self._real_tensors[fake] = constant.clone()

    def _has_known_inputs(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether `func` has inputs, all with known values, or needs none."""
        if func in _FACTORIES:
            return True
        tensors = list(_flat_tensors((*args, *kwargs.values())))
        return bool(tensors) and all(tensor in self._real_tensors for tensor in tensors)

    def _are_all_known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the real values of all tensors among the arguments are known."""
        return all(tensor in self._real_tensors for tensor in _flat_tensors((*args, *kwargs.values())))

    def _is_mutating(self, func: Any) -> bool:
        is_mutating = self._mutates.get(func)
        if is_mutating is None:
            is_mutating = self._mutates[func] = func._schema.is_mutable
        return is_mutating

    def _track_mutation(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Apply a mutation to the real values too, or forget the real values and all their views."""
        changed = args[0] if args else None
        if not isinstance(changed, torch.Tensor) or changed not in self._real_tensors:
            return
        if self._are_all_known(args, kwargs):
            self._run_on_real_values(func, args, kwargs)
            return
        storage = self._real_tensors[changed].untyped_storage()._cdata
        fake_and_real: list[tuple[torch.Tensor, torch.Tensor]] = list(self._real_tensors.items())
        for fake, real in fake_and_real:
            if real.untyped_storage()._cdata == storage:
                del self._real_tensors[fake]

    def _run_on_real_values(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `func` on the known real values of its arguments."""
        with unset_fake_temporarily(), torch.no_grad():
            return func(*self._real_values(args), **dict(zip(kwargs, self._real_values(kwargs.values()), strict=True)))

    def _real_values(self, values: Iterable[Any]) -> list[Any]:
        return [self._real_value(value) for value in values]

    def _real_value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._real_tensors[value]
        if isinstance(value, list | tuple):
            return type(value)(self._real_value(item) for item in value)
        # On the simulated card, a device may be one that this build of PyTorch does not have.
        return _CPU if isinstance(value, torch.device) else value


def _is_small(result: Any) -> bool:
    """Return whether the values of `result` are few enough to be tracked."""
    if isinstance(result, tuple | list):
        return bool(result) and all(map(_is_small, result))
    if not isinstance(result, torch.Tensor):
        return False
    return result.numel() <= (_MAX_FLOATS if result.is_floating_point() else _MAX_INTEGERS)


def _flat_tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among `values`, also inside lists and tuples."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _flat_tensors(value)
