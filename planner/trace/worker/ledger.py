"""Ledger of a run: each storage from the operator that makes it to its release, operation counts, custom operators."""

import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch._library.custom_ops import CustomOpDef
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from planner.memory.result import PhaseName
from planner.trace.recording import CATEGORIES, Allocations, Category, RecordedPhase
from planner.trace.worker.call_sites import CallSites, NameTable
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.fake_tensors.derivatives import AutogradInPlace
from planner.trace.worker.fake_tensors.eager_behavior import (
    correct_storage_sizes,
    index_bytes,
)
from planner.trace.worker.fake_tensors.values import KnownValues


class FlopCounter:
    """Counter of floating-point operations in matrix products, convolutions and attention; a multiply-add is two.

    `convolutions` counts the operations of convolutions alone. `elements` counts the output elements of all counted
    operators, which the operators between them read and write again; `calls` counts all operators, one launch each.

    **Source**: `torch.utils.flop_counter`, whose formulas are used; elementwise operators count nothing there.
    """

    def __init__(self) -> None:
        self.total = self.convolutions = self.elements = self.calls = 0
        self._formulas: dict[Any, Callable[..., int] | None] = {}

    def count_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Add the operations of one call of `func`."""
        try:
            formula = self._formulas[func]
        except KeyError:
            formula = self._formulas[func] = flop_registry.get(func._overloadpacket)
        self.calls += 1
        if formula is not None and any(
            isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo for value in args
        ):
            return
        if formula is not None:
            # Formulas do not expect the type that some products give their results.
            shaped = (value for value in args if not isinstance(value, torch.dtype))
            flops = int(formula(*shaped, **kwargs, out_val=result))
            self.total += flops
            if "convolution" in func._overloadpacket.__name__:
                self.convolutions += flops
            outputs = result if isinstance(result, tuple | list) else (result,)
            self.elements += sum(output.numel() for output in outputs if isinstance(output, torch.Tensor))

    def reset_counts(self) -> None:
        """Reset all counts."""
        self.total = self.convolutions = self.elements = self.calls = 0


_CATEGORY_NUMBERS: Final = {name: number for number, name in enumerate(CATEGORIES)}
_DEVICE_QUERY: Final = torch.ops.prim.device.default
_UNLABELED: Final = -1
_UNCOUNTED: Final = -1
_COMPOSED: Final = frozenset(getattr(torch.ops.aten, name).default for name in ("linear", "matmul", "item"))
"""Operators that reach a dispatch mode whole where autograd is not asked, as in jagged and new tensors."""
_META: Final = torch.device("meta")
_LIFT: Final = torch.ops.aten.lift_fresh.default
_SAVING_PHASES: Final = ("forward", "loss")
_GENERATION_PHASES: Final = ("prefill", "decode")

_COLUMNS: Final = (
    *("_bytes", "_made", "_freed", "_category", "_operator", "_module", "_line", "_shape"),
    *("_in_module", "_card"),
)

HiddenBytes = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], int]
CardOf = Callable[[tuple[Any, ...], dict[str, Any]], int | None]
"""A function that returns the card on which an operator with these arguments makes its results; None: the host."""


class AllocationObserver(Protocol):
    """An observer of what is allocated on cards, and freed there."""

    def allocate(self, entry: int, size: int, card: int) -> None:
        """Note that `size` bytes were allocated."""

    def free(self, entry: int) -> None:
        """Note that the bytes of an allocation were freed."""


class AllocationLedger(FakeTensorMode):
    """Makes all tensors fake, and records every allocation and free that their operators would cause.

    A storage counts once, from the operator that makes it until its last reference is gone, whatever views of it exist.
    """

    def __init__(self, values: KnownValues, places: CallSites, flops: FlopCounter, hidden_bytes: HiddenBytes) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.events = 0
        self.uncounted_bytes = 0
        """Bytes of storages that were not recorded, as they are in host memory beside a card."""
        self.counts_arrays = False
        """Whether NumPy's memory counts: a network on a GPU has it there, and only the host's allocator has not."""
        self._is_paused = False
        self._end: type[BaseException] | None = None
        self.card_of_result: CardOf = lambda _args, _kwargs: 0
        self.observer: AllocationObserver | None = None
        """Observer of the recorded allocations; their entries change when some are removed, which ends it."""
        self._values = values
        self._places = places
        self._flops = flops
        self._hidden_bytes = hidden_bytes
        self._autograd = AutogradInPlace()
        self._alive: dict[int, int] = {}
        self._emptied: dict[int, int] = {}
        self._watched: dict[int, weakref.ref[Any]] = {}
        self._bytes = array("q")
        self._made = array("q")
        self._freed = array("q")
        self._category = array("b")
        self._operator = array("i")
        self._module = array("i")
        self._line = array("i")
        self._shape = array("i")
        self._in_module = array("b")
        self._card = array("b")
        self.operators = NameTable()
        self.shapes = NameTable()
        self._operator_numbers: dict[Any, int] = {}
        self._phases: list[tuple[PhaseName, int, int]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: nothing is compiled in a trace, so that the compiler need not be told to leave this mode alone.

        **Source**: `TorchDispatchMode.__init_subclass__`, whose wrapper takes a twentieth of the time of a trace.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE_QUERY:
            # Queried more often than all other operators together.
            return args[0].fake_device
        kwargs = kwargs or {}
        if self._end is not None:
            raise self._end
        if func in _COMPOSED and all(kind is FakeTensor for kind in types):
            with self:
                return func.decompose(*args, **kwargs)
        if self._is_paused:
            return self.dispatch(func, types, args, kwargs)
        func = self._autograd.operator_with_real_tensors(func, args)
        # Without a context manager, as this runs for every operator.
        self._is_paused = True
        try:
            result = self._values.run(self, func, types, args, kwargs)
            correct_storage_sizes(func, args, result)
        finally:
            self._is_paused = False
        self._autograd.observe_result(func, result)
        self._flops.count_operator(func, args, kwargs, result)
        self.record_result(result, func, args, kwargs)
        hidden = self._hidden_bytes(func, args, kwargs, result) + index_bytes(func, args, result)
        if hidden and (card := self.card_of_result(args, kwargs)) is not None:
            self._free(self._record_allocation(hidden, func, "inside the kernel", card))
        return result

    def unrecorded(self) -> AbstractContextManager[None]:
        """Record nothing within the context: work that a real run would not do, or does within one operator."""
        return self._paused(True)

    def recorded(self) -> AbstractContextManager[None]:
        """Record within an operator again: it runs others, as a real run does."""
        return self._paused(False)

    @contextmanager
    def _paused(self, is_paused: bool) -> Iterator[None]:
        before, self._is_paused = self._is_paused, is_paused
        try:
            yield
        finally:
            self._is_paused = before

    def end(self, signal: type[BaseException]) -> None:
        """End the record: what is freed from now on is not recorded, and every operator raises `signal`."""
        self._end = signal

    @contextmanager
    def real_tensors(self) -> Iterator[None]:
        """Make real tensors within the context, and record them like others: for numbers that decide what is run."""
        with unset_fake_temporarily(), torch.device("cpu"), _RecordedOperators(self):
            yield

    def forget_values(self, values: Iterable[Any]) -> None:
        """Forget the values of the tensors among `values`, which code that is not run would change."""
        self._values.forget(values)

    def observe_use_counts(self) -> None:
        """Observe PyTorch's reference counts while this mode, and the modes entered after it, are active."""
        self._autograd.observe_use_counts()

    def begin_phase(self, phase: PhaseName, step: int) -> None:
        """Begin `phase` of `step`."""
        self._phases.append((phase, step, self.events))

    @property
    def phase(self) -> PhaseName:
        """Return the name of the current phase."""
        return self._phases[-1][0]

    def label(self, tensors: Iterable[torch.Tensor], category: Category, owner: int | None = None) -> None:
        """Set the category of the storages of `tensors`, and the number of the module that owns them."""
        for entry in (entry for tensor in tensors for entry in self._entries(tensor)):
            self._category[entry] = _CATEGORY_NUMBERS[category]
            if owner is not None:
                self._module[entry] = owner

    def set_owner(self, tensor: torch.Tensor, module: int) -> None:
        """Set the number of the module that owns the storage of `tensor`, wherever the tensor was created."""
        for entry in self._entries(tensor):
            self._module[entry] = module

    def card_of(self, tensor: torch.Tensor) -> int | None:
        """Return the card that has the storage of `tensor`; None if it is on the host, or no operator made it."""
        return next((self._card[entry] for entry in self._entries(tensor)), None)

    def _entries(self, tensor: torch.Tensor) -> list[int]:
        """Return the entries of what holds the elements of `tensor`, as far as it is counted, or held them before."""
        keys = (storage._cdata for storage in self._storages(tensor))
        found = (self._alive.get(key, self._emptied.get(key, _UNCOUNTED)) for key in keys)
        return [entry for entry in found if entry != _UNCOUNTED]

    def _storages(self, tensor: torch.Tensor) -> list[torch.UntypedStorage]:
        """Return the storages of a tensor, or of what is inside one without: a shard, rows, positions and values."""
        tensor = unwrapped(tensor)
        if tensor.layout is torch.sparse_coo:
            with self.unrecorded():
                return [tensor._indices().untyped_storage(), tensor._values().untyped_storage()]
        inner: Any = getattr(tensor, "_local_tensor", None) if tensor.layout is torch.strided else tensor._values
        return [(tensor if inner is None else inner).untyped_storage()]

    def changes(self) -> Iterator[tuple[int, int, int | None]]:
        """Yield each allocation as its entry, its bytes and its card, and each free as its entry, 0 and None."""
        events = [(made, entry, False) for entry, made in enumerate(self._made)]
        events += [(freed, entry, True) for entry, freed in enumerate(self._freed) if freed >= 0]
        for _, entry, is_free in sorted(events):
            yield (entry, 0, None) if is_free else (entry, self._bytes[entry], self._card[entry])

    @property
    def count(self) -> int:
        """Return how many allocations are recorded."""
        return len(self._bytes)

    def made_since(self, entry: int) -> tuple[object, ...]:
        """Return what the allocations from `entry` on are, the bytes alive, and how many storages are alive at all."""
        alive = [self._bytes[number] for number in self._alive.values() if number != _UNCOUNTED]
        columns = (self._bytes, self._operator, self._module, self._line, self._card)
        return (*(column[entry:] for column in columns), sum(alive), len(self._alive))

    def cards(self) -> set[int]:
        """Return the cards on which anything was recorded."""
        return set(self._card)

    def keep_card(self, card: int) -> None:
        """Remove the allocations of other cards from the record, when the run is over."""
        self._keep_only([entry for entry, its in enumerate(self._card) if its == card])

    def forget_freed(self) -> None:
        """Remove allocations that have already been freed from the record."""
        self._keep_only([entry for entry, freed in enumerate(self._freed) if freed < 0])

    def forget_allocations(self, tensors: Iterable[torch.Tensor]) -> None:
        """Remove the allocations of `tensors` from the record."""
        keys = {storage._cdata for tensor in tensors for storage in self._storages(tensor)} & self._alive.keys()
        removed = {self._alive[key] for key in keys} - {_UNCOUNTED}
        self._alive.update(dict.fromkeys(keys, _UNCOUNTED))
        if removed:
            self._keep_only([entry for entry in range(len(self._bytes)) if entry not in removed])

    def _keep_only(self, kept_entries: list[int]) -> None:
        """Remove all recorded allocations except those at the indices `kept_entries`."""
        for name in _COLUMNS:
            column = getattr(self, name)
            column[:] = array(column.typecode, [column[entry] for entry in kept_entries])
        new_entries = {entry: new_entry for new_entry, entry in enumerate(kept_entries)} | {_UNCOUNTED: _UNCOUNTED}
        self._alive = {key: new_entries.get(entry, _UNCOUNTED) for key, entry in self._alive.items()}
        self._emptied.clear()
        self.observer = None

    def record_resize(self, storage: torch.UntypedStorage) -> None:
        """Record that `storage` was resized in place, as sharding does with its buffers."""
        key = storage._cdata
        if self._alive.get(key) == _UNCOUNTED:
            return
        entry = self._alive.pop(key, None)
        if entry is not None:
            self._free(entry)
            self._emptied[key] = entry
        if storage.nbytes():
            before = self._emptied.get(key)
            card = 0 if before is None else self._card[before]
            self._watch_storage(
                storage, self._record_allocation(storage.nbytes(), "resize_", f"{storage.nbytes()} bytes", card)
            )
            if before is not None:
                self._category[-1] = self._category[before]
                self._module[-1] = self._module[before]

    def record_result(
        self, result: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_part: bool = False
    ) -> None:
        """Record an allocation for each new storage in an operator's result, which may be part of a sparse tensor."""
        if isinstance(result, torch.Tensor):
            if result.layout is torch.sparse_coo:
                with self.unrecorded():
                    parts = result._indices(), result._values()
                self.record_result(parts, func, args, kwargs, is_part=True)
                return
            storage: Any = result.untyped_storage()
            if storage._cdata not in self._alive and storage.nbytes():
                card = self.card_of_result(args, kwargs)
                is_lifted = func is _LIFT
                if is_lifted and not self.counts_arrays and not args[0].untyped_storage().resizable():
                    storage.made_of = args[0]  # which holds the array, and whatever the array is made of
                    card = None
                elif getattr(result, "fake_device", None) == _META:
                    card = None
                if card is None or (func.is_view and not is_lifted and not is_part):
                    # What is only viewed was not made by an operator: it is the memory of NumPy, or of a file. The
                    # parts of a sparse tensor were, as it is transposed into a new one.
                    self.uncounted_bytes += storage.nbytes()
                    self._watch_storage(storage, _UNCOUNTED)
                    return
                shape = f"{list(result.shape)} {str(result.dtype).removeprefix('torch.')}"
                self._watch_storage(storage, self._record_allocation(storage.nbytes(), func, shape, card))
        elif isinstance(result, tuple | list):
            for value in result:
                self.record_result(value, func, args, kwargs, is_part=is_part)

    def _watch_storage(self, storage: torch.UntypedStorage, entry: int) -> None:
        """Record the free of `entry` when PyTorch releases `storage`."""
        key = storage._cdata
        self._alive[key] = entry
        if key not in self._watched:
            self._watched[key] = weakref.ref(storage, lambda _: self._record_free(key))

    def _record_free(self, key: int) -> None:
        """Record that the storage with the address `key` was freed."""
        self._watched.pop(key, None)
        self._emptied.pop(key, None)
        entry = self._alive.pop(key, None)
        if entry is not None and entry != _UNCOUNTED and self._end is None:
            self._free(entry)

    def _free(self, entry: int) -> None:
        """Record that an allocation was freed."""
        self._freed[entry] = self._next_event()
        if self.observer is not None:
            self.observer.free(entry)

    def _record_allocation(self, size: int, func: Any, shape: str, card: int) -> int:
        """Record an allocation with its operator, module and line, and return its index."""
        module, line = self._places.current_module_and_line()
        self._bytes.append(size)
        self._made.append(self._next_event())
        self._freed.append(-1)
        self._category.append(_CATEGORY_NUMBERS["communication"] if self._places.is_distributed else _UNLABELED)
        self._operator.append(self._operator_number(func))
        self._module.append(module)
        self._line.append(line)
        self._shape.append(self.shapes.number(shape))
        self._in_module.append(self._places.in_module)
        self._card.append(card)
        entry = len(self._bytes) - 1
        if self.observer is not None:
            self.observer.allocate(entry, size, card)
        return entry

    def _next_event(self) -> int:
        """Return the number of the next event, and count it."""
        self.events += 1
        return self.events - 1

    def _operator_number(self, func: Any) -> int:
        """Return the number of the operator's name."""
        number = self._operator_numbers.get(func)
        if number is None:
            number = self._operator_numbers[func] = self.operators.number(_operator_name(func))
        return number

    def spans(self) -> tuple[RecordedPhase, ...]:
        """Return the phases with their event ranges; phases without events are left out."""
        ends = [start for _, _, start in self._phases[1:]] + [self.events]
        return tuple(
            RecordedPhase(name=name, step=step, start=start, end=end)
            for (name, step, start), end in zip(self._phases, ends, strict=True)
            if end > start
        )

    def allocations(self) -> Allocations:
        """Return all allocations; unlabeled allocations are activations or temporaries, by when they were freed."""
        return Allocations(
            bytes=tuple(self._bytes),
            made=tuple(self._made),
            freed=tuple(self._freed),
            category=tuple(self._final_categories()),
            operator=tuple(self._operator),
            module=tuple(self._module),
            line=tuple(self._line),
            shape=tuple(self._shape),
        )

    def _final_categories(self) -> Iterable[int]:
        """Yield the category of each allocation; an unlabeled allocation is an activation if it outlives its phase."""
        activation, temporary = _CATEGORY_NUMBERS["activations"], _CATEGORY_NUMBERS["temporaries"]
        spans = iter(self.spans())
        span = next(spans, None)
        for category, made, freed, in_module in zip(
            self._category, self._made, self._freed, self._in_module, strict=True
        ):
            while span is not None and made >= span.end:
                span = next(spans, None)
            if category != _UNLABELED:
                yield category
            elif span is None:
                yield temporary
            elif span.name in _SAVING_PHASES:
                yield activation if freed < 0 or freed >= span.end else temporary
            else:
                # In the backward pass only checkpointed modules run: their results are activations again.
                yield (
                    activation
                    if span.name in _GENERATION_PHASES or (in_module and span.name == "backward")
                    else temporary
                )


class _RecordedOperators(TorchDispatchMode):
    """Dispatch mode that records the results of operators on real tensors in a ledger."""

    def __init__(self, ledger: AllocationLedger) -> None:
        super().__init__()
        self._ledger = ledger

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._ledger.record_result(result, func, args, kwargs or {})
        return result


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor inside those of `torch.func`'s transforms, which have no storage of their own."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def _operator_name(func: Any) -> str:
    return func if isinstance(func, str) else str(func).removesuffix(".default").replace(".", "::", 1)


@contextmanager
def custom_operators(ledger: AllocationLedger) -> Iterator[None]:
    """Run the function of a custom operator on fake tensors, operator by operator, if it has no other for them."""
    original_init = CustomOpDef.__init__

    def init(operator: Any, namespace: str, name: str, schema: str, fn: Callable[..., Any], *args: Any) -> None:
        def run(*inputs: Any, **options: Any) -> Any:
            with ledger.recorded():
                return fn(*inputs, **options)

        original_init(operator, namespace, name, schema, fn, *args)
        operator._abstract_fn = run

    with patched_attributes(CustomOpDef, __init__=init):
        yield
