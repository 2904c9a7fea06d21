"""Contents of the Cost tab's decision card: the decision with its figures, or why the plan cannot run or be priced."""

from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.owning.costs import buys_servers
from planner.cost.rent_or_buy.case import RentOrBuyCase
from planner.cost.result import CostResult, Decision, RentCost
from planner.cost.terms import days_since
from planner.hardware.system import cards_sold_together
from planner.plan.catalog import Catalog
from planner.plan.cost import PlanCost, plan_throughput
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.cost.amounts import usd_range
from planner.present.cost.decision import (
    FlipChip,
    SideRow,
    acquisition_phrase,
    buying_title,
    cheaper_share_phrase,
    commitment_chip,
    decision_title,
    flip_chips,
    hours_text,
    machines_sentence,
    modes_sentence,
    net_of_resale,
    side_rows,
)
from planner.present.cost.prices import RENT_MODE_TITLES, Age, age_of
from planner.present.cost.rent_or_buy import rent_or_buy_rows
from planner.present.cost.summary import (
    break_even_sentence,
    cost_terms,
    dates_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
    used_prices,
    years_phrase,
)
from planner.present.cost.time import time_view
from planner.present.memory.verdict import VERDICT_TITLES, hypothetical_note

_BLOCKED_TITLES: Final = {
    "does-not-fit": VERDICT_TITLES["does-not-fit"],
    "not-supported": "Cannot run",
    "speed-unknown": "Speed unknown",
}
_MONTHLY: Final = 2
"""Position of the totals: after what is paid at the start and then a month."""


class DecisionView(NamedTuple):
    """The contents of the decision card."""

    headline: str
    subject: str = ""
    """What is rented or bought and where, or why there is no decision."""
    is_blocked: bool = False
    """Whether the plan cannot run, so that there is nothing to decide."""
    needs_hardware: bool = False
    """Whether there is no decision because of the plan's card, or for want of one."""
    renting_cheaper_fraction: float | None = None
    confidence: str = ""
    awaits_range: bool = False
    """Whether a simulation adds the range of what the cheaper side saves; it needs costs over time."""
    buying_title: str = "Buying"
    rows: tuple[SideRow, ...] = ()
    origins: tuple[str, str] = ("", "")
    """Sources and dates of the figures of renting and of buying."""
    chips: tuple[FlipChip, ...] = ()
    commitment: FlipChip | None = None
    """The commitment that is cheaper than renting on demand, if there is one."""
    break_even: str = ""
    price_dates: str = ""
    price_age: Age = "undated"
    """Age of the oldest of the prices in `price_dates`."""
    details: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Return the decision in one line."""
        headline = "" if self.subject.startswith(f"{self.headline} ") else self.headline
        return ". ".join(part.removesuffix(".") for part in (headline, self.subject, self.confidence) if part)

    @property
    def text(self) -> str:
        """Return the card and its details as lines of text."""
        rows = (f"{row.title}: renting {row.renting}, {self.buying_title.lower()} {row.buying}" for row in self.rows)
        changes = f"Changes if {fmt.listing(tuple(chip.text for chip in self.chips), 'or')}." if self.chips else ""
        answer = (self.headline, self.subject, self.confidence)
        commitment = self.commitment
        cheaper = "" if commitment is None else fmt.sentence(f"{commitment.text} ({commitment.terms})")
        lines = (*answer, *rows, changes, cheaper, self.break_even, self.price_dates, *self.details)
        return "\n".join(filter(None, lines))


def decision_view(cost: PlanCost, evaluation: Evaluation, catalog: Catalog, today: date) -> DecisionView:
    """Return the decision card for the cost of the evaluated plan as of `today`."""
    time = (*hypothetical_note(evaluation.memory), *_time_lines(evaluation))
    if cost.blocked is not None:
        title = _BLOCKED_TITLES[cost.blocked.code]
        return DecisionView(title, cost.blocked.sentence, is_blocked=True, needs_hardware=True, details=time)
    estimate = cost.estimate
    if estimate is None:
        return DecisionView("Cost unknown", cost.reason, needs_hardware=evaluation.plan.gpu is None, details=time)
    hardware, gpu = catalog.hardware, evaluation.plan.gpu
    card = "" if gpu is None else hardware.gpu(gpu).name
    details = tuple(filter(None, (*time, *_estimate_lines(estimate, evaluation, card))))
    together = None if gpu is None else cards_sold_together(hardware.gpu(gpu), hardware.systems)
    answer = estimate.result.answer
    if answer is None:
        cards, is_owned = fmt.count_of(evaluation.plan.count, card), evaluation.plan.cost.buy.owned
        dates, age = _price_ages(estimate.result, today)
        view = _undecided_view(estimate, cards, details, is_owned=is_owned, together=together)
        return view._replace(price_dates=dates, price_age=age)
    return _decided_view(estimate, answer, card, today, details, together)


def _decided_view(
    estimate: CostEstimate, answer: Decision, card: str, today: date, details: tuple[str, ...], together: int | None
) -> DecisionView:
    result, rent = estimate.result, estimate.result.rent
    assert rent is not None  # a decision compares with a rental
    assert estimate.case is not None  # a decision follows from a case
    totals = _totals_row(answer, estimate.case.discount_rate)
    rows = (*side_rows(answer), *_machine_hour_rows(estimate, is_owned=answer.owned))
    is_single_run = answer.rent_figures.month_usd is None
    price_dates, price_age = _price_ages(result, today)
    difference = (
        f"{_run_range(answer, rent)}{'' if answer.chosen is None else ', as you chose'}"
        if is_single_run
        else difference_text(answer)
    )
    chips, commitment = flip_chips(result), commitment_chip(result)
    if commitment is not None and commitment.value in (chip.value for chip in chips):
        commitment = None  # it changes the decision, which a chip says
    return DecisionView(
        headline=_single_run_title(estimate, answer) if is_single_run else decision_title(answer),
        subject=f"{_subject(estimate, answer, card, together)}{difference}",
        renting_cheaper_fraction=answer.confidence if answer.more_often_cheaper == "rent" else 1 - answer.confidence,
        confidence=fmt.capitalized(cheaper_share_phrase(answer, rent.mode)),
        awaits_range=not is_single_run,
        buying_title=buying_title(answer),
        rows=rows if is_single_run else (*rows[:_MONTHLY], totals, *rows[_MONTHLY:]),
        origins=_origins(estimate),
        chips=chips,
        commitment=commitment,
        break_even=_break_even_text(result),
        price_dates=price_dates,
        price_age=price_age,
        details=tuple(
            filter(
                None,
                (
                    break_even_sentence(result.break_even, answer.horizon_years, acquisition_phrase(answer, "buy")),
                    dates_sentence(answer, today, cost_terms(result)),
                    *details,
                ),
            )
        ),
    )


def _totals_row(answer: Decision, discount_rate: float) -> SideRow:
    """Return the totals over the horizon, which are less than the months' sum if later payments are discounted."""
    title = f"Over {years_phrase(answer.horizon_years)}{net_of_resale(answer)}"
    if discount_rate:
        title += f", discounted at {fmt.percent(discount_rate)} a year"
    return SideRow(title, fmt.money(answer.rent_usd), fmt.money(answer.own_usd))


