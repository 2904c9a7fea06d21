"""Whether a plan fits on the accelerators of each system, with as many of them as it has."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from planner.errors import PlannerError
from planner.memory.fit import CardFit
from planner.plan.catalog import Catalog
from planner.plan.evaluate import fits_among
from planner.plan.plan import Plan


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
