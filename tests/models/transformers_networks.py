"""Networks that transformers builds without their weights, and what they hold."""

import re
from collections import Counter
from collections.abc import Iterator

import torch
import transformers

from planner.models.architecture import Architecture, Tensor
from planner.models.readers.config_json import read_config

Shapes = Counter[tuple[int, ...]]


def build(name: str, **changes: object) -> torch.nn.Module:
    """Return a network of this class from its default configuration with changes, on the meta device."""
    kind = getattr(transformers, name)
    with torch.device("meta"):
        return kind(kind.config_class(**changes))


def assert_same(name: str, **changes: object) -> Architecture:
    """Check that the reader finds exactly the tensors of the network that transformers builds; return what it read."""
    network = build(name, **changes)
    config = {**network.config.to_dict(), "architectures": [name]}
    found = read_config(config, name)
    assert found.parameters == sum(parameter.numel() for parameter in network.parameters())
    assert shapes_read(found) == shapes_built(network)
    assert_names(found, network)
    return found


def shapes_built(network: torch.nn.Module) -> Shapes:
    """Return the shapes of a network's parameters.

    Experts count as one row of parameters: checkpoints hold them one by one, or stacked in either order.
    """
    found: Shapes = Counter()
    experts = 0
    for name, parameter in network.named_parameters():
        if ".experts." in name:
            experts += parameter.numel()
        elif parameter.numel():  # no registers are a parameter without elements
            found[tuple(parameter.shape)] += 1
    found[(experts,)] += 1
    return found


def shapes_read(architecture: Architecture) -> Shapes:
    """Return the shapes of an architecture's tensors, with the experts as one row."""
    found: Shapes = Counter()
    experts = 0
    for tensor, count in tensors(architecture):
        if tensor.role == "expert":
            experts += tensor.parameters * count
        else:
            found[tensor.shape] += tensor.copies * count
    found[(experts,)] += 1
    return found


def tensors(architecture: Architecture) -> Iterator[tuple[Tensor, int]]:
    """Yield each tensor with the number of layers that hold one."""
    for stack in architecture.stacks:
        for group in stack.groups:
            yield from ((tensor, group.count) for tensor in group.layer.tensors)
        yield from ((tensor, 1) for tensor in (*stack.before, *stack.after))
    yield from ((tensor, 1) for tensor in architecture.head)


def assert_names(architecture: Architecture, network: torch.nn.Module) -> None:
    """Check that each tensor outside the experts is named as in the network, less the prefix of its module."""
    built = {_numberless(name) for name, _ in network.named_parameters(remove_duplicate=False)}
    endings = {name[at + 1 :] for name in built for at in (-1, *(dot.start() for dot in re.finditer(r"\.", name)))}
    # Within a composite the language model stands below `model.language_model`.
    named = {
        tensor.name.removeprefix("model.")
        for tensor, _ in tensors(architecture)
        if tensor.role not in ("expert", "router")
    }
    assert {name for name in named if _numberless(name) not in endings} == set()


def _numberless(name: str) -> str:
    return re.sub(r"(?<=\.)(\d+|\{\w+\})(?=\.)", "#", name)
