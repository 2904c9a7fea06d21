"""One verdict on one plan, in numbers only: what searches over plans ask again and again."""

from typing import Literal

from planner.memory.estimate import estimate_memory, estimate_on, fits_on
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.plan.cards import cards_of
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan

AtWorst = Literal["fits", "tight"]


def judge(plan: Plan, catalog: Catalog, architecture: Architecture) -> CardFit:
    """Return the verdict of the whole estimate of `plan`, whose model is `architecture`.

    Raises:
        SpecError: If the workload does not go with the model or the number of cards.
    """
    if plan.workload.gpus:
        return _fullest(plan, catalog, architecture)
    if plan.gpu is None:
        memory = estimate_memory(architecture, plan.workload, count=plan.count, corrections=plan.corrections)
        return CardFit("", None, memory.total_bytes, None, None, ())
    gpu = catalog.hardware.gpu(plan.gpu)
    card = [(gpu, catalog.hardware.usable_memory(gpu))]
    return next(iter(fits_on(architecture, plan.workload, card, plan.count, plan.corrections)))


def _fullest(plan: Plan, catalog: Catalog, architecture: Architecture) -> CardFit:
    """Return the verdict on the card that has the least left of several kinds."""
    memory = estimate_on(architecture, plan.workload, cards_of(plan, catalog), plan.corrections)
    fullest = memory.per_gpu[memory.fullest]
    return CardFit(
        fullest.gpu or "",
        memory.verdict,
        memory.total_bytes,
        memory.capacity_bytes,
        memory.free_bytes,
        memory.unsupported,
        memory.fit_probability,
    )


def is_good(fit: CardFit, at_worst: AtWorst) -> bool:
    """Return whether `fit` is at least as good as `at_worst`."""
    return fit.verdict == "fits" or (at_worst == "tight" and fit.likely)
