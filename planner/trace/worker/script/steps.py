"""Steps and phases of a script that knows nothing of the trace, seen from outside."""

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.optimizers import CurrentStep, watch_optimizers
from planner.trace.worker.running import label_gradients
from planner.trace.worker.tensors import tensors_in

_MOST_STEPS_OF_ONE: Final = 16
"""Steps of one optimizer, per requested step, within which every other steps too: GANs train one part more often."""


class EndOfScript(BaseException):  # nothing went wrong
    """Raised when the last traced step is over, and again at each operator of a script that goes on after it."""


class ScriptModules:
    """The roots of the modules that a script calls, by name, as long as they live."""

    def __init__(self) -> None:
        self._parents: weakref.WeakKeyDictionary[nn.Module, weakref.ref[nn.Module]] = weakref.WeakKeyDictionary()
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()

    def note_parent(self, parent: nn.Module, _name: str, child: nn.Module | None) -> None:
        """Note that `child` was made a part of `parent`."""
        if child is not None:
            self._parents[child] = weakref.ref(parent)

    def root_of(self, module: nn.Module) -> nn.Module:
        """Return the outermost module that `module` is a part of."""
        seen = set()
        while module not in seen and (reference := self._parents.get(module)) and (parent := reference()) is not None:
            seen.add(module)
            module = parent
        return module

    def add(self, root: nn.Module) -> str | None:
        """Return a new name for a root, from its class; None if the root has one already."""
        if root in self._names:
            return None
        title = type(root).__name__
        taken = set(self._names.values())
        names = itertools.chain((title,), (f"{title} {number}" for number in itertools.count(2)))
        self._names[root] = next(name for name in names if name not in taken)
        return self._names[root]

    def named(self) -> dict[str, nn.Module]:
        """Return the roots by name, in the order in which they were called first."""
        return {name: root for root, name in self._names.items()}


class ScriptSteps:
    """Counter of a script's optimizer steps; a step of the script is one of every optimizer."""

    def __init__(self, steps: int, on_end: Callable[[], None]) -> None:
        self.current = CurrentStep()
        self.is_training = False
        """Whether an optimizer took a step."""
        self._taken: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._steps = steps
        self._on_end = on_end

    def note_optimizer(self, optimizer: Optimizer) -> None:
        """Note a new optimizer."""
        self._taken[optimizer] = 0

    def note_step(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        """Count a step, and end the script after the last one."""
        self.is_training = True
        self._taken[optimizer] = self._taken.get(optimizer, 0) + 1
        self.current.number = min(self._taken.values())
        if self.current.number >= self._steps or self._taken[optimizer] >= self._steps * _MOST_STEPS_OF_ONE:
            self._on_end()
            raise EndOfScript


@contextmanager
def watched_steps(steps: ScriptSteps, modules: ScriptModules, watcher: RunObserver) -> Iterator[None]:
    """Report the phases, tensors and modules of a script to `watcher`, and count its optimizer steps."""
    watcher.begin_phase("load", 0)
    with ExitStack() as stack:
        stack.enter_context(watch_optimizers(watcher, steps.current))
        stack.callback(register_optimizer_step_post_hook(steps.note_step).remove)
        stack.enter_context(patched_attributes(Optimizer, __init__=_noted_init(Optimizer.__init__, steps)))
        stack.enter_context(_observed_backward(watcher, steps.current))
        calls = _OutermostCalls(modules, watcher, steps.current)
        for hook in (
            module_hooks.register_module_module_registration_hook(modules.note_parent),
            module_hooks.register_module_forward_pre_hook(calls.enter),
            module_hooks.register_module_forward_hook(calls.leave, always_call=True),
        ):
            stack.callback(hook.remove)
        stack.enter_context(_labeled_batches(watcher))
        yield


class _OutermostCalls:
    """Phases by outermost module calls: forward within them, loss after them. The backward pass has its own calls."""

    def __init__(self, modules: ScriptModules, watcher: RunObserver, step: CurrentStep) -> None:
        self._modules, self._watcher, self._step = modules, watcher, step
        self._depth = 0

    def enter(self, module: nn.Module, inputs: object) -> None:
        """Note that a module's forward pass begins."""
        self._depth += 1
        if self._depth > 1 or _in_backward():
            return
        root = self._modules.root_of(module)
        if not (_has_tensors(module) or _has_tensors(root)):
            return  # A loss, or a conversion of inputs.
        name = self._modules.add(root)
        if name is not None:
            self._watcher.register_modules({name: root})
            self._watcher.label(root.parameters(), "parameters")
            self._watcher.label(root.buffers(), "buffers")
            label_gradients(root, self._watcher)
        self._watcher.begin_phase("forward", self._step.number)

    def leave(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        """Note that a module's forward pass ends."""
        self._depth = max(self._depth - 1, 0)
        if not self._depth and not _in_backward():
            self._watcher.begin_phase("loss", self._step.number)


def _has_tensors(module: nn.Module) -> bool:
    return next(itertools.chain(module.parameters(), module.buffers()), None) is not None


def _in_backward() -> bool:
    """Return whether autograd runs, as when a checkpointed module is called again."""
    return torch._C._current_graph_task_id() != -1


@contextmanager
def _observed_backward(watcher: RunObserver, step: CurrentStep) -> Iterator[None]:
    """Report backward passes to `watcher`; `Tensor.backward` runs through this function too."""
    original = torch.autograd.backward

    def observed(*args: Any, **kwargs: Any) -> None:
        watcher.begin_phase("backward", step.number)
        original(*args, **kwargs)

    with patched_attributes(torch.autograd, backward=observed):
        yield


def _noted_init(original: Callable[..., None], steps: ScriptSteps) -> Callable[..., None]:
    """Return the constructor of optimizers that notes each new one."""

    def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        steps.note_optimizer(optimizer)

    return init


@contextmanager
def _labeled_batches(watcher: RunObserver) -> Iterator[None]:
    """Label the tensors that data loaders return as inputs."""
    original = _BaseDataLoaderIter.__next__

    def labeled(batches: Any) -> Any:
        batch = original(batches)
        watcher.label(tensors_in(batch), "inputs")
        return batch

    with patched_attributes(_BaseDataLoaderIter, __next__=labeled):
        yield
