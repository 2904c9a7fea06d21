"""The decision in words: its title and confidence, both sides' figures, what would change it, and what blocks it."""

from collections.abc import Iterator
from datetime import date
from typing import Final, Literal, NamedTuple

from planner.cost.rent_or_buy.cash_flows import paid_until
from planner.cost.result import CostResult, Decision, Flip, Machines, RentalMode, SideFigures
from planner.cost.terms import RentMode, Side
from planner.plan.cost_alternatives import BatchedService, FasterRental
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.cost.summary import cost_terms, dates_sentence, share_of_cases, years_phrase
from planner.workload.software.registry import SOFTWARE

TITLES: Final[dict[Literal["rent", "buy", "too-close"], str]] = {
    "rent": "Rent",
    "buy": "Buy",
    "too-close": "Too close to call",
}
_USE_OWN: Final = "Use your own"
_WAYS: Final[dict[Side, str]] = {"rent": "renting", "buy": "buying"}
_TRIALS: Final = {
    "cost.job.hours_per_day": ("hours per day", "{} hours per day"),
    "cost.job.amount": ("amount of work", "an amount of {}"),
    "cost.job.repeats_per_year": ("runs per year", "{} runs per year"),
    "cost.buy.card_price_usd": ("GPU price", "a GPU price of {}"),
    "cost.buy.sale_usd_per_card": ("sale price of a GPU", "a sale price of {} for a GPU"),
    "cost.buy.server_price_usd": ("server price", "a server price of {}"),
    "cost.rent.usd_per_gpu_hour": ("rental price per GPU-hour", "a rental price of {} per GPU-hour"),
    "cost.rent.mode": ("rental type", "renting {}"),
}
"""Plan fields that a chip tries: the field's name, and its value in words."""
_COMMITTED: Final[dict[RentMode, float]] = {"reserved-1y": 1.0, "reserved-3y": 3.0}
_FAR_OFF: Final = 10
"""Factor beyond which another rental mode is too dear to be worth mentioning, such as a year's term for one run."""
NOTHING: Final = "–"
"""Cell of a table for an amount that is not paid."""
_SECONDS_PER_HOUR: Final = 3_600
_CENT: Final = 0.01
_TWO: Final = 2


class SideRow(NamedTuple):
    """One figure of renting beside that of buying, such as the cost of a month."""

    title: str
    renting: str
    buying: str


class FlipChip(NamedTuple):
    """A change to try, such as one that turns the decision, in words; `field` is its plan field, or None.

    `terms` says at what price the change is to be had.
    """

    text: str
    field: str | None
    value: float | str | None
    terms: str = ""

    @property
    def try_text(self) -> str:
        """Return `Try it: sets the server price to $430,000`, or empty if no field would try it."""
        if self.field is None:
            return ""
        return f"Try it: sets the {_TRIALS[self.field][0]} to {self._value_text}"

    @property
    def trial_text(self) -> str:
        """Return what is tried: `a server price of $430,000`, `12.8 hours per day`."""
        return "" if self.field is None else _TRIALS[self.field][1].format(self._value_text)

    @property
    def _value_text(self) -> str:
        if isinstance(self.value, str):
            return next(text for mode, text in RENT_MODE_TITLES.items() if mode == self.value)
        value = self.value or 0.0
        return fmt.money(value) if self.field is not None and "usd" in self.field else fmt.plain(value)


def decision_title(answer: Decision) -> str:
    """Return `Rent`, `Buy`, `Use your own` or `Too close to call`; for a chosen side, `Buy, as you chose`."""
    shown = answer.chosen or answer.verdict
    title = _USE_OWN if answer.owned and shown == "buy" else TITLES[shown]
    return f"{title}, as you chose" if answer.chosen else title


def confidence_phrase(answer: Decision) -> str:
    """Return `cheaper in 82 % of cases`; of an open or chosen decision, with the side that is."""
    is_advice = answer.verdict != "too-close" and answer.chosen is None
    cheaper = f"cheaper in {share_of_cases(answer.confidence)} of cases"
    return cheaper if is_advice else cheaper_share_phrase(answer)


