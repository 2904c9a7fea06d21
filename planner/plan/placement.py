"""The plan as it stands on other hardware: on cards of another kind, and on whole systems."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from planner.errors import PlannerError
from planner.memory.fit import CardFit
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate, fits_among, moved_to
from planner.plan.money import PlanCost, evaluate_cost
from planner.plan.plan import Plan
from planner.workload.parallel import MOST_CARDS

_MAX_PER_MACHINE: Final = 1024
_NO_ACCELERATOR: Final = "the catalog does not say which accelerator this has"


@dataclass(frozen=True, eq=False)
class Placement:
    """What the plan comes to on some cards, or why that is not known."""

    evaluation: Evaluation | None
    cost: PlanCost | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """`count` cards of one kind; of several equal machines, each has `per_machine` of them."""

    gpu_id: str
    count: int
    per_machine: int | None = None


def try_on(
    plan: Plan, gpu_id: str, count: int, catalog: Catalog, today: date, per_machine: int | None = None
) -> Placement:
    """Return what `plan` needs, takes and costs on `count` cards of one kind; its time is worked out here, not later.

    More cards than a plan has, or a degree of parallelism that does not divide them, are a reason, not an error. The
    cards are in machines as the plan says, else of `per_machine`, else as they usually are.
    """
    if count > MOST_CARDS:
        return Placement(None, reason=f"a plan has at most {MOST_CARDS:,} cards, and these are {count:,}")
    try:
        evaluation = evaluate(_with_machine_size(moved_to(plan, gpu_id, count), per_machine), catalog)
        return Placement(evaluation, evaluate_cost(evaluation, catalog, today))
    except PlannerError as error:
        return Placement(None, reason=error.message)


def try_all(plan: Plan, wanted: Mapping[str, Cards | None], catalog: Catalog, today: date) -> dict[str, Placement]:
    """Return what `plan` comes to on each of `wanted`, by its name; none are cards that nobody knows."""
    return {
        name: Placement(None, reason=_NO_ACCELERATOR)
        if cards is None
        else try_on(plan, cards.gpu_id, cards.count, catalog, today, cards.per_machine)
        for name, cards in wanted.items()
    }


def _with_machine_size(plan: Plan, per_machine: int | None) -> Plan:
    """Return `plan` with so many cards a machine, unless it says itself how many, or more than a plan can say."""
    if per_machine is None or per_machine > _MAX_PER_MACHINE or plan.timing.cards_per_node is not None:
        return plan
    return plan.evolve(timing=plan.timing.evolve(cards_per_node=per_machine))


class SystemFit(NamedTuple):
    """The verdict on each accelerator of a system; without one, `reason` says why none can be given."""

    fit: CardFit | None
    reason: str = ""


def fits_by_system(plan: Plan, catalog: Catalog) -> Mapping[str, SystemFit]:
    """Return the verdict of `plan` on every system of `catalog`, by the system's id.

    The plan is shared between a system's accelerators as it says; where it cannot be shared between so many, that is
    the reason. Systems with as many of one kind are looked at once.
    """
    cards = defaultdict[int, set[str]](set)
    for system in catalog.hardware.systems:
        if system.gpu_id is not None:
            cards[system.gpu_count or 1].add(system.gpu_id)
    found = {count: _fits(plan, catalog, count, sorted(ids)) for count, ids in cards.items()}
    unknown = SystemFit(None, "the catalog does not say which accelerator this has")
    return {
        system.id: found[system.gpu_count or 1][system.gpu_id] if system.gpu_id is not None else unknown
        for system in catalog.hardware.systems
    }


def _fits(plan: Plan, catalog: Catalog, count: int, ids: list[str]) -> Mapping[str, SystemFit]:
    try:
        fits = fits_among(plan, catalog, tuple(ids), count)
    except PlannerError as error:
        return dict.fromkeys(ids, SystemFit(None, error.message))
    return {gpu_id: SystemFit(fit) for gpu_id, fit in fits.items()}
