"""Host memory beside the card's: what a script makes without naming a card is not on it until it is moved there.

**Rule**: an operator's results are on the card if one of its tensors is, or if it was told a card as its device. An
operator of the simulated card's own kernels, or of autograd, without tensors is on the card too. What a module makes
without naming another card is on the first one. Packages that a script may import are changed when it does.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._device import _device_constructors

from planner.trace.worker.cuda.device import made_from
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.cuda.driver import card_index
from planner.trace.worker.ledger import AllocationLedger, unwrapped
from planner.trace.worker.observer import RunObserver

ChangeModule = Callable[[Any], AbstractContextManager[Any]]
"""A function from a module to the context in which the module is changed."""


@contextmanager
def changed_on_import(changes: Mapping[str, ChangeModule]) -> Iterator[None]:
    """Change modules by name: those that are imported already at once, others right after their import."""
    with ExitStack() as stack:
        for name in changes.keys() & sys.modules.keys():
            stack.enter_context(changes[name](sys.modules[name]))
        finder = _ChangingFinder(changes, stack)
        sys.meta_path.insert(0, finder)
        stack.callback(sys.meta_path.remove, finder)
        yield


class _ChangingFinder(MetaPathFinder):
    """Finder whose modules are changed after they have run."""

    def __init__(self, changes: Mapping[str, ChangeModule], stack: ExitStack) -> None:
        self._changes = changes
        self._stack = stack

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is to be changed, None for all others."""
        change = self._changes.get(fullname)
        spec = None if change is None else PathFinder.find_spec(fullname, path, target)
        if change is None or spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run_module(module)
            self._stack.enter_context(change(module))

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


_WORKER_FOLDER: Final = Path(__file__).parent.parent
_BETWEEN: Final = (str(Path(torch.__file__).parent), str(_WORKER_FOLDER / "ledger.py"), __file__)
"""Paths of what is called between a factory's caller and this module."""
_CARD_KERNELS: Final = str(_WORKER_FOLDER / "cuda")