def cheaper_share_phrase(answer: Decision, rented: RentMode | None = None) -> str:
    """Return in how many draws a side is cheaper: `buying is cheaper than renting spot in 82 % of simulated cases`.

    `rented` names the rental type, if it is to be named.
    """
    than = (
        f" than renting {RENT_MODE_TITLES[rented]}" if rented is not None and answer.more_often_cheaper == "buy" else ""
    )
    cheaper = acquisition_phrase(answer, answer.more_often_cheaper)
    return f"{cheaper} is cheaper{than} in {share_of_cases(answer.confidence)} of simulated cases"


def decision_headline(result: CostResult, card: str) -> str:
    """Return the verdict with its confidence; for a single run on rented cards, with its cost and duration."""
    answer, rent = result.answer, result.rent
    if answer is None or rent is None:
        return ""
    if answer.verdict == "too-close" or answer.chosen:
        return f"{decision_title(answer)}: {confidence_phrase(answer)}."
    headline = f"{decision_title(answer)} ({confidence_phrase(answer)})"
    if answer.rent_figures.month_usd is None and answer.verdict == "rent":
        cards = fmt.count_of(answer.count, card)
        return f"{headline}: {fmt.money(rent.usd)} and {hours_text(rent.hours)} on {cards} from {rent.provider}."
    if answer.owned and answer.verdict == "buy":
        return f"{headline}: {_electricity_text(answer.own_figures)}."
    return f"{headline}."


def result_lines(result: CostResult, card: str, today: date) -> tuple[str, ...]:
    """Return the decision in a few sentences, or why there is none."""
    if result.blocked is not None:
        return (f"No decision yet. {result.blocked.sentence}",)
    return decision_lines(result, card, today) or tuple(map(fmt.sentence, result.notes))


def decision_lines(result: CostResult, card: str, today: date) -> tuple[str, ...]:
    """Return the decision in a few sentences: the headline, the totals, what would change it, and the oldest price."""
    answer = result.answer
    if answer is None:
        return ()
    lines = (
        decision_headline(result, card),
        totals_sentence(result),
        changes_sentence(result),
        dates_sentence(answer, today, cost_terms(result)),
    )
    return tuple(line for line in lines if line)


def totals_sentence(result: CostResult) -> str:
    """Return the present values of both sides' costs, and when a purchase has paid for itself; empty for one run."""
    answer, crossing = result.answer, result.break_even
    if answer is None or answer.rent_figures.month_usd is None:
        return ""
    rented, owned = fmt.money(answer.rent_usd), fmt.money(answer.own_usd)
    owning = acquisition_phrase(answer, "buy")
    totals = f"Present value over {years_phrase(answer.horizon_years)}: renting {rented}, {owning} {owned}"
    if crossing is None or crossing.years is None:
        return f"{totals}."
    return f"{totals}; they break even after {years_phrase(crossing.years)}."


def changes_sentence(result: CostResult) -> str:
    """Return which single inputs would change the decision; empty if none is within reach."""
    texts = tuple(chip.text for chip in flip_chips(result))
    return f"Changes if {fmt.listing(texts, 'or')}." if texts else ""


def flip_chips(result: CostResult) -> tuple[FlipChip, ...]:
    """Return the conditions under which the decision changes, another rental mode first."""
    answer = result.answer
    if answer is None:
        return ()
    inputs = (FlipChip(_flip_text(flip, owned=answer.owned), flip.field, flip.try_value) for flip in answer.flips)
    return (*_mode_chips(result, answer), *inputs)


def _mode_chips(result: CostResult, answer: Decision) -> Iterator[FlipChip]:
    """Yield the rental mode that changes the decision: the cheapest instead of buying, or on demand instead of others.

    A dearer commitment than the chosen mode makes buying cheaper, too, but nobody would choose it.
    """
    chosen = None if result.rent is None else result.rent.mode
    for each in sorted(result.rental_modes, key=lambda mode: mode.usd):
        usd = each.horizon_usd
        if each.mode == chosen or usd is None or (answer.decision == "rent" and each.mode != "on-demand"):
            continue
        if (usd <= answer.own_usd) == (answer.decision == "buy"):
            price = f"{fmt.money(_mode_usd(each))} per {'run' if each.month_usd is None else 'month'}"
            text = f"rented {RENT_MODE_TITLES[each.mode]} ({price} at {each.provider})"
            yield FlipChip(text, "cost.rent.mode", each.mode)
            return


