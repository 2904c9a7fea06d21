"""Operators on fake tensors, with real values of small tensors where they are known or assumed.

A fake tensor has no data. But masks, positions, lengths and labels are small, and a network may read their values:
those that follow from constants and from the inputs are computed for real along with the fake ones. What a network
decides by unknown values is assumed where the decision is made, and followed from there like what is known.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
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
from torch.autograd.graph import increment_version
from torch.nn import init
from torch.utils.flop_counter import flop_registry
from torch.utils.weak import WeakIdKeyDictionary

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.rules import REPLACED_RULES
from planner.trace.worker.fake_tensors.sparse import complete_sparse
from planner.trace.worker.refusals import BY_LAYOUT, UntraceableError

_PLAIN_TYPES: Final = frozenset((int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format))
_CPU: Final = torch.device("cpu")
_CONVERSIONS: Final = ("__float__", "__int__", "__index__", "__complex__")
_PYTHON_KEYS: Final = (torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot)


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
        rule = self._rules.get(key) or _rule_of_part(func, *args, **kwargs)
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


def _rule_of_part(func: Any, *args: Any, **kwargs: Any) -> ShapeRule | None:
    """Return the rule for one place or a range of a tensor's; not cached, as a loop over data reads each place once."""
    find_part = _PARTS.get(func)
    return None if find_part is None or args[0].is_conj() or args[0].is_neg() else find_part(*args, **kwargs)


def _place_of(tensor: torch.Tensor, dim: int, index: int) -> ShapeRule | None:
    shape, stride = list(tensor.shape), list(tensor.stride())
    if not (-len(shape) <= dim < len(shape) and -shape[dim] <= index < shape[dim]):
        return None
    offset = int(tensor.storage_offset()) + index % shape[dim] * stride[dim]
    del shape[dim], stride[dim]
    return ShapeRule(tuple(shape), tuple(stride), tensor.dtype, offset)


