"""Placement of a plan on other hardware: GPUs of another kind, or whole systems."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from planner.errors import PlannerError
from planner.memory.fit import CardFit
from planner.plan.catalog import Catalog
from planner.plan.cost import PlanCost, evaluate_cost
from planner.plan.evaluate import Evaluation, evaluate, fits_among, on_equal_cards
from planner.plan.plan import Plan
from planner.workload.parallel import MOST_CARDS

_MAX_PER_MACHINE: Final = 1024
_NO_ACCELERATOR: Final = "the catalog does not name this system's accelerator"


@dataclass(frozen=True, eq=False)
class Placement:
    """Evaluation and cost of a plan on other GPUs, or the reason why the plan cannot run there."""

    evaluation: Evaluation | None
    cost: PlanCost | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlacementTarget:
    """A number of equal GPUs (`count`), with `per_machine` GPUs in each machine."""

    gpu_id: str
    count: int
    per_machine: int | None = None


def try_on(
    plan: Plan, gpu_id: str, count: int, catalog: Catalog, today: date, per_machine: int | None = None
) -> Placement:
    """Return the evaluation and cost of `plan` on `count` GPUs of one kind, including its time.

    A count that the plan or its parallelism does not allow is a reason, not an error. The GPUs are in machines of the
    size that the plan sets, else `per_machine`, else the default size.
    """
    if count > MOST_CARDS:
        return Placement(None, reason=f"a plan can have at most {MOST_CARDS:,} GPUs, not {count:,}")
    try:
        evaluation = evaluate(_with_machine_size(on_equal_cards(plan, gpu_id, count), per_machine), catalog)
        return Placement(evaluation, evaluate_cost(evaluation, catalog, today))
    except PlannerError as error:
        return Placement(None, reason=error.message)


def place_on_all(
    plan: Plan, wanted: Mapping[str, PlacementTarget | None], catalog: Catalog, today: date
) -> dict[str, Placement]:
    """Return the placement of `plan` on each target in `wanted`, by name; None stands for unknown GPUs."""
    return {
        name: Placement(None, reason=_NO_ACCELERATOR)
        if cards is None
        else try_on(plan, cards.gpu_id, cards.count, catalog, today, cards.per_machine)
        for name, cards in wanted.items()
    }


def _with_machine_size(plan: Plan, per_machine: int | None) -> Plan:
    """Return `plan` with `per_machine` GPUs per machine, unless the plan sets a size or the size is out of bounds."""
    if per_machine is None or per_machine > _MAX_PER_MACHINE or plan.timing.cards_per_node is not None:
        return plan
    return plan.evolve(timing=plan.timing.evolve(cards_per_node=per_machine))


class SystemFit(NamedTuple):
    """Memory verdict per accelerator of a system, or the `reason` why there is none."""

    fit: CardFit | None
    reason: str = ""


def fits_by_system(plan: Plan, catalog: Catalog) -> Mapping[str, SystemFit]:
    """Return the memory verdict of `plan` on every system in `catalog`, by system id.

    The plan keeps its parallelism, or leaves it to its software. If that does not allow a system's number of
    accelerators, this is the reason. Systems with equally many of one accelerator are evaluated once.
    """
    cards = defaultdict[int, set[str]](set)
    for system in catalog.hardware.systems:
        if system.gpu_id is not None:
            cards[system.gpu_count or 1].add(system.gpu_id)
    fits = {count: _system_fits(plan, catalog, count, sorted(ids)) for count, ids in cards.items()}
    unknown = SystemFit(None, _NO_ACCELERATOR)
    return {
        system.id: fits[system.gpu_count or 1][system.gpu_id] if system.gpu_id is not None else unknown
        for system in catalog.hardware.systems
    }


def _system_fits(plan: Plan, catalog: Catalog, count: int, ids: list[str]) -> Mapping[str, SystemFit]:
    """Return the memory verdict on `count` GPUs of each kind in `ids`, by GPU id, or why there is none."""
    try:
        fits = fits_among(plan, catalog, tuple(ids), count)
    except PlannerError as error:
        return dict.fromkeys(ids, SystemFit(None, error.message))
    return {gpu_id: SystemFit(fit) for gpu_id, fit in fits.items()}
