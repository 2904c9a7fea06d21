"""Optimizers of `torch.optim` by name, and observation of their steps."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from planner.errors import TraceError
from planner.trace.request import Argument
from planner.trace.worker.observer import RunObserver, tensors_in
from planner.workload.optimizers import OPTIMIZERS

_STAGE: Final = "load"
_WORKLOAD_NAMES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "sgdmomentum": ("sgd", {"momentum": OPTIMIZERS["sgd-momentum"].momentum})
}
"""Optimizer names of workloads that PyTorch spells differently; the momentum's value does not affect memory."""


def make_optimizer(
    name: str, arguments: Sequence[Argument], parameters: Iterable[nn.Parameter], device: Literal["cpu", "cuda"]
) -> Optimizer:
    """Create the optimizer `name` for the trainable parameters among `parameters`.

    On `device` cuda, classes that support `foreach` (one call over all tensors) use it instead of a loop, as they do by
    default for parameters on a CUDA device.

    **Source**: `torch.optim.optimizer._default_to_fused_or_foreach`.

    Raises:
        TraceError: If the optimizer does not exist, or rejects the arguments or these parameters.
    """
    optimizer_class, keywords = _optimizer_class(name)
    accepted = inspect.signature(optimizer_class).parameters
    for argument in arguments:
        if argument.name not in accepted or argument.name == "params":
            accepted_names = ", ".join(accepted_name for accepted_name in accepted if accepted_name != "params")
            raise TraceError(
                _STAGE,
                f"{optimizer_class.__name__} has no argument {argument.name!r}",
                f"Its arguments are: {accepted_names}.",
            )
        keywords[argument.name] = argument.value
    if device == "cuda" and _foreach_by_default(optimizer_class, keywords):
        keywords["foreach"] = True
    try:
        return optimizer_class([parameter for parameter in parameters if parameter.requires_grad], **keywords)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TraceError(
            _STAGE, f"{optimizer_class.__name__}: {error}", "Choose other arguments or another optimizer."
        ) from error


@contextmanager
def watch_optimizers(watcher: RunObserver, step: "CurrentStep") -> Iterator[None]:
    """Report every optimizer's steps and state tensors to `watcher`, whoever created the optimizer."""

    def before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        watcher.begin_phase("step", step.number)
        # Gradients of shards come without a hook.
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    watcher.label((parameter.grad,), "gradients", parameter)
        return _with_observed_closure(args, kwargs, lambda: watcher.begin_phase("step", step.number))

    def after_step(optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        for parameter, state in _state_tensors(optimizer):
            watcher.label(state, "optimizer_states", parameter)
        watcher.mark_on_host(_host_scalars(optimizer))

    hooks = (register_optimizer_step_pre_hook(before_step), register_optimizer_step_post_hook(after_step))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _with_observed_closure(args: tuple[Any, ...], kwargs: dict[str, Any], after: Callable[[], None]) -> Any:
    """Return the arguments of an optimizer's step with `after` called when a closure, which has passes, returns."""
    closure = kwargs.get("closure") or next(iter(args[1:]), None)
    if not callable(closure):
        return None

    def observed() -> Any:
        result = closure()
        after()
        return result

    return (args[0], observed), {name: value for name, value in kwargs.items() if name != "closure"}


class CurrentStep:
    """Number of the current step, counted from 0."""

    def __init__(self) -> None:
        self.number = 0


def _optimizer_class(name: str) -> tuple[type[Optimizer], dict[str, Any]]:
    """Return the class of torch.optim called `name`, and its keyword arguments."""
    normalized = name.lower().replace("-", "").replace("_", "")
    normalized, keywords = _WORKLOAD_NAMES.get(normalized, (normalized, {}))
    classes = {
        value.__name__.lower(): value
        for value in vars(torch.optim).values()
        if inspect.isclass(value) and issubclass(value, Optimizer) and value is not Optimizer
    }
    if normalized not in classes:
        available = ", ".join(sorted(optimizer_class.__name__ for optimizer_class in classes.values()))
        raise TraceError(_STAGE, f"PyTorch has no optimizer {name!r}", f"Available are: {available}.")
    return classes[normalized], dict(keywords)


def _foreach_by_default(optimizer_class: type[Optimizer], keywords: dict[str, Any]) -> bool:
    """Return whether `optimizer_class` defaults to `foreach` on CUDA. Adafactor does not, to save memory."""
    if "foreach" not in inspect.signature(optimizer_class).parameters or optimizer_class.__name__ == "Adafactor":
        return False
    return not any(keywords.get(name) is not None for name in ("foreach", "fused")) and not keywords.get(
        "differentiable"
    )


def _state_tensors(optimizer: Optimizer) -> Iterator[tuple[torch.Tensor | None, list[torch.Tensor]]]:
    """Yield each parameter with its state tensors in the optimizer, except tensors that share a parameter's storage."""
    parameter_storages = {
        tensor.untyped_storage()._cdata for group in optimizer.param_groups for tensor in group["params"]
    }
    for parameter, state in optimizer.state.items():
        tensors = [tensor for tensor in tensors_in(state) if tensor.untyped_storage()._cdata not in parameter_storages]
        yield parameter if isinstance(parameter, torch.Tensor) else None, tensors


def _host_scalars(optimizer: Optimizer) -> list[torch.Tensor]:
    """Return the scalars that the optimizer keeps on the host, even if its parameters are on a card.

    **Source**: `_init_group` of the classes of `torch.optim`: with `capturable` or `fused` they are on the parameter's
    device, as ASGD's scalars always are.
    """
    if isinstance(optimizer, torch.optim.ASGD):
        return []
    on_device = {
        id(parameter)
        for group in optimizer.param_groups
        if group.get("capturable") or group.get("fused")
        for parameter in group["params"]
    }
    states = (state for parameter, state in optimizer.state.items() if id(parameter) not in on_device)
    return [tensor for state in states for tensor in tensors_in(state) if tensor.dim() == 0]
