"""Sentences on renting or owning: the decision, its break-even, what would change it, electricity and carbon."""

from collections.abc import Iterable
from datetime import date
from typing import Final

from planner.cost.demand import Demand
from planner.cost.estimate import CostEstimate
from planner.cost.rent_or_buy.hybrid import Hybrid
from planner.cost.rent_or_buy.uncertainty import Simulation
from planner.cost.result import BreakEven, CostResult, Decision, Footprint, MoneyTerm, OwnCost, RentCost
from planner.present import format as fmt
from planner.present.cost.amounts import COST_TERM_TITLES, amount_range, short_source, usd_range
from planner.present.cost.prices import RENT_MODE_TITLES, age_phrase, days_since

_HALF: Final = 0.5
_DAYS_PER_YEAR: Final = 365.25
_MONTHS_PER_YEAR: Final = 12
_DAYS_BELOW_YEARS: Final = 2 / _MONTHS_PER_YEAR
_MONTHS_BELOW_YEARS: Final = 2
_FAR_OFF: Final = 10
"""Factor beyond which a price at which the decision flips is too far off to be worth mentioning."""


def break_even_sentence(found: BreakEven | None) -> str:
    """Return the break-even point in GPU-hours, utilization and calendar time, or why there is none."""
    if found is None:
        return ""
    if found.gpu_hours is None:
        return f"No break-even: {found.reason}." if found.reason else ""
    share = f" ({fmt.percent(found.utilization_fraction)} utilization)" if found.utilization_fraction else ""
    if found.years is not None:
        when = f"reached after {years_phrase(found.years)} of the planned use"
    else:
        when = f"not reached with the planned use{f': {found.years_reason}' if found.years_reason else ''}"
    return f"Break-even: {fmt.significant(found.gpu_hours)} GPU-hours{share}, {when}."


def dates_sentence(answer: Decision, today: date, terms: Iterable[MoneyTerm] = ()) -> str:
    """Return the age of the oldest price with the term that it belongs to, and the terms without a date."""
    oldest, aged = answer.oldest_price_date, ""
    if oldest is not None:
        age = age_phrase(days_since(oldest, today))
        aged = f"Oldest price: {_term_priced_on(oldest, terms)}{fmt.date(oldest)}, {age}."
    undated = tuple(COST_TERM_TITLES.get(name, name).lower() for name in dict.fromkeys(answer.undated))
    bare = f"Without a date: {fmt.listing(undated)}." if undated else ""
    return " ".join(part for part in (aged, bare) if part)


def cost_terms(result: CostResult) -> tuple[MoneyTerm, ...]:
    """Return the cost terms of renting and owning."""
    rented = result.rent.terms if result.rent else ()
    return (*rented, *((*result.own.upfront, *result.own.monthly) if result.own else ()))


def _term_priced_on(day: str, terms: Iterable[MoneyTerm]) -> str:
    """Return the first term with a figure of this day, such as `electricity, `; empty if there is none."""
    name = next((term.name for term in terms if any(symbol.date == day for symbol in term.symbols)), None)
    return "" if name is None else f"{COST_TERM_TITLES.get(name, name).lower()}, "


def rent_sentence(rent: RentCost) -> str:
    """Return the cost of renting for a run or a month, with duration, provider, and currency if it is not USD."""
    price = fmt.money(rent.usd)
    region = rent.region or "unknown region"
    machines = fmt.plural(rent.instances, "machine") if rent.instances > 1 else ""
    billed = f"billed in {rent.billed_currency}" if rent.billed_currency not in ("USD", None) else ""
    how = ", ".join(part for part in (RENT_MODE_TITLES[rent.mode], machines, billed) if part)
    ends = amount_range(rent)
    spread = f" ({ends})" if ends else ""
    return (
        f"Rented from {rent.provider} ({region}), {how}: {price}{spread} for {fmt.significant(rent.hours)} hours, "
        f"{fmt.money(rent.usd_per_gpu_hour)} per GPU-hour."
    )


def own_sentence(own: OwnCost, demand: Demand) -> str:
    """Return the cost of owning: upfront, monthly, the resale value, and per run or month of use."""
    period = "run" if demand.period == "run" else "month"
    if not own.upfront:
        return (
            f"Your own: {fmt.money(own.usd_per_period)} per {period}, {fmt.money(own.usd_per_gpu_hour)} per GPU-hour."
        )
    hour = "" if is_bought_for_one_run(own, demand) else f", {fmt.money(own.usd_per_gpu_hour)} per GPU-hour"
    return (
        f"Owned: {fmt.money(own.upfront_usd)} upfront, {fmt.money(own.monthly_cash_usd)} per month, "
        f"{fmt.money(own.resale_usd)} ({usd_range(own.low_resale_usd, own.high_resale_usd)}) resale value: "
        f"{fmt.money(own.usd_per_period)} per {period}{hour}."
    )


