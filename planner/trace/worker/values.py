"""Operators on fake tensors, with the values of small tensors where they are known.

A fake tensor has no data. But masks, positions, lengths and labels are small, and a network may ask for their values:
those that follow from constants and from the inputs are computed for real beside the fake ones.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils.weak import WeakTensorKeyDictionary

from planner.trace.worker.assumed import Assumptions
from planner.trace.worker.shape_rules import ShapeRules

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
    """Runs operators on fake tensors, and remembers the real values of those that are small and known."""

    def __init__(self, assumptions: Assumptions) -> None:
        self._real = WeakTensorKeyDictionary()
        self._assumptions = assumptions
        self._rules = ShapeRules()
        self._mutates: dict[Any, bool] = {}

    def know(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        """Take `real` as the values of `fake`."""
        self._real[fake] = real

    def run(self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what `func` returns in `mode`; where that depends on values, from known or assumed ones."""
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
            return self._assumptions.answer(func, args, kwargs)
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
        """Make the change on the real values too, or forget them and all their views."""
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
