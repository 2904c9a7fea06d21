"""Runs on fake tensors as on a CUDA device, and what their operators gave."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from planner.trace.recording import TraceDifference
from planner.trace.worker.cuda.operators import CudaOperators

SILENT = ("prim.device.default", "aten.detach.default")


class TargetOutput(NamedTuple):
    """What one operator gave: its name, and the shape and the type of each tensor."""

    operator: str
    tensors: tuple[tuple[tuple[int, ...], torch.dtype], ...]


class Log(TorchDispatchMode):
    """Notes what each operator gives, and what the kernels held."""

    def __init__(self, hidden_bytes: Callable[..., int] | None = None) -> None:
        super().__init__()
        self.made: list[TargetOutput] = []
        self.hidden: dict[str, int] = {}
        self._hidden_bytes = hidden_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func).removeprefix("aten.")
        if str(func) not in SILENT:
            values = result if isinstance(result, tuple | list) else (result,)
            found = ((tuple(value.shape), value.dtype) for value in values if isinstance(value, torch.Tensor))
            self.made.append(TargetOutput(name, tuple(found)))
        if self._hidden_bytes is not None:
            held = self._hidden_bytes(func, args, kwargs or {}, result)
            self.hidden[name] = max(held, self.hidden.get(name, 0))
        return result

    @property
    def names(self) -> list[str]:
        """Return the operators in order."""
        return [made.operator for made in self.made]

    def tensors(self, operator: str) -> tuple[tuple[tuple[int, ...], torch.dtype], ...]:
        """Return what the first call of `operator` gave."""
        return next(made.tensors for made in self.made if made.operator == operator)


@contextmanager
def on_cuda(
    capability: tuple[int, int] | None = (8, 0),
    notes: list[TraceDifference] | None = None,
    sentences: list[str] | None = None,
) -> Iterator[Log]:
    """Run what is inside as on a card of `capability`; yields the log of its operators."""
    note, tell = ([] if told is None else told for told in (notes, sentences))
    operators = CudaOperators(capability, note.append, tell.append)
    with FakeTensorMode(), operators, Log(operators.hidden_bytes) as log:
        yield log


def on_this_build(work: Callable[[str], Any], device: str) -> Log:
    """Return what PyTorch itself does in `work` with fake tensors on `device`, for which no kernels are needed.

    Without gradients, operators that are composed of others are composed by this very build for CUDA too.
    """
    with FakeTensorMode(), torch.no_grad(), Log() as log:
        work(device)
    return log
