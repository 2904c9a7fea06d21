"""Suggestions for a plan without a card: the cheapest card that fits, and the change that matters most."""

from datetime import date
from typing import Final

from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, find_fits
from planner.plan.plan import Plan
from planner.plan.prices import buying_prices
from planner.plan.warnings import memory_with_changes
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import buying_phrase
from planner.units import GIB
from planner.workload.workload import Training

_NOTABLE_SHARE: Final = 0.8
"""Share of the memory below which a plan with full checkpointing is worth a sentence."""


def suggestions_without_card(evaluation: Evaluation, catalog: Catalog, today: date) -> str:
    """Return the cheapest card on which a plan without a card fits, and what full checkpointing would change.

    Empty for a plan with a card.
    """
    if evaluation.cards:
        return ""
    sentences = (_cheapest_sentence(evaluation.plan, catalog, today), _checkpointing_sentence(evaluation, catalog))
    return " ".join(filter(None, sentences))


def _cheapest_sentence(plan: Plan, catalog: Catalog, today: date) -> str:
    """Return the cheapest card that surely fits, with its price, as a sentence; empty if no price is known."""
    prices = buying_prices(catalog, today)
    fitting = (fit.gpu_id for fit in find_fits(plan, catalog) if fit.verdict == "fits")
    hardware = catalog.hardware
    # Cards before whole computers, which cost more than a card and replace the machine.
    priced = [
        (hardware.gpu(gpu_id).is_whole_computer, prices[gpu_id].value, gpu_id) for gpu_id in fitting if gpu_id in prices
    ]
    if not priced:
        return ""
    gpu = hardware.gpu(min(priced)[2])
    return f"The cheapest card that fits: {gpu.name}, {buying_phrase(prices[gpu.id], gpu)}."


def _checkpointing_sentence(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return the memory and the smallest card with full checkpointing, if that matters, as a sentence."""
    workload, architecture = evaluation.plan.workload, evaluation.architecture
    if architecture is None or not isinstance(workload, Training) or workload.activation_checkpointing == "full":
        return ""
    total = memory_with_changes(evaluation, architecture, activation_checkpointing="full").total_bytes
    if total > _NOTABLE_SHARE * evaluation.memory.total_bytes:
        return ""
    changed = evaluation.plan.evolve(workload=workload.evolve(activation_checkpointing="full"))
    sizes = (
        catalog.hardware.gpu(fit.gpu_id).memory_bytes for fit in find_fits(changed, catalog) if fit.verdict == "fits"
    )
    smallest = min(filter(None, sizes), default=0)
    card = f", from a {round(smallest / GIB)}{fmt.THIN}GB card" if smallest else ""
    return f"With full checkpointing: {fmt.size(total)}{card}."
