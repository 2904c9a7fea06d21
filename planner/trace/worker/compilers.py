"""Compilation: what a program compiles is run operator by operator, as it was written."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensor

from planner.trace.analysis.live_memory import alive_at, live_memory
from planner.trace.recording import CATEGORIES, Allocations, TraceDifference
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.refusals import EXTENSION, UntraceableError
from planner.trace.worker.script.host import changed_on_import

_TORCH_FOLDER: Final = str(Path(torch.__file__).parent)
_flex_module: Final[Any] = import_module("torch._higher_order_ops.flex_attention")
_loop_module: Final[Any] = import_module("torch._higher_order_ops.while_loop")
_FUSED_KERNELS: Final = {
    _flex_module.flex_attention: getattr(_flex_module, "flex_attention_fake_impl", None),
    _flex_module.flex_attention_backward: getattr(_flex_module, "flex_attention_backward_fake_tensor_mode", None),
}
"""What the fused kernels of flexible attention make, where this version of PyTorch says so in this way."""
_FUSED: Final = ("activations", "temporaries")
"""Categories of tensors that fused kernels may not store."""


class Compilation:
    """Compilation that a program asks for."""

    def __init__(self) -> None:
        self.is_wanted = False

    @contextmanager
    def as_written(self) -> Iterator[None]:
        """Let `torch.compile` and `Module.compile` return what they would compile, and run what needs a compiler."""

        def compile_nothing(model: Any = None, **_options: Any) -> Any:
            # PyTorch compiles parts of its own for operators that run other functions.
            if not sys._getframe(1).f_code.co_filename.startswith(_TORCH_FOLDER):
                self.is_wanted = True
            return model if model is not None else lambda function: function

        def compile_module(_module: nn.Module, *_args: Any, **_options: Any) -> None:
            self.is_wanted = True

        with ExitStack() as stack:
            stack.enter_context(patched_attributes(torch, compile=compile_nothing, cond=_run_condition))
            stack.enter_context(patched_attributes(nn.Module, compile=compile_module))
            stack.enter_context(patched_attributes(torch.compiler, cudagraph_mark_step_begin=lambda: None))
            stack.enter_context(patched_attributes(_loop_module, while_loop=_run_loop))
            stack.enter_context(patched_attributes(torch._higher_order_ops, while_loop=_run_loop))
            changes = {"torch.utils.cpp_extension": _refused_extensions, "triton.runtime.jit": unrun_kernels}
            stack.enter_context(changed_on_import(changes))
            for operator, fused in _FUSED_KERNELS.items():
                operator.python_key_table[AllocationLedger] = self._flex_kernel(operator, fused)
                stack.callback(operator.python_key_table.pop, AllocationLedger)
            yield

    def _flex_kernel(self, operator: Any, fused: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return what runs flexible attention: one fused kernel if it is compiled, else each of its operators.

        **Source**: torch/_higher_order_ops/flex_attention.py, `flex_attention_fake_impl` and `sdpa_dense`.
        """

        def run(ledger: AllocationLedger, *args: Any, **kwargs: Any) -> Any:
            with ledger:
                if self.is_wanted and fused is not None:
                    return fused(*args, **kwargs)
                return operator.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)

        return run

    def differences(self, allocations: Allocations) -> list[TraceDifference]:
        """Return by how much less a compiled run may need: at most what kernels store only for each other."""
        if not self.is_wanted:
            return []
        live = live_memory(allocations)
        fused = {CATEGORIES.index(category) for category in _FUSED}
        alive = alive_at(allocations, live.times[live.peak_index()])
        fused_bytes = sum(allocations.bytes[index] for index in alive if allocations.category[index] in fused)
        return [
            TraceDifference(
                name="compiled code",
                explanation=(
                    "code for torch.compile is traced operator by operator; a compiler fuses operators, and then "
                    "neither stores what they pass to each other nor all that the backward pass computes again"
                ),
                source="torch/_functorch/partitioners.py, min_cut_rematerialization_partition",
                low_bytes=-fused_bytes,
            )
        ]


def _run_condition(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Run one of two functions, as `torch.cond` does without a compiler."""
    return true_fn(*operands) if pred else false_fn(*operands)


def _run_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Run a function as long as another returns true, as `while_loop` does without a compiler."""
    while cond_fn(*carried_inputs):
        carried_inputs = body_fn(*carried_inputs)
    return carried_inputs


def _refused_extensions(module: Any) -> AbstractContextManager[None]:
    """Refuse to compile C++ and CUDA code, which would be kept outside of the scratch folder."""

    def refuse(*_: object, **__: object) -> None:
        raise UntraceableError(*EXTENSION)

    return patched_attributes(module, load=refuse, load_inline=refuse)


def unrun_kernels(module: Any) -> AbstractContextManager[None]:
    """Launch no kernel of Triton: it writes into tensors that its caller makes, and allocates nothing itself."""

    def launcher(_kernel: object, _grid: object) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            values = [*args, *kwargs.values()]
            ledger = next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)
            if isinstance(ledger, AllocationLedger):
                ledger.forget_values(values)

        return launch

    return patched_attributes(module.KernelInterface, __getitem__=launcher)