def _range_of(
    tensor: torch.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> ShapeRule | None:
    shape, stride = list(tensor.shape), list(tensor.stride())
    if not -len(shape) <= dim < len(shape) or step < 1:
        return None
    places = range(shape[dim])[start:end:step]
    offset = int(tensor.storage_offset()) + places.start * stride[dim]
    shape[dim], stride[dim] = len(places), stride[dim] * step
    return ShapeRule(tuple(shape), tuple(stride), tensor.dtype, offset)


_PARTS: Final[dict[Any, Callable[..., ShapeRule | None]]] = {
    torch.ops.aten.select.int: _place_of,
    torch.ops.aten.slice.Tensor: _range_of,
}


def _fake_result(mode: FakeTensorMode, rule: ShapeRule, args: tuple[Any, ...]) -> FakeTensor:
    """Return a fake tensor by its cached shape rule."""
    if rule.offset is not None and torch.is_inference_mode_enabled() and not args[0].is_inference():
        with torch.inference_mode(False):  # a view of a normal tensor is one, too
            return _fake_result(mode, rule, args)
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
_MAX_ELEMENTS: Final = 1 << 20
_MAX_FACTOR_ELEMENTS: Final = 1 << 16
"""Size of the largest tensors whose products are followed: their work grows faster than their size."""
_SHAPED_LIKE_A_TENSOR: Final = frozenset(
    getattr(_aten, name).default
    for name in ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
)
"""Operators that take only the shape and the format of their tensor."""
_EMPTY: Final = frozenset(
    getattr(_aten, name)
    for name in ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
)
_OVERWRITING: Final = frozenset(
    getattr(_aten, name)
    for name in ("fill_", "zero_", "copy_", "uniform_", "normal_", "bernoulli_", "random_", "exponential_")
)
"""Operators that replace all values of their first argument."""
_UNSCALE: Final = _aten._amp_foreach_non_finite_check_and_unscale_.default

_Assumed = frozenset[str]
"""Descriptions of the assumptions from which values follow; none if the values are known."""
_KNOWN: Final[_Assumed] = frozenset()
_INITIALIZATION: Final = init.__file__


class _StorageValues(NamedTuple):
    """Real values of a fake storage, and the assumptions from which they follow."""

    storage: torch.UntypedStorage
    assumed: _Assumed


class KnownValues:
    """Runs operators on fake tensors, and follows the values of small storages that are known or assumed.

    Values belong to a storage: a change in place is seen through every view.
    """

    def __init__(self, assumptions: Assumptions) -> None:
        self._values = WeakIdKeyDictionary()
        self._assumptions = assumptions
        self._rules = ShapeRules()
        self._selections: dict[Any, Callable[..., Any]] = {
            _aten.index.Tensor: self._index,
            _aten.masked_select.default: self._masked_select,
            _aten._pack_padded_sequence.default: self._pack_padded_sequence,
            _aten._ctc_loss.Tensor: self._ctc_loss,
            _aten._ctc_loss.default: self._ctc_loss,
        }
        self._lost_states = {torch.default_generator: torch.default_generator.get_state()}

    def run(self, mode: FakeTensorMode, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the fake result of `func` in `mode`; where it depends on values, from known or assumed values."""
        traits = _traits(func)
        try:
            if traits.rule is None:
                result = self._rules.dispatch(mode, func, types, args, kwargs)
            else:
                with mode:
                    result = traits.rule(*args, **kwargs)
            if isinstance(result, torch.Tensor) and (result.layout is not torch.strided or result.is_quantized):
                return self._of_odd_layout(mode, func, args, result)
        except (DataDependentOutputException, DynamicOutputShapeException):
            with mode:
                return self._result_by_value(func, args, kwargs)
        if traits.is_mutable:
            self._follow_mutation(traits, func, args, kwargs)
        else:
            self._follow_result(traits, func, args, kwargs, result)
        return result

    def _of_odd_layout(self, mode: FakeTensorMode, func: Any, args: tuple[Any, ...], result: torch.Tensor) -> Any:
        """Return a result that is not stored element by element.

        Raises:
            UntraceableError: If it cannot be traced.
        """
        if result.layout is not torch.sparse_coo or result.is_quantized:
            name = "quantized" if result.is_quantized else str(result.layout).removeprefix("torch.")
            raise UntraceableError(*BY_LAYOUT[name])

        def positions(dense: torch.Tensor) -> Any:
            return self._result_by_value(_aten.nonzero.default, (dense,), {})

        with mode:
            return complete_sparse(func, args, result, self._assumptions.distinct_count, positions)

    @contextmanager
    def read_as_arrays(self) -> Iterator[None]:
        """Let `Tensor.numpy` return arrays of what is known, or assumed; and lengths be the longest in encoders."""
        read = torch.Tensor.numpy

        def numpy(tensor: torch.Tensor, *, force: bool = False) -> Any:
            if not isinstance(tensor, FakeTensor) or (tensor.requires_grad and not force):
                return read(tensor, force=force)
            known = self._known(tensor)
            if known is None:
                number = self._assumptions.assumed_result(_aten._local_scalar_dense.default, (tensor,), {})
                with unset_fake_temporarily():
                    array: Any = torch.full(tuple(tensor.shape), number, dtype=tensor.dtype, device=_CPU).numpy()
            else:
                self._assumptions.note(known.assumed)
                with unset_fake_temporarily(), torch.no_grad():
                    array = self._value(tensor).resolve_conj().numpy()
            # An array holds the tensor whose memory it is, and so that of the one that it stands for.
            array.base.stands_for = tensor.untyped_storage()
            return array

        def tolist(tensor: torch.Tensor) -> Any:
            known = self._known(tensor)
            if known is None:
                # One reading for all, as each takes a millisecond.
                return tensor.item() if tensor.dim() == 0 else _nested(tensor.reshape(-1)[0].item(), tensor.shape)
            self._assumptions.note(known.assumed)
            with unset_fake_temporarily(), torch.no_grad():
                return self._value(tensor).tolist()

        def is_left_aligned(_tensor: object, _mask: object) -> bool:
            self._assumptions.note_longest_lengths()
            return False

        def set_item(tensor: torch.Tensor, place: Any, value: Any) -> None:
            if not self._set_number(tensor, place, value):
                torch.Tensor.__setitem__(tensor, place, value)

        conversions = {name: _as_number(name) for name in _CONVERSIONS}
        # Left-aligned masks let an encoder leave out what is padded, as one nested tensor of the lengths.
        with (
            patched_attributes(torch.Tensor, numpy=numpy),
            patched_attributes(FakeTensor, __setitem__=set_item, tolist=tolist, **conversions),
            patched_attributes(torch, _nested_tensor_from_mask_left_aligned=is_left_aligned),
        ):
            yield

    def _set_number(self, tensor: torch.Tensor, place: Any, number: Any) -> bool:
        """Set one number of a list of them, as scripts do for each word of a text; return whether that is all to do.

        No operator runs, which takes fifty times as long; nor is the number of eight bytes counted that PyTorch makes.
        """
        if type(place) is not int or type(number) is not int or tensor.dtype is not torch.int64:
            return False
        if tensor.dim() != 1 or not -len(tensor) <= place < len(tensor) or torch._C._functorch.maybe_current_level():
            return False
        known = self._known(tensor)
        if known is not None:
            with unset_fake_temporarily():
                _view(known.storage, tensor)[place] = number
        increment_version(tensor)
        return True

    def _result_by_value(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `func` from its inputs' values, or an assumed result."""
        select = self._selections.get(func)
        if select is not None:
            return select(*args, **kwargs)
        assumed = self._inputs_assumed((*args, *kwargs.values()))
        if assumed is None:
            return self._assumptions.assumed_result(func, args, kwargs)
        if assumed and func is _aten._local_scalar_dense.default:
            if _is_in_initialization():
                return False
            passed = self._assumptions.passed_check() if args[0].dtype == torch.bool else None
            if passed is not None:
                return passed
        self._assumptions.note(assumed)
        with unset_fake_temporarily(), torch.no_grad():
            real = self._run_on_values(func, args, kwargs)
        if isinstance(real, tuple):
            return tuple(self._fake_with_values(value, assumed) for value in real)
        return self._fake_with_values(real, assumed)

    def _index(self, tensor: torch.Tensor, indices: list[torch.Tensor | None]) -> Any:
        """Return the result of indexing with masks, which depends on how many elements they select."""
        positions: list[torch.Tensor | None] = []
        for index in indices:
            if index is not None and index.dtype in (torch.bool, torch.uint8):
                positions += self._result_by_value(_aten.nonzero.default, (index,), {}).unbind(1)
            else:
                positions.append(index)
        return _aten.index.Tensor(tensor, positions)

    def _masked_select(self, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the selection of elements by a mask."""
        mask = mask.expand(torch.broadcast_shapes(tensor.shape, mask.shape))
        count = self._result_by_value(_aten.nonzero.default, (mask,), {}).shape[0]
        return torch.empty((count,), dtype=tensor.dtype)

    def _pack_padded_sequence(
        self, tensor: torch.Tensor, lengths: torch.Tensor, batch_first: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return packed sequences, with the number of sequences at each step as a real tensor, which PyTorch reads."""
        real_lengths = self._read_integers(lengths, longest=tensor.shape[1 if batch_first else 0])
        with unset_fake_temporarily(), torch.no_grad():
            outline = torch.empty(tensor.shape[:2], device=_CPU)
            _, steps = _aten._pack_padded_sequence(outline, torch.tensor(real_lengths, device=_CPU), batch_first)
        return torch.empty((sum(real_lengths), *tensor.shape[2:]), dtype=tensor.dtype), steps

    def _ctc_loss(
        self, log_probs: torch.Tensor, targets: torch.Tensor, _inputs: Any, target_lengths: Any, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses and the logarithms of the paths' probabilities.

        **Source**: `ctc_loss_cpu_template` of aten/src/ATen/native/LossCTC.cpp: blanks around each label.
        """
        if isinstance(target_lengths, torch.Tensor):
            target_lengths = self._read_integers(target_lengths, longest=targets.shape[-1])
        steps, batch = log_probs.shape[:2]
        paths = torch.empty((batch, steps, 2 * max(target_lengths, default=0) + 1), dtype=log_probs.dtype)
        return torch.empty((batch,), dtype=log_probs.dtype), paths

    def _read_integers(self, tensor: torch.Tensor, longest: int) -> list[int]:
        """Return the values of a tensor of lengths; unknown ones are the `longest`."""
        known = self._known(tensor)
        if known is None:
            self._assumptions.note_longest_lengths()
            return [longest] * tensor.numel()
        self._assumptions.note(known.assumed)
        with unset_fake_temporarily():
            return list(map(int, self._value(tensor).tolist()))

    def _fake_with_values(self, real: Any, assumed: _Assumed) -> Any:
        """Return a fake tensor that stands for `real`, with its values."""
        if not isinstance(real, torch.Tensor):
            return real
        fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype)
        if real.numel() <= _MAX_ELEMENTS:
            with unset_fake_temporarily():
                self._set_values(fake, real, assumed)
        return fake

    def _follow_result(
        self, traits: "_Traits", func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Set the values of the tensors that `func` made, if they are known or can be assumed."""
        assumed = _KNOWN if traits.needs_only_shape else self._inputs_assumed((*args, *kwargs.values()))
        if assumed is None and not traits.is_random and type(result) is FakeTensor and result.is_floating_point():
            return
        made = list(_flat_tensors((result,)))
        inputs = list(_flat_tensors((*args, *kwargs.values())))
        if not _is_worth_following(func, inputs, made):
            return
        with unset_fake_temporarily(), torch.no_grad():
            if func._overloadpacket in _EMPTY:
                # What is left unset would be 0 in fresh memory; positions and flags are often set part by part.
                self._set_values(made[0], torch.zeros(made[0].shape, device=_CPU), _KNOWN)
                return
            if assumed is not None:
                real = self._run_followed(func, args, kwargs, _is_choice(made[0]))
                if real is not None:
                    for fake, value in zip(made, _flat_tensors((real,)), strict=True):
                        self._set_values(fake, value, assumed)
                    return
            elif traits.is_random:
                self._lose_random_state(kwargs)
            for fake in made:
                if not fake.is_floating_point() and not fake.is_complex():
                    value, assumption = self._assumptions.decision(func, args, kwargs, fake, self._value_or_number)
                    self._set_values(fake, value, (assumed or _KNOWN) | assumption)

    def _follow_mutation(self, traits: "_Traits", func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Change the values too that `func` changes, or forget them."""
        if traits.is_view:
            return
        # That all gradients are finite leaves the flag unchanged that says so.
        written = args[:1] if func is _UNSCALE else traits.written_arguments(args, kwargs)
        changed = list(_flat_tensors(written))
        values = (*args, *kwargs.values())
        if func._overloadpacket in _OVERWRITING and self._known(args[0]) is None and _fills_storage(args[0]):
            values = values[1:]
        assumed = self._inputs_assumed(values)
        if assumed is None and not traits.is_random:
            self.forget(changed)
            return
        with unset_fake_temporarily(), torch.no_grad():
            if assumed is not None and all(tensor.numel() <= _MAX_ELEMENTS for tensor in changed):
                for tensor in changed:
                    known = self._known(tensor)
                    storage = known.storage if known else torch.UntypedStorage(tensor.untyped_storage().nbytes())
                    self._values[tensor.untyped_storage()] = _StorageValues(storage, assumed)
                if self._run_followed(func, args, kwargs, _is_choice(changed[0])) is not None:
                    return
            elif traits.is_random:
                self._lose_random_state(kwargs)
        self.forget(changed)

    def forget(self, values: Iterable[Any]) -> None:
        """Forget the values of tensors that something unknown was written to."""
        for tensor in _flat_tensors(values):
            if tensor.layout is torch.strided:
                self._values.pop(tensor.untyped_storage(), None)

    def _run_followed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_choice: bool) -> Any:
        """Return the result of `func` on the values of its arguments, None if it is not known.

        Random numbers are known if the program seeded their generator and each number since then was drawn here too.
        Others count as unknown, except choices, and where values are to be drawn: any draw is a valid one.
        """
        is_lost = _traits(func).is_random and self._is_random_state_lost(kwargs)
        result = None
        if not is_lost or is_choice:
            try:
                result = self._run_on_values(func, args, kwargs)
            except Exception:  # noqa: BLE001  # the simulated card has operators that this build cannot run
                return None
            if result is None:
                return ()  # Operators that change lists in place return nothing.
        if is_lost:
            self._lose_random_state(kwargs)
        return result

    def _is_random_state_lost(self, kwargs: dict[str, Any]) -> bool:
        """Return whether numbers were drawn from the generator that were not followed, since it was seeded."""
        generator = kwargs.get("generator") or torch.default_generator
        lost = self._lost_states.get(generator)
        is_on_card = kwargs.get("device") not in (None, _CPU)
        is_lost = is_on_card or (lost is not None and torch.equal(generator.get_state(), lost))
        return is_lost and not self._assumptions.are_drawn

    def _lose_random_state(self, kwargs: dict[str, Any]) -> None:
        """Remember that numbers were drawn that were not followed: later ones are unknown until the next seed."""
        generator = kwargs.get("generator") or torch.default_generator
        self._lost_states[generator] = generator.get_state()

    def _inputs_assumed(self, values: Iterable[Any]) -> _Assumed | None:
        """Return the assumptions from which the tensors among `values` follow; None if one is unknown."""
        assumed = _KNOWN
        for tensor in _flat_tensors(values):
            known = self._known(tensor)
            if known is None:
                return None
            assumed |= known.assumed
        return assumed

    def _known(self, tensor: torch.Tensor) -> _StorageValues | None:
        """Return the values of a tensor's storage, None if they are unknown, as those of a sparse tensor are."""
        if tensor.layout is not torch.strided:
            return None
        if not isinstance(tensor, FakeTensor):
            return _StorageValues(tensor.untyped_storage(), _KNOWN)
        known: _StorageValues | None = self._values.get(tensor.untyped_storage())
        return known

    def _set_values(self, fake: torch.Tensor, real: torch.Tensor, assumed: _Assumed) -> None:
        """Set the values of a fake tensor's storage; a real tensor of another shape has none."""
        if fake.shape == real.shape:
            storage = torch.UntypedStorage(fake.untyped_storage().nbytes())
            _view(storage, fake).copy_(real)
            self._values[fake.untyped_storage()] = _StorageValues(storage, assumed)

    def _run_on_values(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `func` on the values of its arguments."""
        return func(*map(self._value, args), **{name: self._value(value) for name, value in kwargs.items()})

    def _value(self, value: Any) -> Any:
        """Return an argument with the values of its tensors, which count only by shape where they are unknown."""
        if isinstance(value, FakeTensor):
            known = self._known(value)
            if known is None:
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_CPU)
            return _view(known.storage, value)
        if isinstance(value, list | tuple):
            return type(value)(map(self._value, value))
        # On the simulated card, a device may be one that this build of PyTorch does not have.
        return _CPU if isinstance(value, torch.device) else value

    def _value_or_number(self, value: Any, number: float) -> Any:
        """Return an argument with the values of its tensors, and `number` for an unknown one."""
        is_unknown = isinstance(value, FakeTensor) and self._known(value) is None
        return torch.full((), number, device=_CPU) if is_unknown else self._value(value)


def _nested(number: Any, shape: Sequence[int]) -> Any:
    """Return nested lists of this shape that have `number` everywhere."""
    return [_nested(number, shape[1:]) for _ in range(shape[0])] if shape else number


def _as_number(name: str) -> Callable[[torch.Tensor], Any]:
    """Return the conversion of a tensor to a number, which factories such as `torch.tensor` call for those in a list.

    **Source**: `internal_new_from_data` of torch/csrc/utils/tensor_new.cpp, which leaves out every mode and subclass.
    """
    convert = getattr(torch.Tensor, name)

    def converted(tensor: torch.Tensor) -> Any:
        excluded = [key for key in _PYTHON_KEYS if torch._C._dispatch_tls_is_dispatch_key_excluded(key)]
        for key in excluded:
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
        try:
            return convert(tensor)
        finally:
            for key in excluded:
                torch._C._dispatch_tls_set_dispatch_key_excluded(key, True)

    return converted


def _is_choice(tensor: torch.Tensor) -> bool:
    """Return whether random numbers are drawn to choose: whole numbers, booleans, or a single number."""
    return not tensor.is_floating_point() or tensor.numel() == 1


def _is_worth_following(func: Any, inputs: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    """Return whether `func` made small tensors with values of their own."""
    if not made or any(tensor.numel() > _MAX_ELEMENTS or tensor.is_conj() for tensor in made):
        return False
    if func._overloadpacket in _EMPTY and made[0].is_floating_point():
        return False
    if any(tensor.layout is not torch.strided for tensor in inputs):
        return False
    if any(tensor.untyped_storage() is made[0].untyped_storage() for tensor in inputs):
        return False
    return func._overloadpacket not in flop_registry or max(map(torch.numel, inputs)) <= _MAX_FACTOR_ELEMENTS


def _view(storage: torch.UntypedStorage, fake: torch.Tensor) -> torch.Tensor:
    """Return the real tensor that views `storage` as `fake` views its own."""
    place = (int(fake.storage_offset()), fake.shape, fake.stride())
    return torch.empty(0, dtype=fake.dtype, device=_CPU).set_(storage, *place)


class _Traits(NamedTuple):
    """Facts of an operator: `written` has the places and names of the arguments that it changes."""

    rule: Callable[..., Any] | None
    is_mutable: bool
    is_random: bool
    is_view: bool
    needs_only_shape: bool
    written: tuple[tuple[int, str], ...]

    def written_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
        """Yield the arguments of a call that it changes in place."""
        for place, name in self.written:
            yield args[place] if place < len(args) else kwargs.get(name)


@functools.cache
def _traits(func: Any) -> _Traits:
    """Return the facts of an operator; its declaration is slow to read."""
    return _Traits(
        REPLACED_RULES.get(func),
        func._schema.is_mutable,
        torch.Tag.nondeterministic_seeded in func.tags,
        torch.Tag.inplace_view in func.tags,
        func in _SHAPED_LIKE_A_TENSOR,
        tuple(
            (place, argument.name)
            for place, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
    )


def _flat_tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among `values`, also inside lists and tuples."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _flat_tensors(value)


def _is_in_initialization() -> bool:
    """Return whether PyTorch initializes a parameter, drawing again what lies outside of its bounds until nothing does.

    **Source**: `_no_grad_trunc_normal_` in torch/nn/init.py; with the usual bounds, nothing is drawn again.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _INITIALIZATION:
        frame = frame.f_back
    return frame is not None