def _machine_hour_rows(estimate: CostEstimate, *, is_owned: bool) -> tuple[SideRow, ...]:
    """Return what an hour of all cards together costs; no row for cards bought for a single run."""
    rent, own, machines = estimate.result.rent, estimate.result.own, estimate.result.machines
    is_single_run = estimate.demand.periods_per_year is None
    if own is None or machines is None or machines.cards == 1 or (is_single_run and not is_owned):
        return ()
    rented, owned = ("–" if side is None else fmt.money(side.usd_per_gpu_hour * machines.cards) for side in (rent, own))
    basis = "" if is_owned else ", net of resale"
    return (SideRow(f"Per hour of all {machines.cards:,} GPUs{basis}", rented, owned),)


def _single_run_title(estimate: CostEstimate, answer: Decision) -> str:
    """Return the cost and the duration of a run that is done once, on the chosen or the cheaper side."""
    side = answer.rent_figures if (answer.chosen or answer.decision) == "rent" else answer.own_figures
    return f"{fmt.money(side.unit_usd)} · {hours_text(estimate.demand.busy_hours)}"


def _run_range(answer: Decision, rent: RentCost) -> str:
    """Return the range of the cost and the duration of a rented run, empty if its duration was measured."""
    if answer.side_in_use != "rent" or rent.low_hours == rent.high_hours:
        return ""
    hours = f"{hours_text(rent.low_hours)} to {hours_text(rent.high_hours)}"
    return f": {usd_range(rent.low_usd, rent.high_usd)} and {hours} in 8 of 10 cases"


def _subject(estimate: CostEstimate, answer: Decision, card: str, together: int | None) -> str:
    """Return what is rented or bought: `Rent 8 × H100 SXM from Lambda, on demand`, `Buy 13 × L40S in 2 servers`."""
    rent, cards = estimate.result.rent, fmt.count_of(answer.count, card)
    assert rent is not None  # a decision compares with a rental
    renting = f"Rent {cards} from {rent.provider}, {RENT_MODE_TITLES[rent.mode]}"
    verb = "use" if answer.owned else "buy"
    where = _in_servers(estimate.case, None if answer.owned else together)
    if answer.verdict == "too-close" and answer.chosen is None:
        return f"{renting}, or {verb} {'them' if answer.count > 1 else 'it'}{where}"
    return renting if answer.side_in_use == "rent" else f"{fmt.capitalized(verb)} {cards}{where}"


