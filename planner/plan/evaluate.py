"""From a plan and a catalog to the answer. Pure: the same plan and catalog give the same evaluation."""

from collections.abc import Mapping
from functools import lru_cache

from pydantic import Field

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.memory.estimate import estimate_memory, fits_on
from planner.memory.fit import CardFit
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.workload.defaults import with_defaults
from planner.workload.workload import Workload

_SMALLEST = 5


class Evaluation(Spec):
    """What a plan comes to. `workload` is the plan's with every default filled in.

    `smallest_fits` are the ids of the cards with the least memory that still fit, for plans without a card.
    """

    plan: Plan
    workload: Workload
    parameters: int
    active_parameters: int
    memory: MemoryResult
    smallest_fits: tuple[str, ...] = ()
    architecture: Architecture = Field(exclude=True, repr=False)
    gpu: Gpu | None = Field(default=None, exclude=True, repr=False)


def evaluate(plan: Plan, catalog: Catalog) -> Evaluation:
    """Return the memory that `plan` needs and, where it names a card, whether it fits.

    Raises:
        SpecError: If the plan names a model or a card that the catalog does not have.
    """
    architecture = architecture_of(plan, catalog)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    usable = catalog.hardware.usable_memory(gpu) if gpu else None
    return Evaluation(
        plan=plan,
        workload=with_defaults(plan.workload, architecture, plan.count),
        parameters=architecture.parameters,
        active_parameters=architecture.active_parameters,
        memory=_estimate(architecture, plan.workload, gpu, usable, plan.count),
        smallest_fits=() if gpu else tuple(fit.gpu_id for fit in find_fits(plan, catalog)[:_SMALLEST]),
        architecture=architecture,
        gpu=gpu,
    )


def architecture_of(plan: Plan, catalog: Catalog) -> Architecture:
    """Return the architecture that `plan` runs: its own, or the catalog's.

    Raises:
        SpecError: If the catalog has no such model.
    """
    return plan.model.architecture or catalog.models.model(plan.model.id)


def fits_by_gpu(plan: Plan, catalog: Catalog) -> Mapping[str, CardFit]:
    """Return the verdict of `plan` on every card of `catalog`, by the card's id."""
    architecture = architecture_of(plan, catalog)
    return _fits(architecture, plan.workload, catalog, plan.count)


def find_fits(plan: Plan, catalog: Catalog) -> tuple[CardFit, ...]:
    """Return the cards that `plan` fits on, the one with the least memory first; tight ones count."""
    fits = (fit for fit in fits_by_gpu(plan, catalog).values() if fit.verdict in ("fits", "tight"))
    return tuple(sorted(fits, key=lambda fit: (fit.capacity_bytes or 0, fit.gpu_id)))


_estimate = lru_cache(maxsize=256)(estimate_memory)


@lru_cache(maxsize=64)
def _fits(architecture: Architecture, workload: Workload, catalog: Catalog, count: int) -> Mapping[str, CardFit]:
    cards = ((gpu, catalog.hardware.usable_memory(gpu)) for gpu in catalog.hardware.gpus)
    return {fit.gpu_id: fit for fit in fits_on(architecture, workload, cards, count)}
