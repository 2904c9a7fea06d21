"""Sentences on renting or owning: the decision, its break-even, what would change it, electricity and carbon."""

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

from planner.cost.demand import Demand
from planner.cost.estimate import CostEstimate
from planner.cost.figure import Certainty
from planner.cost.rent_or_buy.cash_flows import ALWAYS_CHEAPER, FIXED_RENT, NEVER_DEARER
from planner.cost.rent_or_buy.decision import Hybrid
from planner.cost.rent_or_buy.uncertainty import Simulation
from planner.cost.result import BreakEven, CostResult, Decision, Footprint, MoneyTerm, OwnCost, RentCost
from planner.cost.terms import days_since
from planner.present import format as fmt
from planner.present.cost.amounts import COST_TERM_TITLES, amount_range, short_source, usd_range
from planner.present.cost.prices import RENT_MODE_TITLES, age_phrase, age_text

_HALF: Final = 0.5
_INCREMENTS: Final = {1: "second", 60: "minute", 3_600: "hour", 86_400: "day", 2_592_000: "month"}
_BY_USE: Final = ("on-demand", "spot")
"""Rental modes that are billed by use."""
_DAYS_PER_YEAR: Final = 365.25
_MONTHS_PER_YEAR: Final = 12
_DAYS_BELOW_YEARS: Final = 2 / _MONTHS_PER_YEAR
_MONTHS_BELOW_YEARS: Final = 2
_ALMOST_ALL: Final = 0.995
PRICE_NAMES: Final = {
    "machines": "rental price",
    "cards": "GPU price",
    "servers": "server price",
    "energy": "electricity price",
}
"""Names of the prices on which a decision depends, by the cost term."""


def break_even_sentence(found: BreakEven | None, horizon_years: float, way: str = "buying") -> str:
    """Return above which use over the horizon `way` pays off, and after what time at the planned use, or why never."""
    if found is None:
        return ""
    if found.gpu_hours is None:
        return _no_break_even_sentence(found)
    share = f" ({fmt.percent(found.utilization_fraction)} utilization)" if found.utilization_fraction else ""
    if found.years is not None:
        when = f"At the planned use, it does after {years_phrase(found.years)}, if the GPUs are sold then."
    else:
        when = f"At the planned use, {found.years_reason or 'it does not'}."
    needed = f"{fmt.significant(found.gpu_hours)} GPU-hours{share}"
    return f"{fmt.capitalized(way)} pays off above {needed} in {years_phrase(horizon_years)}. {when}"


def _no_break_even_sentence(found: BreakEven) -> str:
    """Return why there is no use above which buying pays off; empty if the time after which it does says enough."""
    reason = found.reason
    if reason == FIXED_RENT:  # only time decides
        reason = found.years_reason
    if not reason:
        return ""
    return fmt.sentence(reason) if reason in (ALWAYS_CHEAPER, NEVER_DEARER) else f"No break-even: {reason}."


def dates_sentence(answer: Decision, today: date, terms: Iterable[MoneyTerm] = ()) -> str:
    """Return the age of the oldest price with the term that it belongs to, and the terms without a date."""
    oldest, aged = answer.oldest_price_date, ""
    if oldest is not None:
        age = age_phrase(days_since(oldest, today))
        aged = f"Oldest price: {_term_priced_on(oldest, terms)}{fmt.date(oldest)}, {age}."
    undated = tuple(_term_in_sentence(name) for name in dict.fromkeys(answer.undated))
    bare = f"Prices without a date: {fmt.listing(undated)}." if undated else ""
    return " ".join(part for part in (aged, bare) if part)


def cost_terms(result: CostResult) -> tuple[MoneyTerm, ...]:
    """Return the cost terms of renting and owning."""
    rented = result.rent.terms if result.rent else ()
    return (*rented, *((*result.own.upfront, *result.own.monthly) if result.own else ()))


def _term_in_sentence(name: str) -> str:
    """Return the title of a cost term within a sentence: `servers with GPUs`."""
    title = COST_TERM_TITLES.get(name, name)
    return title if title.startswith("GPU") else f"{title[:1].lower()}{title[1:]}"


def _term_priced_on(day: str, terms: Iterable[MoneyTerm]) -> str:
    """Return the first term with a figure of this day, such as `electricity, `; empty if there is none."""
    name = next((term.name for term in terms if any(symbol.date == day for symbol in term.symbols)), None)
    return "" if name is None else f"{_term_in_sentence(name)}, "


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
        f"{fmt.money(rent.usd_per_gpu_hour)} per GPU-hour{f', {billing_phrase(rent)}' if rent.mode in _BY_USE else ''}."
    )


