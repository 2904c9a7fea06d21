"""Storages as PyTorch makes and frees them, counted operator by operator."""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
    """Counts the bytes of storages that are made inside, while they are alive."""

    def __init__(self, known: list[Any]) -> None:
        super().__init__()
        self.alive = {tensor.untyped_storage()._cdata: 0 for tensor in known}
        self.level = self.peak = 0

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._see(tensor.untyped_storage())
        return made

    def _see(self, storage: Any) -> None:
        if storage._cdata not in self.alive:
            self.alive[storage._cdata] = storage.nbytes()
            self.level += storage.nbytes()
            self.peak = max(self.peak, self.level)
            weakref.finalize(storage, self._free, storage._cdata)

    def _free(self, place: int) -> None:
        self.level -= self.alive.pop(place, 0)