def commitment_chip(result: CostResult) -> FlipChip | None:
    """Return the commitment that is cheapest beside renting on demand for as long, if it saves anything.

    None beside a purchase that is decided for and stays cheaper.
    """
    answer, rent = result.answer, result.rent
    if answer is None or rent is None or rent.mode != "on-demand" or answer.rent_figures.month_usd is None:
        return None
    offered = [
        each
        for each in result.rental_modes
        if _COMMITTED.get(each.mode, answer.horizon_years + 1) <= answer.horizon_years
        and each.month_usd is not None
        and (each.horizon_usd or 0.0) < answer.rent_usd
    ]
    if not offered:
        return None
    best = min(offered, key=lambda each: each.horizon_usd or 0.0)
    dearer_usd = (best.horizon_usd or 0.0) - answer.own_usd
    if answer.side_in_use == "buy" and dearer_usd > 0:
        return None
    saved = fmt.money(answer.rent_usd - (best.horizon_usd or 0.0))
    years = _COMMITTED[best.mode]
    terms = round(paid_until(answer.horizon_years, years, answer.horizon_years) / years)
    compared = (
        f"{fmt.money(abs(dearer_usd))} {'more' if dearer_usd > 0 else 'less'} than {acquisition_phrase(answer, 'buy')}"
    )
    several = f" for {terms} terms" if terms > 1 else ""
    return FlipChip(
        f"Save {saved} over {years_phrase(answer.horizon_years)}: reserve for {years_phrase(years)}",
        "cost.rent.mode",
        best.mode,
        f"{best.provider}, {fmt.money(best.month_usd)} per month{several}; {compared}",
    )


def side_rows(answer: Decision) -> tuple[SideRow, ...]:
    """Return the figures of both sides: at the start, then a month, and per unit of work."""
    rows = _run_rows(answer) if answer.own_figures.running_usd is not None and not answer.owned else _side_rows(answer)
    return tuple(rows)


def net_of_resale(answer: Decision) -> str:
    """Return what a sum of buying counts besides payments: `, net of resale`; empty for owned cards."""
    return "" if answer.owned else ", net of resale"


def buying_title(answer: Decision) -> str:
    """Return the title of the side that is not rented: `Buying`, or `Your own` for cards that are owned already."""
    return "Your own" if answer.owned else "Buying"


def machines_sentence(machines: Machines | None, card: str) -> str:
    """Return how many cards and machines a job with several groups needs, and their power; empty for one group."""
    if machines is None or machines.groups == 1:
        return ""
    grouped = f" in {machines.groups:,} groups of {machines.cards_per_group:,}" if machines.cards_per_group > 1 else ""
    counts = ((machines.rented, "if rented"), (machines.owned, "if bought"))
    found = tuple(f"{fmt.plural(count, 'machine')} {use}" for count, use in counts if count is not None)
    power = () if machines.power_watts is None else (f"{fmt.power(machines.power_watts)} for the GPUs",)
    return f"Peak load needs {fmt.count_of(machines.cards, card)}{grouped}: {fmt.listing((*found, *power))}."


def modes_sentence(result: CostResult) -> str:
    """Return the cost of the job by rental type, and which hours it pays for; empty if no other is within reach."""
    rent, modes = result.rent, result.rental_modes
    if rent is None or len(modes) < _TWO:
        return ""
    own, *others = sorted(modes, key=lambda each: each.mode != rent.mode)
    near = [each for each in others if each.usd < _FAR_OFF * own.usd]
    if own.mode != rent.mode or not near:
        return ""
    used, committed = (
        fmt.listing(tuple(_mode_price(each) for each in (own, *near) if (each.mode in _COMMITTED) == committed))
        for committed in (False, True)
    )
    texts = (used and f"{used} for the hours in use", committed and f"{committed} for all hours of the term")
    period = "run" if own.month_usd is None else "month"
    return f"Renting, per {period}: {'; '.join(filter(None, texts))}."


def _mode_price(mode: RentalMode) -> str:
    """Return `on demand $5,552 at Lambda`."""
    return f"{RENT_MODE_TITLES[mode.mode]} {fmt.money(_mode_usd(mode))} at {mode.provider}"


def _mode_usd(mode: RentalMode) -> float:
    return mode.usd if mode.month_usd is None else mode.month_usd


def hours_text(hours: float) -> str:
    """Return hours in a suitable unit: `18.5 min`, `8.32 h`, `12.5 days`."""
    return fmt.duration(hours * _SECONDS_PER_HOUR)


