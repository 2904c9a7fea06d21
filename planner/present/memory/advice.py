"""What would help, ready to be shown: a row an advice."""

from typing import NamedTuple

from planner.memory.result import MemoryResult
from planner.plan.advice.advise import Advice
from planner.present import format as fmt
from planner.present.memory.verdict import in_need, verdict_words

TRACED = "A trace has no formula to vary: trace the module again with other options."


class AdviceRow(NamedTuple):
    """An advice in words. `saves` is in GiB, empty where another card has to hold the same; `details` are sentences."""

    title: str
    saves: str
    then: str
    cost: str
    risk: str
    needs: str
    details: tuple[str, ...]

    @property
    def price(self) -> str:
        """Return cost, risk and needs in a line: `about 1.33 × slower · small risk to quality · needs bitsandbytes`."""
        cost = "costs no time" if self.cost == "none" else self.cost
        risk = "no risk to quality" if self.risk == "none" else f"{self.risk} risk to quality"
        return " · ".join((cost, risk, *((f"needs {self.needs}",) if self.needs else ())))


def advice_title(memory: MemoryResult) -> str:
    """Return the heading over the advice on a plan."""
    return "What would help" if in_need(memory) else "What would save memory"


def advice_row(advice: Advice) -> AdviceRow:
    """Return what to show of `advice`."""
    other_card = any(setting.field == "gpu" for setting in advice.settings)
    return AdviceRow(
        title=fmt.capitalized(advice.name),
        saves="" if other_card else fmt.gib(advice.saved_bytes),
        then=_then(advice),
        cost=_cost(advice),
        risk=advice.risk,
        needs="; ".join(advice.needs),
        details=tuple(_details(advice)),
    )


def no_advice(memory: MemoryResult, *, traced: bool) -> str:
    """Return the sentence that stands where there is no advice."""
    if traced:
        return TRACED
    return f"{advice_title(memory)}: nothing that is known of."


def _then(advice: Advice) -> str:
    if advice.verdict is None:
        return "Not on this card" if advice.free_bytes is not None else f"Needs {fmt.size(advice.total_bytes)}"
    return verdict_words(advice.verdict, advice.free_bytes or 0, advice.fit_probability)


def _cost(advice: Advice) -> str:
    factor = advice.slower_by_about
    slower = (f"about {fmt.significant(factor)} × slower",) if factor is not None and factor > 1 else ()
    return "; ".join((*slower, *advice.costs)) or "none"


def _details(advice: Advice) -> list[str]:
    said = [f"{step.name}: {step.sentence} Source: {step.source}." for step in advice.steps]
    if advice.keeps:
        said.append(f"Stays as it is: {fmt.listing(advice.keeps)}.")
    return said
