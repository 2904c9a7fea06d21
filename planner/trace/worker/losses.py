"""Loss of a run: the network's own loss, a named loss, or a loss inferred from the output."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch
from torch.nn import functional

from planner.errors import TraceError
from planner.trace.worker.building.inputs import ForwardCall, random_integers
from planner.trace.worker.building.targets import load_function
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.tensors import tensors_in

_STAGE: Final = "loss"
_CLASS_LOSSES: Final = ("cross_entropy", "nll_loss", "multi_margin_loss")
"""Losses whose target is a class index per example."""


class LossFunction:
    """Loss of a run's output; targets are generated at the first output and kept, as a data loader would keep them."""

    def __init__(self, requested: str | None, inputs: Any, watcher: RunObserver) -> None:
        self._inputs = inputs
        self._watcher = watcher
        self._own_function = load_function(requested) if requested is not None and ":" in requested else None
        self._loss_name = requested if self._own_function is None else None
        self._target: torch.Tensor | None = None

    def __call__(self, output: Any) -> torch.Tensor:
        """Return the loss of `output`.

        Raises:
            TraceError: If no loss can be computed.
        """
        if self._own_function is not None:
            return self._checked_scalar_loss(self._own_function(output, self._inputs))
        if self._loss_name is None and (network_loss := _network_loss(output)) is not None:
            return network_loss
        main_output = _main_output(output)
        if self._loss_name is None:
            self._loss_name = self._inferred_loss(main_output)
        if self._loss_name == "mean":
            return main_output.float().mean()
        return self._loss_with_target(main_output, self._loss_name)

    def _checked_scalar_loss(self, loss: Any) -> torch.Tensor:
        """Return the loss if it is a tensor of one element."""
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            return loss
        raise TraceError(_STAGE, "the loss function did not return a scalar", "It must return a tensor of one element.")

    def _inferred_loss(self, main_output: torch.Tensor) -> str:
        """Return the name of the loss inferred from the output's shape, and add a note."""
        name, reason = _infer_loss(main_output, self._inputs)
        self._watcher.add_note(
            f"Loss: {name}, because the output has shape {reason}. To train with another, name it as Loss (--loss)."
        )
        return name

    def _loss_with_target(self, main_output: torch.Tensor, name: str) -> torch.Tensor:
        """Return the loss `name` of the output, with a target that is generated once."""
        loss = _functional_loss(name)
        if name in _CLASS_LOSSES and _has_token_logits(main_output, self._inputs):
            main_output = main_output.reshape(-1, main_output.shape[-1])
        if self._target is None:
            self._target = _make_target(main_output, name)
            self._watcher.label((self._target,), "inputs")
        return loss(main_output, self._target)


def _network_loss(output: Any) -> torch.Tensor | None:
    """Return the network's own loss: a scalar `output`, its `loss`, or its only scalar that requires gradients."""
    if isinstance(output, torch.Tensor):
        return output if output.dim() == 0 else None
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    scalars = [tensor for tensor in tensors_in(output) if tensor.dim() == 0 and tensor.requires_grad]
    return scalars[0] if len(scalars) == 1 else None


def _main_output(output: Any) -> torch.Tensor:
    """Return the first tensor of `output` that requires gradients."""
    for tensor in tensors_in(output):
        if tensor.requires_grad:
            return tensor
    raise TraceError(
        _STAGE,
        "nothing in the output depends on trained parameters",
        "Check whether everything is frozen, or write a loss function: --loss file.py:function.",
    )


def _infer_loss(main_output: torch.Tensor, inputs: Any) -> tuple[str, str]:
    """Return the name of a loss that suits the output's shape, and the reason."""
    shape_text = "×".join(map(str, main_output.shape))
    if any(tensor.shape == main_output.shape and tensor.is_floating_point() for tensor in _input_tensors(inputs)):
        return "mse_loss", f"{shape_text}, like an input"
    if _has_token_logits(main_output, inputs):
        return "cross_entropy", f"{shape_text}, scores for each token"
    if main_output.dim() == 2 and main_output.shape[1] > 1:
        return "cross_entropy", f"{shape_text}, class scores"
    if main_output.dim() in (4, 5):
        return "mse_loss", f"{shape_text}, like images"
    return "mean", f"{shape_text}, which suggests no loss"


def _has_token_logits(main_output: torch.Tensor, inputs: Any) -> bool:
    """Return whether the output has scores for each token of an integer input."""
    return main_output.dim() == 3 and any(
        tensor.shape == main_output.shape[:2] and not tensor.is_floating_point() for tensor in _input_tensors(inputs)
    )


def _input_tensors(inputs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among a run's inputs."""
    call = ForwardCall.from_inputs(inputs)
    yield from tensors_in((call.args, call.kwargs))


def _functional_loss(name: str) -> Callable[..., torch.Tensor]:
    """Return the function of torch.nn.functional for the loss `name`."""
    loss_function: Callable[..., torch.Tensor] | None = getattr(functional, name, None) or getattr(
        functional, f"{name}_loss", None
    )
    if loss_function is None or "target" not in inspect.signature(loss_function).parameters:
        raise TraceError(
            _STAGE,
            f"torch.nn.functional has no loss {name!r} with one target",
            "Use cross_entropy, mse_loss, l1_loss or another one.",
        )
    return loss_function


def _make_target(main_output: torch.Tensor, name: str) -> torch.Tensor:
    """Return a random target for the loss `name`."""
    if name in _CLASS_LOSSES:
        return random_integers((*main_output.shape[:1], *main_output.shape[2:]), main_output.shape[1])
    # Autocast computes the output in lower precision, but the target comes from a data loader.
    dtype = torch.float32 if torch.is_autocast_enabled("cpu") else main_output.dtype
    return torch.zeros_like(main_output, dtype=dtype, requires_grad=False)
