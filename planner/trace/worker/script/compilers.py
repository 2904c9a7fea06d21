"""Compilation in scripts: compiled code is run operator by operator, as it was written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn

from planner.trace.worker.cuda.dispatch import patched_attributes

_NOTE: Final = (
    "Compiled code is traced operator by operator: fused kernels keep fewer intermediate tensors, so that a compiled "
    "run may need less."
)


@contextmanager
def eager_compilation(add_note: Callable[[str], None]) -> Iterator[None]:
    """Let `torch.compile` and `Module.compile` return what they would compile."""

    def compile_nothing(model: Any = None, **_options: Any) -> Any:
        add_note(_NOTE)
        return model if model is not None else lambda function: function

    def compile_module(_module: nn.Module, *_args: Any, **_options: Any) -> None:
        add_note(_NOTE)

    with patched_attributes(torch, compile=compile_nothing), patched_attributes(nn.Module, compile=compile_module):
        yield
