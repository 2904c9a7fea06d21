"""Steps that a person wrote: they may train several modules in turn."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.build import Built
from planner.trace.worker.optimizers import StepNumber, make_optimizer, watch_optimizers
from planner.trace.worker.training import label_gradients
from planner.trace.worker.watcher import Watcher


def run_own_steps(built: Built, request: TraceRequest, watcher: Watcher, autocast: AbstractContextManager[Any]) -> None:
    """Call the step `request.steps` times: with the modules and inputs, and optimizers if it takes a third argument.

    Phases are seen from outside: a module's forward pass, what follows it (`loss`), the backward pass, and the steps of
    optimizers.

    Raises:
        TraceError: If the step takes other arguments.
    """
    if built.step is None:
        raise TraceError("load", "there is no step")
    arguments = [built.given, built.inputs]
    if _takes(built.step) == 3:
        arguments.append(_optimizers(built, request))
    if request.task == "training":
        for module in built.modules.values():
            label_gradients(module, watcher)
    step = StepNumber()
    with watch_optimizers(watcher, step), _phases(built.modules, watcher, step), autocast:
        for step.number in range(request.steps):
            watcher.phase("forward", step.number)
            built.step(*arguments)


def _takes(step: Any) -> int:
    signature = inspect.signature(step)
    for count in (2, 3):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    raise TraceError(
        "load", f"the step takes {signature}", "It must take (modules, inputs) or (modules, inputs, optimizers)."
    )


def _optimizers(built: Built, request: TraceRequest) -> Any:
    """Return an optimizer for each module, in the form in which the modules were given; None for those not trained."""

    def make(module: nn.Module) -> Any:
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return None
        return make_optimizer(request.optimizer, request.optimizer_arguments, module.parameters(), request.device)

    if isinstance(built.given, nn.Module):
        return make(built.given)
    if isinstance(built.given, Mapping):
        return {name: make(module) for name, module in built.given.items()}
    return [make(module) for module in built.given]


@contextmanager
def _phases(modules: Mapping[str, nn.Module], watcher: Watcher, step: StepNumber) -> Iterator[None]:
    hooks = []
    for module in modules.values():
        hooks.append(module.register_forward_pre_hook(lambda *_: watcher.phase("forward", step.number)))
        hooks.append(module.register_forward_hook(lambda *_: watcher.phase("loss", step.number)))
    backward = torch.autograd.backward

    def seen(*args: Any, **kwargs: Any) -> None:
        watcher.phase("backward", step.number)
        backward(*args, **kwargs)

    torch.autograd.backward = seen
    try:
        yield
    finally:
        torch.autograd.backward = backward
        for hook in hooks:
            hook.remove()
