"""Possible degrees of parallelism and card counts of a plan."""

from collections.abc import Iterator
from typing import Final

from planner.errors import PlannerError
from planner.plan.catalog import Catalog
from planner.plan.editing.conflicts import resolve_conflicts
from planner.plan.editing.draft import WORKLOAD
from planner.plan.plan import Plan

_MAX_RESULTS: Final = 8
_MAX_DEGREE: Final = 64


def possible_degrees(plan: Plan, name: str, catalog: Catalog) -> tuple[int, ...]:
    """Return the possible degrees of one form of parallelism, such as `parallel.tensor`, in ascending order."""
    return tuple(_valid_values(plan, f"{WORKLOAD}{name}", _divisors(plan.count), catalog))


def possible_counts(plan: Plan, wanted: int, catalog: Catalog) -> tuple[int, ...]:
    """Return the card counts near `wanted` that the plan's parallelism allows."""
    shards = plan.workload.parallel.model_shards * plan.workload.parallel.expert
    below = wanted // shards * shards
    return tuple(_valid_values(plan, "count", (count for count in (below, below + shards) if count), catalog))


def _divisors(count: int) -> Iterator[int]:
    return (number for number in range(1, min(count, _MAX_DEGREE) + 1) if count % number == 0)


def _valid_values(plan: Plan, name: str, candidates: Iterator[int], catalog: Catalog) -> list[int]:
    """Return the values in `candidates` that the plan accepts for the field `name`."""
    possible_values: list[int] = []
    for number in candidates:
        try:
            resolve_conflicts(plan, {name: number}, catalog)
        except PlannerError:
            continue
        possible_values.append(number)
    return possible_values[:_MAX_RESULTS]
