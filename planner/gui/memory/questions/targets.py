"""Choices of the layers that get LoRA adapters, by their names in the model."""

from collections.abc import Sequence
from typing import Final

from planner.gui.widgets.search_list import Choice
from planner.models.architecture import Architecture

_ALL_LINEAR: Final = "all-linear"
_ALL_LINEAR_TITLE: Final = "All linear layers"
# Common choices, offered if the model has layers with these names.
_COMMON_TARGETS: Final = (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "o_proj"))


def target_choices(architecture: Architecture | None) -> Sequence[Choice]:
    """Return the common sets of target layers, and each layer name on its own."""
    names = linear_names(architecture)
    common_targets = [targets for targets in _COMMON_TARGETS if set(targets) <= set(names)]
    return [
        Choice(_ALL_LINEAR, _ALL_LINEAR_TITLE, ", ".join(names)),
        *(Choice(targets, target_title(targets), "attention") for targets in common_targets),
        *(Choice((name,), name) for name in names),
    ]


def typed_targets(text: str, architecture: Architecture | None) -> Choice | None:
    """Return the choice for layer names separated by commas, or None unless `text` names at least two known layers."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    known = set(linear_names(architecture))
    if len(names) < 2 or not set(names) <= known:
        return None
    return Choice(names, target_title(names), "these layers")


def target_title(value: object) -> str:
    """Return the title of a set of LoRA target layers: `All linear layers`, or the names of the layers."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else _ALL_LINEAR_TITLE


def linear_names(architecture: Architecture | None) -> tuple[str, ...]:
    """Return the last part of each linear layer's name in the model."""
    if architecture is None:
        return ()
    from planner.memory.training.adapters.trained import is_linear  # only needed when the list of layers opens

    layers = (group.layer for stack in architecture.stacks for group in stack.groups)
    tensors = (tensor for layer in layers for tensor in layer.tensors if is_linear(tensor))
    return tuple(dict.fromkeys(tensor.name.removesuffix(".weight").rpartition(".")[2] for tensor in tensors))
