"""The cards of a plan, as records of the catalog."""

from planner.memory.parallel.placing import Cards
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan


def cards_of(plan: Plan, catalog: Catalog) -> tuple[Cards, ...]:
    """Return the cards of `plan` in their order: those of its workload that differ, else equal ones.

    Raises:
        SpecError: If the catalog does not have one of them.
    """
    if plan.workload.gpus:
        return tuple(_cards(kind.id, kind.count, catalog) for kind in plan.workload.gpus)
    return (_cards(plan.gpu, plan.count, catalog) if plan.gpu else Cards(None, None, plan.count),)


def _cards(gpu_id: str, number: int, catalog: Catalog) -> Cards:
    gpu = catalog.hardware.gpu(gpu_id)
    return Cards(gpu, catalog.hardware.usable_memory(gpu), number)
