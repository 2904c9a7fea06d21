"""The layers that adapters can be put beside, by their names in the network."""

from collections.abc import Sequence
from typing import Final

from planner.gui.widgets.search_list import Choice
from planner.models.architecture import Architecture

_ALL_LINEAR: Final = "all-linear"
_ALL_WORDS: Final = "All linear layers"
# The usual choices, where the network has layers of these names.
_USUAL: Final = (("q_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "o_proj"))


def target_choices(architecture: Architecture | None) -> Sequence[Choice]:
    """Return the layers that adapters are usually put beside, and each by its name."""
    names = linear_names(architecture)
    usual = [targets for targets in _USUAL if set(targets) <= set(names)]
    return [
        Choice(_ALL_LINEAR, _ALL_WORDS, ", ".join(names)),
        *(Choice(targets, target_words(targets), "attention") for targets in usual),
        *(Choice((name,), name) for name in names),
    ]


def typed_targets(text: str, architecture: Architecture | None) -> Choice | None:
    """Return the layers that were typed, with commas between their names."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    known = set(linear_names(architecture))
    if len(names) < 2 or not set(names) <= known:
        return None
    return Choice(names, target_words(names), "these layers")


def target_words(value: object) -> str:
    """Return `All linear layers`, or the names."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else _ALL_WORDS


def linear_names(architecture: Architecture | None) -> tuple[str, ...]:
    """Return the last parts of the names of all linear layers inside the network."""
    if architecture is None:
        return ()
    from planner.memory.training.adapters.trained import is_linear  # asked once the list of layers opens

    layers = (group.layer for stack in architecture.stacks for group in stack.groups)
    tensors = (tensor for layer in layers for tensor in layer.tensors if is_linear(tensor))
    return tuple(dict.fromkeys(tensor.name.removesuffix(".weight").rpartition(".")[2] for tensor in tensors))
