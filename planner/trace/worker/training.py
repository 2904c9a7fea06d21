"""Optimizer steps as a usual training script does them."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.build import Built
from planner.trace.worker.losses import Loss
from planner.trace.worker.optimizers import StepNumber, make_optimizer, watch_optimizers
from planner.trace.worker.watcher import Watcher


def train(built: Built, request: TraceRequest, watcher: Watcher, autocast: AbstractContextManager[Any]) -> None:
    """Run `request.steps` optimizer steps of `request.gradient_accumulation` passes.

    What lives how long is as in a usual script: the output until its backward pass is through, the loss (one number)
    until the next takes its name, and the graph as long as autograd holds it.

    Raises:
        TraceError: If nothing is trained, or the loss or the optimizer cannot be made.
    """
    module = built.module
    label_gradients(module, watcher)
    optimizer = _optimizer(module, request)
    one_pass = _pass(built, Loss(request.loss, built.inputs, watcher), request, watcher, autocast)
    step = StepNumber()
    with watch_optimizers(watcher, step):
        for step.number in range(request.steps):
            for accumulated in range(request.gradient_accumulation):
                clear = request.zero_grad == "before-backward" and accumulated == 0
                loss = one_pass(step.number, optimizer.zero_grad if clear else None)  # noqa: F841  # lives as in a script
            optimizer.step()
            if request.zero_grad != "before-backward":
                optimizer.zero_grad(set_to_none=request.zero_grad == "after-step")


def _optimizer(module: nn.Module, request: TraceRequest) -> Optimizer:
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise TraceError("load", "no parameter is trained", "Take away a --freeze pattern, or trace inference.")
    optimizer = make_optimizer(request.optimizer, request.optimizer_arguments, module.parameters(), request.device)
    if inspect.signature(optimizer.step).parameters["closure"].default is inspect.Parameter.empty:
        raise TraceError(
            "load",
            f"{type(optimizer).__name__} computes the loss again within its step",
            "Write a function step(modules, inputs), and name it: --step file.py:step.",
        )
    return optimizer


def label_gradients(module: nn.Module, watcher: Watcher) -> None:
    """Tell `watcher` of each gradient as it comes to its parameter."""

    def label(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            watcher.label((parameter.grad,), "gradients", parameter)

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(label)


def _pass(
    built: Built, loss_of: Loss, request: TraceRequest, watcher: Watcher, autocast: AbstractContextManager[Any]
) -> Callable[[int, Callable[[], None] | None], torch.Tensor]:
    module, call = built.module, built.call

    def one_pass(step: int, before_backward: Callable[[], None] | None) -> torch.Tensor:
        watcher.phase("forward", step)
        with autocast:
            output = module(*call.args, **call.kwargs)
            watcher.phase("loss", step)
            loss = loss_of(output)
        if request.gradient_accumulation > 1:
            loss = loss / request.gradient_accumulation
        watcher.phase("backward", step)
        if before_backward is not None:
            before_backward()
        loss.backward()
        return loss

    return one_pass
