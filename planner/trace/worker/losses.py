"""Loss of a run: the network's own, a named one, or one inferred from the output."""

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
    """Computes the loss of an output; targets are made once, at the first output, and kept as by a data loader."""

    def __init__(self, requested: str | None, inputs: Any, watcher: RunObserver) -> None:
        self._inputs = inputs
        self._watcher = watcher
        self._own = load_function(requested) if requested is not None and ":" in requested else None
        self._named = requested if self._own is None else None
        self._target: torch.Tensor | None = None

    def __call__(self, output: Any) -> torch.Tensor:
        """Return the loss of `output`.

        Raises:
            TraceError: If no loss can be computed.
        """
        if self._own is not None:
            return self._checked(self._own(output, self._inputs))
        if self._named is None and (own := _own_loss(output)) is not None:
            return own
        main = _main(output)
        if self._named is None:
            self._named = self._inferred_loss(main)
        if self._named == "mean":
            return main.float().mean()
        return self._with_target(main, self._named)

    def _checked(self, loss: Any) -> torch.Tensor:
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            return loss
        raise TraceError(_STAGE, "the loss function did not return a scalar", "It must return a tensor of one element.")

    def _inferred_loss(self, main: torch.Tensor) -> str:
        """Return the loss inferred from the output's shape, and note it."""
        name, why = _infer_loss(main, self._inputs)
        self._watcher.note(f"Loss: {name}, as the output is {why}; --loss sets another.")
        return name

    def _with_target(self, main: torch.Tensor, name: str) -> torch.Tensor:
        loss = _functional(name)
        if name in _CLASS_LOSSES and _scores_tokens(main, self._inputs):
            main = main.reshape(-1, main.shape[-1])
        if self._target is None:
            self._target = _target(main, name)
            self._watcher.label((self._target,), "inputs")
        return loss(main, self._target)


def _own_loss(output: Any) -> torch.Tensor | None:
    """Return the loss if `output` is one, has a `loss`, or contains exactly one scalar."""
    if isinstance(output, torch.Tensor):
        return output if output.dim() == 0 else None
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return named
    numbers = [one for one in tensors_in(output) if one.dim() == 0 and one.requires_grad]
    return numbers[0] if len(numbers) == 1 else None


def _main(output: Any) -> torch.Tensor:
    for one in tensors_in(output):
        if one.requires_grad:
            return one
    raise TraceError(
        _STAGE,
        "nothing in the output depends on trained parameters",
        "Check whether everything is frozen, or write a loss function: --loss file.py:function.",
    )


def _infer_loss(main: torch.Tensor, inputs: Any) -> tuple[str, str]:
    shape = f"of {'×'.join(map(str, main.shape))}"
    if any(one.shape == main.shape and one.is_floating_point() for one in _input_tensors(inputs)):
        return "mse_loss", f"{shape}, like an input"
    if _scores_tokens(main, inputs):
        return "cross_entropy", f"{shape}, scores for each token"
    if main.dim() == 2 and main.shape[1] > 1:
        return "cross_entropy", f"{shape}, scores of classes"
    if main.dim() in (4, 5):
        return "mse_loss", f"{shape}, like images"
    return "mean", f"{shape}, which suggests no loss"


def _scores_tokens(main: torch.Tensor, inputs: Any) -> bool:
    return main.dim() == 3 and any(
        one.shape == main.shape[:2] and not one.is_floating_point() for one in _input_tensors(inputs)
    )


def _input_tensors(inputs: Any) -> Iterator[torch.Tensor]:
    call = ForwardCall.of(inputs)
    yield from tensors_in((call.args, call.kwargs))


def _functional(name: str) -> Callable[..., torch.Tensor]:
    found: Callable[..., torch.Tensor] | None = getattr(functional, name, None) or getattr(
        functional, f"{name}_loss", None
    )
    if found is None or "target" not in inspect.signature(found).parameters:
        raise TraceError(
            _STAGE,
            f"torch.nn.functional has no loss {name!r} with one target",
            "Use cross_entropy, mse_loss, l1_loss or another one.",
        )
    return found


def _target(main: torch.Tensor, name: str) -> torch.Tensor:
    if name in _CLASS_LOSSES:
        return random_integers((*main.shape[:1], *main.shape[2:]), main.shape[1])
    # Autocast computes the output in few bits; what it is compared with comes from a loader.
    dtype = torch.float32 if torch.is_autocast_enabled("cpu") else main.dtype
    return torch.zeros_like(main, dtype=dtype, requires_grad=False)
