"""What an architecture's parameters add up to, by role: summed once per model, whatever its depth."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from planner.base import Spec
from planner.models.architecture import Architecture, Layer, Moe, Role, Tensor

_CAST_ROLES: Final[tuple[Role, ...]] = ("linear", "router", "conv")
_CAST_BESIDE_FP8: Final[tuple[Role, ...]] = ("router", "conv")
MATRIX_ROLES: tuple[Role, ...] = ("linear", "expert")
"""Roles whose tensors quantisation schemes replace."""


class ParameterCounts(Spec):
    """Parameters by what the estimator treats differently."""

    total: int
    linear: int
    experts: int
    token_embedding: int
    before_layers: int
    smallest_layer: int
    cast: int
    cast_in_a_layer: int
    cast_behind: int


def placed_tensors(architecture: Architecture) -> Iterator[tuple[Tensor, int]]:
    """Yield each tensor once with the number of times it occurs."""
    for stack in architecture.stacks:
        yield from stack.placed()
    for tensors in (architecture.head, *(component.tensors for component in architecture.components)):
        yield from ((tensor, tensor.copies) for tensor in tensors)


@lru_cache(maxsize=256)
def parameter_counts(architecture: Architecture, in_fp8: bool = False) -> ParameterCounts:
    """Return the parameters of `architecture` by role; `in_fp8`, linear layers are none of those that are cast.

    `token_embedding` is the largest table, `before_layers` are all tables and norms before the main stack;
    `smallest_layer` is the layer with the fewest parameters. `cast` are those inside the network that autocast casts,
    `cast_in_a_layer` the most of one layer, `cast_behind` those behind the layers.
    """
    by_role: dict[str, int] = {}
    for tensor, count in placed_tensors(architecture):
        by_role[tensor.role] = by_role.get(tensor.role, 0) + tensor.size * count
    groups = [group for stack in architecture.stacks for group in stack.groups]
    roles = _CAST_BESIDE_FP8 if in_fp8 else _CAST_ROLES
    each = [_cast_in(group.layer, roles) for group in groups]
    layers = [cast * group.count for cast, group in zip(each, groups, strict=True)]
    return ParameterCounts(
        total=sum(by_role.values()),
        linear=by_role.get("linear", 0),
        experts=by_role.get("expert", 0),
        token_embedding=_token_embedding(architecture),
        before_layers=sum(tensor.parameters for tensor in architecture.stacks[-1].before),
        smallest_layer=min(group.layer.parameters for group in groups),
        cast=sum(_cast(stack.before, roles) + _cast(stack.after, roles) for stack in architecture.stacks) + sum(layers),
        cast_in_a_layer=max(each),
        cast_behind=_cast(architecture.main.after, roles),
    )


def _cast_in(layer: Layer, roles: tuple[Role, ...]) -> int:
    """Return the parameters of `layer` that autocast casts: grouped_mm knows none, bmm over all experts does."""
    block = layer.feed_forward
    every_expert = isinstance(block, Moe) and block.every_expert
    experts = sum(tensor.parameters for tensor in layer.tensors if tensor.role == "expert") if every_expert else 0
    return _cast(layer.tensors, roles) + experts


def _cast(tensors: tuple[Tensor, ...], roles: tuple[Role, ...]) -> int:
    return sum(tensor.parameters for tensor in tensors if tensor.role in roles)


def _token_embedding(architecture: Architecture) -> int:
    tables = (tensor for stack in architecture.stacks for tensor in stack.before if tensor.role == "embedding")
    return max((tensor.size for tensor in tables), default=0)