def _in_servers(case: RentOrBuyCase | None, together: int | None) -> str:
    """Return in how many servers the cards are, and how many are paid for if servers are bought whole.

    Modules that are sold only `together` are in a server, or a share of one.
    """
    assert case is not None  # the cost of owning follows from a case
    shape = case.setup
    paid = shape.servers * shape.gpus_per_server
    if paid > shape.cards and buys_servers(case.central, shape):
        return f" in {fmt.plural(shape.servers, 'server')} of {shape.gpus_per_server}, paying for {paid:,} GPUs"
    if shape.servers > 1 or together is None:
        return f" in {shape.servers:,} servers" if shape.servers > 1 else ""
    return f" as {shape.cards}/{together} of a server" if shape.cards % together else " in a server"


def difference_text(answer: Decision) -> str:
    """Return by how much the two sides differ over the horizon: `, which saves about $71,400 over 5 years`."""
    saved, years = f"about {fmt.rounded_money(answer.saves_usd)}", years_phrase(answer.horizon_years)
    if answer.chosen not in (None, answer.decision):
        return f", which costs {saved} more over {years} than {acquisition_phrase(answer, answer.decision)}"
    if answer.verdict != "too-close" or answer.chosen:
        return f", which saves {saved} over {years}"
    dearer = "renting" if answer.decision == "buy" else "using your own" if answer.owned else "buying"
    return f": with these figures, {dearer} costs {saved} more over {years}"


def _origins(estimate: CostEstimate) -> tuple[str, str]:
    renting, buying = rent_or_buy_rows(estimate)[0].cells
    return renting.origin, buying.origin


def _price_ages(result: CostResult, today: date) -> tuple[str, Age]:
    """Return the ages of the prices that both sides depend on, and the category of the oldest.

    One's own prices are left out. A price without a date may be of any age, but is not known to be old.
    """
    prices = [price for price in used_prices(result) if price.certainty != "yours"]
    ages = [days_since(price.day, today) for price in prices]
    texts = " · ".join(f"{price.name}: {price.age_text(today)}" for price in prices)
    oldest = age_of(max((days for days in ages if days is not None), default=None))
    return fmt.capitalized(texts), "undated" if None in ages and oldest in ("fresh", "recent", "aging") else oldest


def _break_even_text(result: CostResult) -> str:
    crossing = result.break_even
    if crossing is None or not crossing.years:
        return ""
    return f"Break-even after {years_phrase(crossing.years)}, if the hardware is sold then"


def _undecided_view(
    estimate: CostEstimate, cards: str, details: tuple[str, ...], *, is_owned: bool, together: int | None
) -> DecisionView:
    """Return the card of hardware that can only be rented or only be bought, as far as prices are known."""
    result = estimate.result
    rent, own, period = result.rent, result.own, estimate.demand.period
    why = fmt.sentence(result.notes[0]) if result.notes else ""
    if rent is not None:
        subject = f"Rent {cards} from {rent.provider}, {RENT_MODE_TITLES[rent.mode]}"
        return DecisionView(f"{fmt.money(rent.usd)} per {period}", f"{subject}. {why}", details=details)
    if own is not None:
        return DecisionView(
            f"{fmt.money(own.usd_per_period)} per {period}",
            f"{'Use your own' if is_owned else 'Buy'} {cards}"
            f"{_in_servers(estimate.case, None if is_owned else together)}. {why}",
            buying_title="Your own" if is_owned else "Buying",
            rows=_machine_hour_rows(estimate, is_owned=is_owned),
            details=details,
        )
    return DecisionView("No price", why, details=details)


def _estimate_lines(estimate: CostEstimate, evaluation: Evaluation, card: str) -> Iterator[str]:
    """Yield the sentences on the machines, both sides' costs, the best mix of both, and the notes."""
    result, terms = estimate.result, evaluation.plan.cost
    yield machines_sentence(result.machines, card)
    if result.rent is not None:
        yield rent_sentence(result.rent)
        yield modes_sentence(result)
    if result.own is not None:
        yield own_sentence(result.own, estimate.demand)
    hybrid = hybrid_of_plan(estimate, terms, plan_throughput(evaluation))
    if hybrid is not None:
        yield hybrid_sentence(hybrid, terms.horizon_years)
    notes = (part.notes for part in (result, result.rent, result.own) if part is not None)
    yield from dict.fromkeys(fmt.sentence(note) for group in notes for note in group)


def _time_lines(evaluation: Evaluation) -> tuple[str, ...]:
    if evaluation.time is None:
        return ()
    view = time_view(evaluation.time)
    return (f"{view.answer} {view.reason}".strip(),)