class ResultPlace:
    """Place in which operators make their results: the host or a card.

    What names no card is made in the place `otherwise`; with a card there, nothing is on the host.
    """

    def __init__(self, ledger: AllocationLedger, otherwise: int | None) -> None:
        self._ledger = ledger
        self.otherwise = otherwise
        self.has_several = otherwise is None
        """Whether there are places to move to: a host, or a second card that was named."""
        self._forced: int | None = None
        self._is_forced = False

    def card_of_result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
        """Return the card on which an operator with these arguments makes its results, None for host memory."""
        if self._is_forced:
            return self._forced
        tensors = [value for value in _flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        device, is_of_autograd = kwargs.get("device"), torch._C._current_graph_task_id() != -1
        # Autograd converts gradients on the device on which it sees their tensors, which is the CPU.
        if device is not None and not (is_of_autograd and tensors and card_of_device(device) is None):
            return self.place_of_device(device)
        if not self.has_several:
            return self.otherwise
        if tensors:
            return next((card for card in map(self._ledger.card_of, tensors) if card is not None), None)
        return torch.cuda.current_device() if is_of_autograd or _is_in_kernel_of_card() else self.otherwise

    def place_of_device(self, device: Any) -> int | None:
        """Return the card that `device` names, or the place of what names none."""
        card = card_of_device(device)
        self.has_several |= card is not None and card != self.otherwise
        return self.otherwise if card is None else card

    @contextmanager
    def forced(self, card: int | None) -> Iterator[None]:
        """Make all results on a card, or with None on the host."""
        before = self._forced, self._is_forced
        self._forced, self._is_forced = card, True
        try:
            yield
        finally:
            self._forced, self._is_forced = before


def card_of_device(device: Any) -> int | None:
    """Return the card that `device` names, None if it names the host."""
    return card_index(device, torch.cuda.current_device())


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _is_in_kernel_of_card() -> bool:
    """Return whether a kernel of the simulated card calls the operator, not the script."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_CARD_KERNELS)


class _Place:
    """The place of another tensor, as in `x.to(y)`."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class Moves:
    """Moves of tensors and modules to the card and back, which are copies where something is not there yet."""

    def __init__(self, ledger: AllocationLedger, placement: ResultPlace, watcher: RunObserver) -> None:
        self._ledger, self._placement, self._watcher = ledger, placement, watcher

    def copied(self, tensor: Tensor, device: Any) -> Any:
        """Return `tensor` on `device`: a copy if it is not there."""
        inner = unwrapped(tensor)
        if device is None or (inner.layout is torch.strided and not inner.untyped_storage().nbytes()):
            return tensor
        card = self._ledger.card_of(device.tensor) if isinstance(device, _Place) else card_of_device(device)
        before = self._ledger.card_of(tensor)
        if card == before or (card is None and self._placement.otherwise is not None):
            return tensor
        with self._placement.forced(card):
            copy = torch.ops.aten._to_copy.default(tensor)
        if copy.requires_grad:
            # Gradients go back to where the tensor came from.
            copy.register_hook(lambda gradient: self.copied(gradient, "cpu" if before is None else f"cuda:{before}"))
        elif card is not None and self._placement.otherwise is None:
            self._watcher.label((copy,), "inputs")
        return copy

    def replacement(self, original: Callable[..., Any], device_of: Callable[..., Any]) -> Callable[..., Any]:
        """Return the replacement of a method that moves a tensor or module to what `device_of` its arguments is."""

        def move(value: Any, *args: Any, **kwargs: Any) -> Any:
            device = device_of(args, kwargs)
            result = original(value, *args, **kwargs)
            if device is not None and not isinstance(device, _Place):
                self._placement.place_of_device(device)
            if not self._placement.has_several:
                return result
            if isinstance(result, nn.Module):
                self._leave_host(result)
                return result._apply(lambda tensor: self.copied(tensor, device))
            return self.copied(result, device)

        return move

    def _leave_host(self, module: nn.Module) -> None:
        """Forget that a module was made on the first card, if it is built now: a real run builds it on the host."""
        if self._placement.otherwise is not None and self._ledger.phase == "load":
            self._ledger.forget_allocations((*module.parameters(), *module.buffers()))

    def factories(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of `torch` that make tensors, on the card if they are told it as their device.

        **Source**: `_device_constructors` in torch/utils/_device.py.
        """
        identities = set(map(id, _device_constructors()))
        return {name: self._factory(value) for name, value in vars(torch).items() if id(value) in identities}

    def _factory(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, device: Any = None, **kwargs: Any) -> Any:
            card = card_of_device(device)
            if card is None:
                return original(*args, **kwargs, **({} if device is None else {"device": device}))
            with self._placement.forced(card):
                made = original(*args, **kwargs)
            return self.copied(made, device)

        return made_from(original, make)

    def beside(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the replacement of a method that makes a tensor where the given one is."""

        def make(tensor: Tensor, *args: Any, device: Any = None, **kwargs: Any) -> Any:
            return self.copied(original(tensor, *args, **kwargs), _Place(tensor) if device is None else device)

        return make


def _device_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the device among the arguments of `to`, None if there is none."""
    first = args[0] if args else kwargs.get("device", kwargs.get("other"))
    if isinstance(first, Tensor):
        return _Place(first)
    return first if isinstance(first, str | int | torch.device) else kwargs.get("device")


def _card_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the device among the arguments of `cuda`, the current card if there is none."""
    device = args[0] if args else kwargs.get("device")
    return "cuda" if device is None else device


@contextmanager
def host_and_card(ledger: AllocationLedger, watcher: RunObserver) -> Iterator[None]:
    """Count what is on the card only, and copy what is moved to it or from it; enter it inside the simulated card."""
    with (
        _placed(ledger, watcher, None) as moves,
        patched_attributes(torch, **moves.factories()),
        patched_attributes(Tensor, new=moves.beside(Tensor.new), new_tensor=moves.beside(Tensor.new_tensor)),
    ):
        yield


@contextmanager
def one_or_more_cards(ledger: AllocationLedger, watcher: RunObserver) -> Iterator[None]:
    """Count everything on the first card except what names another; enter it inside the simulated card."""
    with _placed(ledger, watcher, 0):
        yield


@contextmanager
def _placed(ledger: AllocationLedger, watcher: RunObserver, otherwise: int | None) -> Iterator[Moves]:
    """Place each result, in the place `otherwise` if nothing tells where, and follow moves of tensors and modules."""
    placement = ResultPlace(ledger, otherwise)
    moves = Moves(ledger, placement, watcher)
    counts_all, ledger.card_of_result = ledger.card_of_result, placement.card_of_result
    with ExitStack() as stack:
        stack.callback(setattr, ledger, "card_of_result", counts_all)
        for owner in (Tensor, nn.Module):
            stack.enter_context(
                patched_attributes(
                    owner,
                    to=moves.replacement(owner.to, _device_in),
                    cuda=moves.replacement(owner.cuda, _card_in),
                    cpu=moves.replacement(owner.cpu, lambda *_: "cpu"),
                )
            )
        yield moves


def keep_fullest_card(ledger: AllocationLedger, watcher: RunObserver) -> None:
    """Keep the record of the card that holds the most at once, if there are several; each has its own memory."""
    if len(ledger.cards()) < 2:
        return
    live, most = Counter[int](), Counter[int]()
    sizes: dict[int, tuple[int, int]] = {}
    for entry, size, card in ledger.changes():
        if card is None:
            freed, where = sizes.pop(entry)
            live[where] -= freed
        else:
            sizes[entry] = size, card
            live[card] += size
            most[card] = max(most[card], live[card])
    fullest = max(most, key=lambda card: most[card])
    held = ", ".join(f"cuda:{card} {most[card] / (1 << 30):.2f} GiB" for card in sorted(most))
    watcher.add_note(f"{len(most)} GPUs are used ({held}); the result is that of cuda:{fullest}, the fullest.")
    ledger.keep_card(fullest)
