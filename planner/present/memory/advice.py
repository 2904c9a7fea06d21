"""Memory advice as text, and what a plan without a card could have."""

from datetime import date
from typing import Final, NamedTuple

from planner.memory.result import MemoryResult
from planner.plan.advice.advise import Advice
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, find_fits
from planner.plan.plan import Plan
from planner.plan.prices import buying_prices
from planner.plan.warnings import memory_with_changes
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import buying_phrase
from planner.present.memory.verdict import needs_change, verdict_text
from planner.units import GIB
from planner.workload.workload import Training

NO_TRACE_ADVICE = "No advice for a traced module: trace it again with other options."


class AdviceRow(NamedTuple):
    """One piece of advice as text; `saves` is in GiB, empty for another card or if nothing is saved."""

    title: str
    saves: str
    then: str
    cost: str
    risk: str
    needs: str
    details: tuple[str, ...]

    @property
    def price(self) -> str:
        """Return an advice's cost, risk and needs: `about 33 % longer · small risk to quality · needs peft`."""
        cost = "costs no time" if self.cost == "none" else self.cost
        risk = "no risk to quality" if self.risk == "none" else f"{self.risk} risk to quality"
        return " · ".join((cost, risk, *((f"needs {self.needs}",) if self.needs else ())))


def advice_title(memory: MemoryResult) -> str:
    """Return the heading of the advice on a plan."""
    return "What would help" if needs_change(memory) else "What would save memory or time"


def advice_row(advice: Advice) -> AdviceRow:
    """Return the table row of `advice`."""
    other_card = any(setting.field == "gpu" for setting in advice.settings)
    return AdviceRow(
        title=fmt.capitalized(advice.name),
        saves="" if other_card or advice.saved_bytes < 0 else fmt.gib(advice.saved_bytes),
        then=_verdict_after(advice),
        cost=_cost_text(advice),
        risk=advice.risk,
        needs="; ".join(advice.needs),
        details=tuple(_detail_sentences(advice)),
    )


def no_advice_sentence(memory: MemoryResult, *, traced: bool) -> str:
    """Return the sentence shown for a plan without any advice."""
    if traced:
        return NO_TRACE_ADVICE
    return f"{advice_title(memory)}: no known option."


def _verdict_after(advice: Advice) -> str:
    """Return the memory verdict after the changes, as text."""
    if advice.verdict is None:
        return "Not on this GPU" if advice.free_bytes is not None else f"Needs {fmt.size(advice.total_bytes)}"
    return verdict_text(advice.verdict, advice.free_bytes or 0, advice.fit_probability)


def _cost_text(advice: Advice) -> str:
    """Return the cost of an advice in time or work."""
    factor = advice.slower_by_about
    slower: tuple[str, ...] = (_longer_text(factor),) if factor is not None and factor > 1 else ()
    if slower and any(step.slower_by_about is None for step in advice.steps):
        # The factor leaves out steps of unknown slowdown, so that it is not that of the whole.
        known = ((step.name, step.slower_by_about or 1.0) for step in advice.steps)
        slower = tuple(f"{name}: {_longer_text(one)}" for name, one in known if one > 1)
    return "; ".join((*slower, *advice.costs)) or "none"


def _longer_text(factor: float) -> str:
    return f"about {fmt.percent(factor - 1)} longer"


def _detail_sentences(advice: Advice) -> list[str]:
    """Return the steps of an advice with their sources, and what stays unchanged, as sentences."""
    texts = [f"{step.name}: {step.sentence} Source: {step.source}." for step in advice.steps]
    if advice.keeps:
        texts.append(f"Unchanged: {fmt.listing(advice.keeps)}.")
    return texts


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
    return f"The cheapest GPU that fits: {gpu.name}, {buying_phrase(prices[gpu.id], gpu)}."


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
    card = f", from a {round(smallest / GIB)}{fmt.THIN}GB GPU" if smallest else ""
    return f"With full checkpointing: {fmt.size(total)}{card}."
