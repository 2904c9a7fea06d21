"""Gradients that come together: whether autograd adds one to the other in place, as it does with plain tensors."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

ADD: Final = torch.ops.aten.add.Tensor
ADD_IN_PLACE: Final = torch.ops.aten.add_.Tensor
_ENGINE: Final = "_engine_run_backward"
_ON_THE_WAY: Final = (
    str(Path(__file__).parent),
    *(str(Path(torch.__file__).parent / one) for one in ("_compile", "_dynamo")),
)
"""Where the functions are that lie between the engine and a mode: our own modes, and PyTorch's wrapper of modes."""


class Accumulation:
    """Tells which additions of gradients go in place.

    Autograd adds a gradient to another in place if nothing else refers to the other, but never for subclasses such as
    fake tensors.

    **Source**: `can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp.
    """

    def __init__(self) -> None:
        self._sole: tuple[int, int] | None = None

    def learn(self) -> None:
        """See how often a gradient counts as used that only autograd has, while the active modes look at it."""
        with torch.enable_grad():
            leaf = torch.empty(0, requires_grad=True)
            (leaf.sin() * leaf.cos()).backward(torch.empty(0))

    def is_in_place(self, args: tuple[Any, ...]) -> bool:
        """Return whether the addition of `args` is one of gradients that would be in place were they no fakes."""
        first, second = args[0], args[1]
        if not isinstance(second, torch.Tensor) or first.shape != second.shape or not _is_from_engine():
            return False
        uses = first._use_count(), torch._C._storage_Use_Count(first.untyped_storage()._cdata)
        if self._sole is None:
            self._sole = uses
        return uses == self._sole and not first._is_view()


def _is_from_engine() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_ON_THE_WAY):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == _ENGINE
