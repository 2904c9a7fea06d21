"""The decision card: the verdict and its confidence, three figures for each side, and what would change it."""

from collections.abc import Iterator
from datetime import date
from typing import Final, Literal, NamedTuple

from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.result import BreakEven, CostResult, Decision, Flip, RentCost
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.money import PlanCost, plan_throughput
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES, Age, age_of
from planner.present.cost.rent_or_buy import FigureCell, FigureRow, rent_or_buy_rows
from planner.present.cost.summary import (
    answer_sentence,
    break_even_sentence,
    cost_terms,
    dates_sentence,
    flip_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
    years_phrase,
)
from planner.present.cost.time import time_view
from planner.present.memory.verdict import hypothetical_note

Blocker = Literal["", "does-not-fit", "not-supported", "speed-unknown"]

_TOO_CLOSE: Final = "Too close to call"
_HEADLINES: Final = {"does-not-fit": "Does not fit", "not-supported": "Cannot run", "speed-unknown": "Speed unknown"}
_NONE: Final = "–"
_SECONDS_PER_HOUR: Final = 3_600


class FlipChip(NamedTuple):
    """A value of one input that would change the decision; `flip` says which term of the plan would try it."""

    text: str
    flip: Flip


class DecisionView(NamedTuple):
    """The contents of the decision card."""

    headline: str
    subject: str = ""
    """What is rented or bought and where, or why there is no decision."""
    blocker: Blocker = ""
    renting_cheaper_fraction: float | None = None
    confidence: str = ""
    columns: tuple[str, str] = ("Renting", "Buying")
    rows: tuple[FigureRow, ...] = ()
    """The costs of renting and of buying."""
    flips: tuple[FlipChip, ...] = ()
    footnote: str = ""
    age: Age = "undated"
    """Age of the oldest price."""
    origin: str = ""
    """Sources and dates of the figures."""
    details: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Return the decision in one sentence."""
        return ". ".join(filter(None, (self.headline, self.subject, self.confidence)))

    @property
    def text(self) -> str:
        """Return the card and its details as lines of text."""
        first, second = (name.lower() for name in self.columns)
        rows = (f"{row.title}: {first} {row.cells[0].text}, {second} {row.cells[1].text}" for row in self.rows)
        changes = f"Changes if {fmt.listing(tuple(chip.text for chip in self.flips), 'or')}." if self.flips else ""
        lines = (self.headline, self.subject, self.confidence, *rows, changes, self.footnote, *self.details)
        return "\n".join(filter(None, lines))


def decision_view(cost: PlanCost, evaluation: Evaluation, catalog: Catalog, today: date) -> DecisionView:
    """Return the decision card for the cost of the evaluated plan as of `today`."""
    time = (*hypothetical_note(evaluation.memory), *_time_lines(evaluation))
    if cost.blocked is not None:
        return DecisionView(
            _HEADLINES[cost.blocked.code], cost.blocked.sentence, blocker=cost.blocked.code, details=time
        )
    estimate = cost.estimate
    if estimate is None:
        return DecisionView(fmt.capitalized(cost.reason), details=time)
    gpu = evaluation.plan.gpu
    card = "" if gpu is None else catalog.hardware.gpu(gpu).name
    if estimate.result.answer is None:
        return _undecided_view(estimate, card, evaluation.plan.count, time)
    return _decided_view(estimate, estimate.result.answer, card, today, (*time, *_hybrid_lines(estimate, evaluation)))


def _decided_view(
    estimate: CostEstimate, answer: Decision, card: str, today: date, lines: tuple[str, ...]
) -> DecisionView:
    result, rent = estimate.result, estimate.result.rent
    assert rent is not None  # a decision compares with a rental
    owned_verb = "Use" if answer.owned else "Buy"
    names = {"rent": "Rent", "buy": owned_verb, "too-close": _TOO_CLOSE}
    renting = answer.confidence if answer.more_often_cheaper == "rent" else 1 - answer.confidence
    days = None if answer.oldest_price_date is None else (today - date.fromisoformat(answer.oldest_price_date)).days
    prose = (
        answer_sentence(answer, card),
        " ".join(filter(None, (flip_sentence(answer, rent, result.own), _break_even_text(answer, result.break_even)))),
        dates_sentence(answer, today, cost_terms(result)),
        *lines,
        *_rent_and_own_lines(estimate),
        *map(fmt.sentence, _notes(result)),
    )
    return DecisionView(
        headline=_headline(estimate, answer, names[answer.verdict]),
        subject=_subject(rent, answer, card, owned_verb),
        renting_cheaper_fraction=renting,
        confidence=_confidence_text(answer, owned_verb),
        columns=("Renting", "Using your own" if answer.owned else "Buying"),
        rows=tuple(_figure_rows(answer, "\n".join(cell.origin for cell in rent_or_buy_rows(estimate)[0].cells))),
        flips=tuple(FlipChip(_flip_text(flip), flip) for flip in answer.flips),
        footnote=_footnote(result.break_even, days),
        age=age_of(days),
        details=tuple(dict.fromkeys(filter(None, prose))),
    )


def _headline(estimate: CostEstimate, answer: Decision, verdict: str) -> str:
    """Return the verdict; for a run that is done once, its cost and duration on the better side come first."""
    if estimate.demand.period != "run" or estimate.demand.periods_per_year is not None:
        return verdict
    side = answer.rent_figures if answer.decision == "rent" else answer.own_figures
    return f"{fmt.money(side.unit_usd)} · {fmt.duration(estimate.demand.busy_hours * _SECONDS_PER_HOUR)}"


def _subject(rent: RentCost, answer: Decision, card: str, owned_verb: str) -> str:
    """Return what is rented or bought: `Rent 8 × H100 SXM at Lambda, on demand`."""
    cards = fmt.count_of(answer.count, card)
    renting = f"ent {cards} at {rent.provider}, {RENT_MODE_TITLES[rent.mode]}"
    owning = f"{owned_verb.lower()} {cards}"
    match answer.verdict:
        case "rent":
            return f"R{renting}"
        case "buy":
            return fmt.capitalized(owning)
        case _:
            return f"R{renting}, or {owning}"


def _confidence_text(answer: Decision, owned_verb: str) -> str:
    side = "Renting" if answer.more_often_cheaper == "rent" else f"{owned_verb.removesuffix('e')}ing"
    return f"{side} is cheaper in {fmt.percent(answer.confidence)} of cases"


def _figure_rows(answer: Decision, origin: str) -> Iterator[FigureRow]:
    renting, owning = answer.rent_figures, answer.own_figures

    def row(title: str, rented: float | None, owned: float | None) -> FigureRow:
        texts = (_NONE if not usd else fmt.money(usd) for usd in (rented, owned))
        return FigureRow(title, tuple(FigureCell(text, origin) for text in texts))

    if renting.month_usd is not None:
        yield row("A month", renting.month_usd, owning.month_usd)
    yield row("At the start", renting.start_usd, owning.start_usd)
    yield row(f"Per {renting.unit}", renting.unit_usd, owning.unit_usd)


def _flip_text(flip: Flip) -> str:
    """Return the condition: `used over 56 %`, `card under $1,020`, `rent over $0.45 per GPU-hour`."""
    match flip.name:
        case "utilization":
            return f"used {flip.direction} {fmt.percent(flip.value)} of the time"
        case "card-price":
            return f"card {flip.direction} {fmt.money(flip.value)}"
        case _:
            return f"rent {flip.direction} {fmt.money(flip.value)} per GPU-hour"


def _footnote(crossing: BreakEven | None, days: int | None) -> str:
    """Return when renting and owning cost the same, and the age of the oldest price."""
    even = "" if crossing is None or crossing.years is None else f"Break-even after {years_phrase(crossing.years)}"
    prices = "prices without a date" if days is None else f"prices up to {fmt.plural(days, 'day')} old"
    return fmt.capitalized(" · ".join(filter(None, (even, prices))))


def _undecided_view(estimate: CostEstimate, card: str, count: int, lines: tuple[str, ...]) -> DecisionView:
    """Return the card for cards that can only be rented or only be bought, as far as prices are known."""
    result = estimate.result
    rent, own, period = result.rent, result.own, "run" if estimate.demand.period == "run" else "month"
    cards = fmt.count_of(count, card)
    if rent is not None:
        headline, subject = fmt.money(rent.usd), f"Rent {cards} at {rent.provider}, {RENT_MODE_TITLES[rent.mode]}"
    elif own is not None:
        headline, subject = fmt.money(own.usd_per_period), f"Buy {cards}"
    else:
        return DecisionView("No price", fmt.sentence(result.notes[0] if result.notes else ""), details=lines)
    notes = tuple(map(fmt.sentence, _notes(result)))
    details = (*notes, *lines, *_rent_and_own_lines(estimate))
    return DecisionView(f"{headline} per {period}", " · ".join((subject, *notes[:1])), details=details)


def _time_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the time of a step or a request, or why it is unknown."""
    if evaluation.time is None:
        return ()
    view = time_view(evaluation.time)
    return (f"{view.answer} {view.reason}".strip(),)


def _rent_and_own_lines(estimate: CostEstimate) -> tuple[str, ...]:
    rent, own = estimate.result.rent, estimate.result.own
    return (*((rent_sentence(rent),) if rent else ()), *((own_sentence(own, estimate.demand),) if own else ()))


def _hybrid_lines(estimate: CostEstimate, evaluation: Evaluation) -> tuple[str, ...]:
    terms = evaluation.plan.cost
    hybrid = hybrid_of_plan(estimate, terms, plan_throughput(evaluation))
    return () if hybrid is None else (hybrid_sentence(hybrid, terms.horizon_years),)


def _break_even_text(answer: Decision, crossing: BreakEven | None) -> str:
    """Return the break-even; the reason for a missing one is part of the answer's sentence."""
    return "" if answer.break_even_gpu_hours is None else break_even_sentence(crossing)


def _notes(result: CostResult) -> tuple[str, ...]:
    return (*result.notes, *(result.rent.notes if result.rent else ()), *(result.own.notes if result.own else ()))
