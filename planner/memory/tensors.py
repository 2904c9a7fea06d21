"""What an architecture's parameters add up to, by role: summed once per model, whatever its depth."""

from collections.abc import Iterator
from functools import lru_cache

from planner.base import Spec
from planner.models.architecture import Architecture, Role, Tensor

MATRIX_ROLES: tuple[Role, ...] = ("linear", "expert")
"""Roles whose tensors quantisation schemes replace."""


class ParameterCounts(Spec):
    """Parameters by what the estimator treats differently."""

    total: int
    linear: int
    experts: int
    token_embedding: int
    smallest_layer: int


def placed_tensors(architecture: Architecture) -> Iterator[tuple[Tensor, int]]:
    """Yield each tensor once with the number of times it occurs."""
    for stack in architecture.stacks:
        yield from ((tensor, tensor.copies) for tensor in (*stack.before, *stack.after))
        for group in stack.groups:
            yield from ((tensor, tensor.copies * group.count) for tensor in group.layer.tensors)
    yield from ((tensor, tensor.copies) for tensor in architecture.head)


@lru_cache(maxsize=256)
def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """Return the parameters of `architecture` by role.

    `token_embedding` is the largest table; `smallest_layer` is the layer with the fewest parameters.
    """
    by_role: dict[str, int] = {}
    for tensor, count in placed_tensors(architecture):
        by_role[tensor.role] = by_role.get(tensor.role, 0) + tensor.size * count
    return ParameterCounts(
        total=sum(by_role.values()),
        linear=by_role.get("linear", 0),
        experts=by_role.get("expert", 0),
        token_embedding=_token_embedding(architecture),
        smallest_layer=min(group.layer.parameters for stack in architecture.stacks for group in stack.groups),
    )


def _token_embedding(architecture: Architecture) -> int:
    tables = (tensor for stack in architecture.stacks for tensor in stack.before if tensor.role == "embedding")
    return max((tensor.size for tensor in tables), default=0)