def billing_phrase(rent: RentCost) -> str:
    """Return the unit of time that is billed: `billed by the second`, `billed by the hour (assumed)`."""
    seconds = rent.billing_increment_seconds
    unit = _INCREMENTS.get(seconds) or f"{fmt.duration(seconds)}"
    return f"billed by the {unit}{'' if rent.states_increment else ' (assumed)'}"


def own_sentence(own: OwnCost, demand: Demand) -> str:
    """Return the cost of owning: upfront, monthly, the resale value, and per run or month of use."""
    period = demand.period
    if not own.upfront:
        return (
            f"Your own: {fmt.money(own.usd_per_period)} per {period}, {fmt.money(own.usd_per_gpu_hour)} per GPU-hour."
        )
    hour = "" if is_bought_for_one_run(own, demand) else f", or {fmt.money(own.usd_per_gpu_hour)} per GPU-hour"
    return (
        f"Bought: {fmt.money(own.upfront_usd)} upfront plus {fmt.money(own.monthly_cash_usd)} per "
        f"{running_period(demand)}, minus {fmt.money(own.resale_usd)} "
        f"({usd_range(own.low_resale_usd, own.high_resale_usd)}) resale. In total, at today's value, "
        f"{fmt.money(own.usd_per_period)} per {period}{hour}."
    )


def running_period(demand: Demand) -> str:
    """Return the period of running costs: a month, or the run if it is done once."""
    return "run" if demand.periods_per_year is None else "month"


def is_bought_for_one_run(own: OwnCost, demand: Demand) -> bool:
    """Return whether years of owning would be spread over the few hours of a single run."""
    return demand.periods_per_year is None and bool(own.upfront)


def money_phrase(estimate: CostEstimate | None) -> str:
    """Return the cost of the side in use, for the plan bar: `$14.20 per run, rented`, `$50 per month (174 h), rented`.

    It is empty for a plan that cannot run, or without a price.
    """
    if estimate is None or estimate.result.blocked is not None:
        return ""
    rent, own = estimate.result.rent, estimate.result.own
    answer, machines = estimate.result.answer, estimate.result.machines
    buys = rent is None if answer is None else answer.side_in_use == "buy"
    side = own if buys else rent
    if side is None:
        return ""
    usd = side.usd_per_period if isinstance(side, OwnCost) else side.usd
    cards = f"{machines.cards:,} " if machines is not None and machines.groups > 1 else ""
    demand = estimate.demand
    hours = "" if demand.period == "run" else f" ({fmt.significant(demand.rented_hours / demand.groups)}{fmt.THIN}h)"
    whole = demand.period
    if isinstance(side, OwnCost) and side.upfront:
        return f"{fmt.money(usd)} per {whole}, {cards}bought (purchase included)"
    return f"{fmt.money(usd)} per {whole}{hours}, {cards}{'owned' if buys else 'rented'}"


class UsedPrice(NamedTuple):
    """A price on which a cost depends, such as the `GPU price`, with its day if its source states one."""

    name: str
    day: str | None
    certainty: Certainty

    def age_text(self, today: date) -> str:
        """Return how old the price is: `12 days old`, `launch price`, `no date`."""
        undated_launch = self.day is None and self.certainty == "assumed"
        return "launch price" if undated_launch else age_text(days_since(self.day, today))

    def sentence(self, today: date) -> str:
        """Return how old the price is, by itself: `Rental price used: 70 days old, aging`."""
        if self.day is not None:
            return f"{fmt.capitalized(self.name)} used: {age_phrase(days_since(self.day, today))}"
        undated = {"yours": "is your own", "assumed": "is the launch price"}.get(self.certainty, "has no date")
        return f"The {self.name} used {undated}"


def used_prices(result: CostResult) -> tuple[UsedPrice, ...]:
    """Return the price of renting, if it is known, and then that of cards or servers, or of one's electricity."""
    rent, own = result.rent, result.own
    found = {}
    if rent is not None:
        name = PRICE_NAMES["machines"]
        found[name] = UsedPrice(name, rent.oldest_price_date, rent.terms[0].certainty)
    for term in () if own is None else own.upfront or own.monthly:
        if term.name in PRICE_NAMES:
            name = PRICE_NAMES[term.name]
            found.setdefault(name, UsedPrice(name, term.date, term.certainty))
    return tuple(found.values())


