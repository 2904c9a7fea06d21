"""Another card as a change: the smallest that the plan fits on and that can do what the present one can."""

from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.plan.advice.change import Change
from planner.plan.catalog import Catalog
from planner.plan.evaluate import find_fits
from planner.plan.plan import Plan
from planner.units import GIB


def larger_card(plan: Plan, catalog: Catalog) -> tuple[Change, CardFit] | None:
    """Return the smallest card that `plan` surely fits on as a change with its verdict, or none if there is none.

    A card of the same maker that is no older in what it computes is taken before any other.
    """
    if plan.gpu is None:
        return None
    present = catalog.hardware.gpu(plan.gpu)
    fits = [fit for fit in find_fits(plan, catalog) if fit.verdict == "fits" and fit.gpu_id != plan.gpu]
    alike = (fit for fit in fits if _does_as_much(catalog.hardware.gpu(fit.gpu_id), present))
    fit = next(alike, next(iter(fits), None))
    return None if fit is None else (_change(catalog.hardware.gpu(fit.gpu_id), fit), fit)


def _does_as_much(card: Gpu, present: Gpu) -> bool:
    if card.vendor != present.vendor or card.unified_memory != present.unified_memory:
        return False
    return _capability(card) >= _capability(present)


def _capability(card: Gpu) -> float:
    """Return NVIDIA's compute capability; other makers' cards are told apart by the year."""
    if card.vendor == "NVIDIA" and card.compute_capability:
        return float(card.compute_capability)
    return card.year or 0


def _change(card: Gpu, fit: CardFit) -> Change:
    return Change(
        name=f"{card.name} instead",
        lever="card",
        sentence=f"Run the same on the smallest card that it fits on, with {(fit.capacity_bytes or 0) / GIB:.1f} GiB.",
        source="the catalog, with this plan estimated on every card",
        hardware={"gpu": card.id},
        cost="hardware",
        slower_by_about=None,
        costs="another card",
        keeps="everything else",
    )