def is_bought_for_one_run(own: OwnCost, demand: Demand) -> bool:
    """Return whether years of owning would be spread over the few hours of a single run, which no unit price tells."""
    return demand.periods_per_year is None and bool(own.upfront)


def money_phrase(estimate: CostEstimate | None) -> str:
    """Return the cost of the cheaper side, for the plan bar: `$14.20 per run, rented`, `$910 per month, 13 owned`.

    It is empty for a plan that cannot run. If the decision is too close to call, it is the cost of renting.
    """
    if estimate is None or estimate.result.rent is None or estimate.result.blocked is not None:
        return ""
    rent, own = estimate.result.rent, estimate.result.own
    answer, machines = estimate.result.answer, estimate.result.machines
    buys = answer is not None and answer.verdict == "buy"
    usd = own.usd_per_period if buys and own is not None else rent.usd
    cards = f"{machines.cards:,} " if machines is not None and machines.groups > 1 else ""
    period = "run" if estimate.demand.period == "run" else "month"
    return f"{fmt.money(usd)} per {period}, {cards}{'owned' if buys else 'rented'}"


def hours_phrase(estimate: CostEstimate | None) -> str:
    """Return the duration of a run, for the plan bar: `6.10 h`; empty for a job without an end."""
    if estimate is None or estimate.demand.period != "run":
        return ""
    return fmt.duration(estimate.demand.busy_hours * 3_600)


def chance_sentence(simulation: Simulation) -> str:
    """Return in how many Monte Carlo draws the more often cheaper alternative is cheaper, and its saving."""
    share, saving = simulation.owning_cheaper_fraction, simulation.saving_usd
    if share >= _HALF:
        way, middle, low, high = "Owning", saving.p50, saving.p10, saving.p90
    else:
        way, share, middle, low, high = "Renting", 1 - share, -saving.p50, -saving.p90, -saving.p10
    return (
        f"{way} is cheaper in {fmt.percent(share)} of {simulation.draws:,} Monte Carlo draws; it saves "
        f"{fmt.money(middle)} ({usd_range(low, high)})."
    )


def years_phrase(years: float) -> str:
    """Return `18 days`, `14 months`, `1 year`, `2.5 years`."""
    if years < _DAYS_BELOW_YEARS:
        text, unit = f"{years * _DAYS_PER_YEAR:.0f}", "day"
    elif years < _MONTHS_BELOW_YEARS and years != 1:
        text, unit = f"{years * _MONTHS_PER_YEAR:.0f}", "month"
    else:
        text, unit = fmt.plain(years, 2), "year"
    return f"{text} {unit}{'' if text == '1' else 's'}"


def carbon_sentence(carbon: Footprint, region: str, period: str) -> str:
    """Return the electricity of a run or month, cooling included, and its carbon emissions on the region's grid."""
    energy = f"{region}: {fmt.quantity(carbon.energy_kwh, 'kWh')} of electricity per {period}, cooling included"
    if carbon.carbon_kg is None or carbon.grams_per_kwh is None:
        return f"{energy}; its carbon emissions are unknown."
    grams = carbon.grams_per_kwh
    dated = f", {grams.date}" if grams.date else ""
    return (
        f"{energy}: {fmt.quantity(carbon.carbon_kg, 'kg')} of CO₂ at {fmt.quantity(grams.value, 'g')} per kWh "
        f"({short_source(grams.source)}{dated})."
    )


def hybrid_sentence(hybrid: Hybrid, years: float) -> str:
    """Return how many groups of cards to own and to rent, compared with renting or owning all of them.

    Of machines that run day and night, only a real mix is told: its ends are the decision.
    """
    best, most = hybrid.best, len(hybrid.mixes) - 1
    if hybrid.always_on and best.owned in (0, most):
        return ""
    if best.owned == 0:
        every = f"{fmt.plural(most, 'group')} of cards needed at the peak"
        return f"Of the {every}, none is worth owning: rent them when needed."
    if best.owned == most:
        every = (
            "The group of cards needed at the peak is"
            if most == 1
            else f"All {most} groups of cards needed at the peak are"
        )
        return f"{every} worth owning: no need to rent."
    rented, owned = hybrid.mixes[0].usd, hybrid.mixes[-1].usd
    when = "day and night" if hybrid.always_on else "when needed"
    return (
        f"Best mix: own {fmt.integer(best.owned)} of the {fmt.integer(most)} groups of cards needed at the peak, which "
        f"handle {fmt.percent(best.owned_work_fraction)} of the work, and rent the others {when}: "
        f"{fmt.money(best.usd)} over {years_phrase(years)}, compared with {fmt.money(rented)} for renting all "
        f"{when} and {fmt.money(owned)} for owning all."
    )
