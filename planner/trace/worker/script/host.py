"""Host memory beside the card's: what a script makes without naming a card is not on it until it is moved there.

**Rule**: an operator's results are on the card if one of its tensors is, or if it was told a card as its device. An
operator of the simulated card's own kernels, or of autograd, without tensors is on the card too.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.backends import cudnn
from torch.utils._device import _device_constructors

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.tensors import map_tensors

_WORKER_FOLDER: Final = Path(__file__).parent.parent
_BETWEEN: Final = (str(Path(torch.__file__).parent), str(_WORKER_FOLDER / "ledger.py"), __file__)
"""Paths of what is called between a factory's caller and this module."""
_CARD_KERNELS: Final = str(_WORKER_FOLDER / "cuda")


_FAKE_CODE: Final = (
    str(_WORKER_FOLDER),
    *(
        str(Path(torch.__file__).parent / name)
        for name in ("_subclasses", "_refs", "_prims", "_decomp", "_meta_registrations", "_dynamo", "_higher_order_ops")
    ),
)
_FAKE_DEVICE: Final[Any] = vars(FakeTensor)["device"].fget
_CARD: Final = torch.device("cuda", 0)


class ResultPlace:
    """Place in which operators make their results: the host or the card."""

    def __init__(self, ledger: AllocationLedger) -> None:
        self._ledger = ledger
        self._forced: bool | None = None

    def is_made_on_host(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether an operator with these arguments makes its results in host memory."""
        if self._forced is not None:
            return self._forced
        if _is_card(kwargs.get("device")):
            return False
        tensors = [value for value in _flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        if tensors:
            return not any(map(self._ledger.is_counted, tensors))
        return torch._C._current_graph_task_id() == -1 and not _is_in_kernel_of_card()

    @contextmanager
    def forced(self, *, on_host: bool) -> Iterator[None]:
        """Make all results on the host, or on the card."""
        before, self._forced = self._forced, on_host
        try:
            yield
        finally:
            self._forced = before


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


def _is_card(device: Any) -> bool:
    if isinstance(device, bool) or device is None:
        return False
    return isinstance(device, int) or str(device).startswith("cuda")


def _device_of(tensor: Tensor, ledger: AllocationLedger) -> torch.device:
    """Return the device of a fake tensor that a script sees; PyTorch's own code for fake tensors sees the CPU."""
    device: torch.device = _FAKE_DEVICE(tensor)
    if device.type != "cpu" or sys._getframe(2).f_code.co_filename.startswith(_FAKE_CODE):
        return device
    return _CARD if ledger.is_counted(tensor) else device


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
        if device is None or not tensor.untyped_storage().nbytes():
            return tensor
        to_card = self._ledger.is_counted(device.tensor) if isinstance(device, _Place) else _is_card(device)
        if to_card == self._ledger.is_counted(tensor):
            return tensor
        with self._placement.forced(on_host=not to_card):
            copy = torch.ops.aten._to_copy.default(tensor)
        if to_card and not tensor.requires_grad:
            self._watcher.label((copy,), "inputs")
        return copy

    def replacement(self, original: Callable[..., Any], device_of: Callable[..., Any]) -> Callable[..., Any]:
        """Return the replacement of a method that moves a tensor or module to what `device_of` its arguments is."""

        def move(value: Any, *args: Any, **kwargs: Any) -> Any:
            device = device_of(args, kwargs)
            result = original(value, *args, **kwargs)
            if isinstance(result, nn.Module):
                return result._apply(lambda tensor: self.copied(tensor, device))
            return self.copied(result, device)

        return move

    def factories(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of `torch` that make tensors, on the card if they are told it as their device.

        **Source**: `_device_constructors` in torch/utils/_device.py.
        """
        identities = set(map(id, _device_constructors()))
        return {name: self._factory(value) for name, value in vars(torch).items() if id(value) in identities}

    def _factory(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, device: Any = None, **kwargs: Any) -> Any:
            if not _is_card(device):
                return original(*args, **kwargs, **({} if device is None else {"device": device}))
            with self._placement.forced(on_host=False):
                made = original(*args, **kwargs)
            return self.copied(made, _CARD)

        return make

    def data_parallel_on_one_card(self) -> dict[str, Callable[..., Any]]:
        """Return the methods of `DataParallel` as on one card: its inputs are moved there, and nothing is scattered."""

        def init(parallel: Any, module: nn.Module, *_: object, **__: object) -> None:
            nn.Module.__init__(parallel)
            parallel.module, parallel.device_ids = module, []

        def forward(parallel: Any, *args: Any, **kwargs: Any) -> Any:
            self._watcher.add_note("DataParallel is traced on one card, which has the whole batch.")
            args, kwargs = map_tensors((args, kwargs), lambda tensor: self.copied(tensor, _CARD))
            return parallel.module(*args, **kwargs)

        return {"__init__": init, "forward": forward}


def _device_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the device among the arguments of `to`, None if there is none."""
    first = args[0] if args else kwargs.get("device", kwargs.get("other"))
    if isinstance(first, Tensor):
        return _Place(first)
    return first if isinstance(first, str | int | torch.device) else kwargs.get("device")


@contextmanager
def host_and_card(ledger: AllocationLedger, watcher: RunObserver) -> Iterator[None]:
    """Count what is on the card only, and copy what is moved to it or from it; enter it inside the simulated card."""
    placement = ResultPlace(ledger)
    moves = Moves(ledger, placement, watcher)
    counts_all, ledger.is_made_on_host = ledger.is_made_on_host, placement.is_made_on_host
    with ExitStack() as stack:
        stack.callback(setattr, ledger, "is_made_on_host", counts_all)
        stack.enter_context(patched_attributes(FakeTensor, device=property(lambda tensor: _device_of(tensor, ledger))))
        # Without cuDNN here, a recurrent layer cannot lay its weights out in one buffer, which is as large as they are.
        stack.enter_context(patched_attributes(cudnn, is_acceptable=lambda _tensor: False))
        stack.enter_context(patched_attributes(torch, **moves.factories()))
        stack.enter_context(patched_attributes(nn.DataParallel, **moves.data_parallel_on_one_card()))
        for owner in (Tensor, nn.Module):
            stack.enter_context(
                patched_attributes(
                    owner,
                    to=moves.replacement(owner.to, _device_in),
                    cuda=moves.replacement(owner.cuda, lambda *_: "cuda"),
                    cpu=moves.replacement(owner.cpu, lambda *_: "cpu"),
                )
            )
        yield
