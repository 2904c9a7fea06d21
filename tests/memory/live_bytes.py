"""A tracker of live bytes: every storage that an operator makes, until Python frees it."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of storages alive, and the most there were since the last `reset_peak`."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_iter(result):
            if isinstance(value, torch.Tensor):
                self.watch(value)
        return result

    def watch(self, tensor: torch.Tensor) -> None:
        """Count the storage of `tensor` once, until it is freed."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known or tensor.device.type == "meta":
            return
        self._known.add(key)
        size = storage.nbytes()
        self.alive += size
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.alive -= size

    def reset_peak(self) -> None:
        """Forget the peak so far."""
        self.peak = self.alive


def saved_bytes(module: torch.nn.Module, forward: Callable[[], Any]) -> int:
    """Return the bytes that `forward` keeps for its backward pass, parameters and buffers aside."""
    own = {p.untyped_storage()._cdata for p in (*module.parameters(), *module.buffers())}
    kept: dict[int, tuple[torch.Tensor, int]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = (tensor, storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    total = sum(size for _, size in kept.values())
    del result
    return total