def used_price(result: CostResult) -> UsedPrice | None:
    """Return the price that the side in use depends on; None if nothing is priced."""
    prices, answer = used_prices(result), result.answer
    buys = result.rent is None if answer is None else answer.side_in_use == "buy"
    of_side = [price for price in prices if (price.name != PRICE_NAMES["machines"]) == buys]
    return next(iter(of_side or prices), None)


def hours_phrase(estimate: CostEstimate | None) -> str:
    """Return the duration of a run, for the plan bar: `6.10 h`; empty for a job without an end."""
    if estimate is None or estimate.demand.period != "run":
        return ""
    return fmt.duration(estimate.demand.busy_hours * 3_600)


def chance_sentence(simulation: Simulation) -> str:
    """Return in how many simulated cases the more often cheaper alternative is cheaper."""
    share = simulation.owning_cheaper_fraction
    way = "Owning" if share >= _HALF else "Renting"
    return f"{way} is cheaper in {share_of_cases(max(share, 1 - share))} of {simulation.draws:,} simulated cases."


def share_of_cases(fraction: float) -> str:
    """Return a share of simulated cases, which do not make anything certain: `82 %`, `over 99 %`."""
    return f"over 99{fmt.THIN}%" if fraction > _ALMOST_ALL else fmt.percent(fraction)


def saving_range_sentence(simulation: Simulation, answer: Decision) -> str:
    """Return by how much the cheaper side is cheaper: `In 8 of 10 simulated cases, renting costs $1,100 to … less`."""
    saving, owning = simulation.saving_usd, "using your own" if answer.owned else "buying"
    if answer.decision == "rent":
        way, other, low, high = "renting", owning, -saving.p90, -saving.p10
    else:
        way, other, low, high = owning, "renting", saving.p10, saving.p90
    if low >= 0:
        text = f"{fmt.rounded_money(low)} to {fmt.rounded_money(high)} less"
    elif high <= 0:
        text = f"{fmt.rounded_money(-high)} to {fmt.rounded_money(-low)} more"
    else:
        text = f"from {fmt.rounded_money(-low)} more to {fmt.rounded_money(high)} less"
    return f"In 8 of 10 simulated cases, {way} costs {text} than {other}."


def years_phrase(years: float) -> str:
    """Return `18 days`, `14 months`, `1 year`, `2.5 years`."""
    if years < _DAYS_BELOW_YEARS:
        text, unit = f"{years * _DAYS_PER_YEAR:.0f}", "day"
    elif years < _MONTHS_BELOW_YEARS and years != 1:
        text, unit = f"{years * _MONTHS_PER_YEAR:.0f}", "month"
    else:
        text, unit = fmt.plain(years, 2), "year"
    return f"{text} {unit}{'' if text == '1' else 's'}"


def time_axis(horizon_years: float) -> tuple[str, int]:
    """Return the unit of a time axis over `horizon_years`, and how many of it a year has: `months` and 12."""
    return ("months", _MONTHS_PER_YEAR) if horizon_years < _MONTHS_BELOW_YEARS else ("years", 1)


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
    """Return how many groups of cards to buy and to rent, compared with renting or buying all of them.

    Of machines that run day and night, only a real mix is named: its ends are the decision.
    """
    best, most = hybrid.best, len(hybrid.mixes) - 1
    if hybrid.always_on and best.owned in (0, most):
        return ""
    if best.owned == 0:
        every = f"{fmt.plural(most, 'group')} of GPUs needed at the peak"
        return f"Of the {every}, none is worth buying: rent them when needed."
    if best.owned == most:
        every = (
            "The group of GPUs needed at the peak is"
            if most == 1
            else f"All {most} groups of GPUs needed at the peak are"
        )
        return f"{every} worth buying: no need to rent."
    rented, owned = hybrid.mixes[0].usd, hybrid.mixes[-1].usd
    when = "day and night" if hybrid.always_on else "when needed"
    return (
        f"Best mix: buy {fmt.integer(best.owned)} of the {fmt.integer(most)} groups of GPUs needed at the peak, which "
        f"handle {fmt.percent(best.owned_work_fraction)} of the work, and rent the others {when}: "
        f"{fmt.money(best.usd)} over {years_phrase(years)}, compared with {fmt.money(rented)} for renting all "
        f"{when} and {fmt.money(owned)} for buying all."
    )