def faster_rental_sentence(found: FasterRental, card: str) -> str:
    """Return the time and cost of a faster rental, and the price of each hour saved; `card` is its name."""
    saved = found.own_hours - found.hours
    cards = fmt.count_of(found.count, card)
    text = (
        f"Faster: renting {cards} from {found.provider} takes {hours_text(found.hours)} instead of "
        f"{hours_text(found.own_hours)} and costs {fmt.money(found.usd)}"
    )
    if found.usd_per_hour_saved <= 0:
        return f"{text}, less than your electricity."
    extra = fmt.money(found.usd - found.own_usd)
    return f"{text}: {extra} more than your electricity, {hours_text(saved)} sooner."


def batched_service_sentence(found: BatchedService, card: str, profile: str) -> str:
    """Return what the service needs in a program that batches requests; `profile` is the plan's own program."""
    rent = "" if found.rent_usd_per_month is None else f", {fmt.money(found.rent_usd_per_month)} per month if rented"
    cards = f"{fmt.count_of(found.cards, card)} instead of {found.present_cards:,}"
    now = f"{SOFTWARE[profile].title} answers {fmt.plural(found.present_at_once, 'request')} at a time"
    return f"{now}; {SOFTWARE[found.profile].title} answers {found.at_once:,} and needs {cards}{rent}."


def _electricity_text(figures: SideFigures) -> str:
    """Return `$0.65 of electricity per run`, `$11.20 of electricity per month`."""
    if figures.month_usd is not None and figures.unit != "run":
        return f"{fmt.money(figures.month_usd)} of electricity per month"
    return f"{_unit_text(figures.unit_usd)} of electricity per {figures.unit}"


def acquisition_phrase(answer: Decision, side: Side) -> str:
    """Return `renting`, `buying` or `using your own`."""
    return "using your own" if answer.owned and side == "buy" else _WAYS[side]


def _flip_text(flip: Flip, *, owned: bool) -> str:
    """Return the condition with the present value: `used over 56 % of the time (now 40 %)`."""
    match flip.name:
        case "utilization":
            return f"used {flip.direction} {fmt.percent(flip.value)} of the time (now {fmt.percent(flip.now)})"
        case "rental-price":
            return f"renting costs {flip.direction} {_price_text(flip)} per GPU-hour"
        case "card-price" if owned:
            return f"a GPU sells for {flip.direction} {fmt.money(flip.value)}"
        case name:
            what = "GPU" if name == "card-price" else "server"
            return f"a {what} costs {flip.direction} {_price_text(flip)}"


def _price_text(flip: Flip) -> str:
    return f"{fmt.money(flip.value)} (now {fmt.money(flip.now)})"


def _side_rows(answer: Decision) -> Iterator[SideRow]:
    rented, owned = answer.rent_figures, answer.own_figures
    yield SideRow("Upfront", _start_text(rented), _start_text(owned))
    if rented.month_usd is not None and owned.month_usd is not None:
        yield SideRow("Ongoing, per month", fmt.money(rented.month_usd), fmt.money(owned.month_usd))
    yield SideRow(f"Per {rented.unit}{net_of_resale(answer)}", _unit_text(rented.unit_usd), _unit_text(owned.unit_usd))


def _run_rows(answer: Decision) -> Iterator[SideRow]:
    """Yield what adds up to the cost of a single run on cards that are bought for it."""
    owned, kept = answer.own_figures, years_phrase(answer.horizon_years)
    running = owned.running_usd or 0.0
    loan = owned.unit_usd - (owned.start_usd - owned.resale_usd + running)
    yield SideRow("Upfront", NOTHING, fmt.money(owned.start_usd))
    if abs(loan) >= _CENT:
        yield SideRow("Loan, present value", NOTHING, fmt.money(loan))
    yield SideRow(f"Resale after {kept}, present value", NOTHING, f"−{fmt.money(owned.resale_usd)}")
    yield SideRow("Electricity and upkeep of the run", NOTHING, _unit_text(running))
    yield SideRow(
        "Total, if bought for this run alone", _unit_text(answer.rent_figures.unit_usd), _unit_text(owned.unit_usd)
    )


def _start_text(figures: SideFigures) -> str:
    return fmt.money(figures.start_usd) if figures.start_usd else NOTHING


def _unit_text(usd: float) -> str:
    return f"${fmt.significant(usd, 2)}" if 0 < usd < _CENT else fmt.money(usd)
