"""The decision to rent or to buy: how sure it is, its figures, what would change it, and the best mix of both."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from planner.base import Spec
from planner.cost.demand import HOURS_PER_MONTH, Demand, Throughput
from planner.cost.finance import annuity, ceil_with_tolerance, discounted
from planner.cost.owning.costs import buys_servers
from planner.cost.rent_or_buy.case import RENT_PRICE, RentOrBuyCase
from planner.cost.rent_or_buy.cash_flows import CashFlows
from planner.cost.rent_or_buy.uncertainty import DRAWS, owning_cheaper_fraction
from planner.cost.result import BreakEven, Decision, Flip, OwnCost, RentCost, SideFigures, WorkUnitName
from planner.cost.terms import HOURS_PER_YEAR, CostTerms, DailyHours, Run, Service, Side
from planner.errors import SpecError
from planner.units import HOURS_PER_DAY, MONTHS_PER_YEAR

SURE_SHARE: Final = 0.65
"""Share of the draws from which the cheaper side is named.

**Assumes** that people want to be right about twice as often as wrong; the ranges of the inputs, which are rough
themselves, carry no finer distinction.
"""
_FAR_OFF: Final = 10
"""Factor beyond which a value at which the decision flips is too far off to be worth mentioning."""
_BEYOND: Final = 1.05
"""Factor by which a value to try is beyond the flip."""
_CARD_PRICE: Final = "card_price_usd"
_SERVER_PRICE: Final = "server_price_usd"
_DAY: Final = "cost.job.hours_per_day"
_REQUESTS: Final = 1_000


class DecisionInputs(NamedTuple):
    """Inputs of one decision: the case with its cash flows, both sides' costs, and the job that they are for."""

    case: RentOrBuyCase
    flows: CashFlows
    crossing: BreakEven
    rent: RentCost
    own: OwnCost
    terms: CostTerms
    demand: Demand
    throughput: Throughput | None


def make_decision(inputs: DecisionInputs) -> Decision:
    """Return the rent-or-buy decision over the horizon, in present value, with the figures behind it."""
    case, flows, rent, own = inputs.case, inputs.flows, inputs.rent, inputs.own
    years, setup = case.horizon_years, case.setup
    rented, owned = flows.rent_usd(years), flows.own_usd(years)
    flip_rent = flip_value(case, RENT_PRICE)
    dates = [day for day in (rent.oldest_price_date, own.oldest_price_date) if day]
    side: Side = "buy" if owned < rented else "rent"
    owning = owning_cheaper_fraction(case)
    agreeing = owning if side == "buy" else 1 - owning
    decision = Decision(
        decision=side,
        verdict=side if agreeing >= SURE_SHARE else "too-close",
        confidence=max(owning, 1 - owning),
        more_often_cheaper="buy" if owning > 1 - owning else "rent",
        draws=DRAWS,
        owned=inputs.terms.buy.owned,
        chosen=inputs.terms.chosen,
        rent_figures=rent_figures(inputs),
        own_figures=own_figures(inputs),
        provider=rent.provider,
        region=rent.region,
        offer_id=rent.offer_id,
        gpu=own.gpu,
        count=setup.cards,
        planned_gpu_hours=flows.busy_hours_per_year * inputs.demand.rented_hours_per_busy_hour * years * setup.count,
        planned_utilization_fraction=flows.busy_hours_per_year / (HOURS_PER_YEAR * setup.groups),
        break_even_gpu_hours=inputs.crossing.gpu_hours,
        break_even_reason=inputs.crossing.reason,
        rent_usd=rented,
        own_usd=owned,
        saves_usd=abs(rented - owned),
        flips_at_utilization_fraction=inputs.crossing.utilization_fraction,
        flips_at_card_price_usd=flip_value(case, _CARD_PRICE),
        flips_at_server_price_usd=flip_value(case, _SERVER_PRICE) if buys_servers(case.central, setup) else None,
        flips_at_rent_usd_per_gpu_hour=None if flip_rent is None else flip_rent / setup.count,
        horizon_years=years,
        oldest_price_date=min(dates, default=None),
        undated=tuple(_undated_figures(rent, own)),
    )
    return decision.replaced(flips=tuple(_flips(decision, inputs)))


def rent_figures(inputs: DecisionInputs) -> SideFigures:
    """Return the cost of renting: a month, at the start, and per unit of work."""
    rent, per_year = inputs.rent, inputs.demand.periods_per_year
    unit = _work_unit(inputs)
    return SideFigures(
        month_usd=None if per_year is None else rent.usd * per_year / MONTHS_PER_YEAR,
        start_usd=0.0,
        unit_usd=_usd_per_unit(unit, inputs, rent.usd, rent.usd_per_gpu_hour, rent.usd_per_million_tokens),
        unit=unit,
    )


def own_figures(inputs: DecisionInputs) -> SideFigures:
    """Return the cost of owning: a month with the loan, at the start, and per unit of work with the loss of value."""
    own, unit = inputs.own, _work_unit(inputs)
    return SideFigures(
        month_usd=None if inputs.demand.periods_per_year is None else own.monthly_cash_usd + own.loan_usd_per_month,
        start_usd=own.upfront_usd - own.borrowed_usd,
        unit_usd=_usd_per_unit(unit, inputs, own.usd_per_period, own.usd_per_gpu_hour, own.usd_per_million_tokens),
        unit=unit,
        resale_usd=discounted(own.resale_usd, inputs.terms.discount_rate, inputs.terms.horizon_years),
        running_usd=own.monthly_cash_usd if inputs.case.once else None,
    )


def _work_unit(inputs: DecisionInputs) -> WorkUnitName:
    match inputs.terms.job:
        case Run():
            return "run"
        case Service():
            return "1,000 requests" if inputs.rent.usd_per_million_tokens is None else "million output tokens"
        case _:
            return "GPU-hour"


def _usd_per_unit(
    unit: WorkUnitName, inputs: DecisionInputs, period_usd: float, gpu_hour_usd: float, million_usd: float | None
) -> float:
    if unit == "run":
        return period_usd
    if unit == "million output tokens" and million_usd is not None:
        return million_usd
    if isinstance(inputs.terms.job, Service):
        requests = inputs.terms.job.requests_per_day * HOURS_PER_MONTH / HOURS_PER_DAY
        return period_usd / requests * _REQUESTS
    return gpu_hour_usd


def flip_value(case: RentOrBuyCase, name: str) -> float | None:
    """Return the value of the figure `name` at which renting and owning cost the same, or None if it is not positive.

    **Formula** the saving is linear in a price: x* = x₀ − saving(x₀) · (x₁ − x₀) / (saving(x₁) − saving(x₀))
    """
    start = case.central[name]
    before, after = (
        case.with_values({**case.central, name: start + step}).saving_usd(case.horizon_years) for step in (0.0, 1.0)
    )
    if before == after:
        return None
    flip = start - before / (after - before)
    return flip if flip > 0 else None


def _undated_figures(rent: RentCost, own: OwnCost) -> list[str]:
    """Return the names of the cost terms without a date, the largest amount first."""
    terms = (*rent.terms, *own.upfront, *own.monthly)
    named = [term for term in terms if term.date is None and term.certainty != "yours"]
    return [term.name for term in sorted(named, key=lambda term: -term.usd)]


def _flips(decision: Decision, inputs: DecisionInputs) -> Iterator[Flip]:
    """Yield the flips that are within reach: used more or less, a cheaper or dearer GPU, a lower or higher rent."""
    renting = decision.decision == "rent"
    planned, share = decision.planned_utilization_fraction, decision.flips_at_utilization_fraction
    job = inputs.terms.job
    # A service rents whole groups, so that its rent is not proportional to its work.
    if share is not None and not isinstance(job, Service) and _is_near(share, planned):
        field, value = _job_trial(job, share / planned, planned, more=renting)
        direction = "over" if renting else "under"
        yield Flip(name="utilization", value=share, now=planned, direction=direction, field=field, try_value=value)
    card_field = "sale_usd_per_card" if decision.owned else _CARD_PRICE
    prices = (
        ("card-price", _CARD_PRICE, card_field, decision.flips_at_card_price_usd),
        ("server-price", _SERVER_PRICE, _SERVER_PRICE, decision.flips_at_server_price_usd),
    )
    for name, figure, field_name, usd in prices:
        now = inputs.case.central.get(figure, 0.0)
        if usd is not None and _is_near(usd, now):
            yield _price_flip(name, usd, now, f"cost.buy.{field_name}", under=renting)
    hourly = decision.flips_at_rent_usd_per_gpu_hour
    now = inputs.case.central[RENT_PRICE] / inputs.case.setup.count
    if hourly is not None and _is_near(hourly, now):
        yield _price_flip("rental-price", hourly, now, "cost.rent.usd_per_gpu_hour", under=not renting)


def _is_near(value: float, now: float) -> bool:
    return now > 0 and 1 / _FAR_OFF < value / now < _FAR_OFF


def _price_flip(name: str, value: float, now: float, field: str, *, under: bool) -> Flip:
    trial = _rounded(value / _BEYOND if under else value * _BEYOND)
    direction = "under" if under else "over"
    return Flip.model_validate(
        {"name": name, "value": value, "now": now, "direction": direction, "field": field, "try_value": trial}
    )


def _job_trial(job: DailyHours | Run, ratio: float, planned: float, *, more: bool) -> tuple[str | None, float | None]:
    """Return the job's field and its value for `ratio` times the work and a little beyond; None if there is none."""
    ratio = min(ratio * _BEYOND, 1 / planned) if more else ratio / _BEYOND
    if isinstance(job, Run):
        name = "amount" if job.repeats_per_year is None else "repeats_per_year"
        return f"cost.job.{name}", _rounded(getattr(job, name) * ratio)
    hours = job.hours_per_day * ratio
    return (None, None) if hours > HOURS_PER_DAY * _BEYOND else (_DAY, min(_rounded(hours), float(HOURS_PER_DAY)))


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


MOST_GROUPS: Final = 2_000


class Mix(Spec):
    """Cost of owning a number of groups and renting the rest over the horizon, in present value."""

    owned: int
    own_usd: float
    rent_usd: float
    owned_work_fraction: float
    """Fraction of the work that the owned groups do."""

    @property
    def usd(self) -> float:
        """Return the total cost in USD."""
        return self.own_usd + self.rent_usd


class Hybrid(Spec):
    """Mixes for every number of owned groups up to the peak, and the cheapest mix."""

    best: Mix
    mixes: tuple[Mix, ...]
    always_on: bool = False
    """Whether rented groups run day and night, or only when needed."""


def best_mix(
    loads: Sequence[float],
    own_fixed_usd: Sequence[float],
    own_usd_per_hour: float,
    rent_usd_per_hour: float,
    hours: float,
    *,
    work_hours: float | None = None,
    rent_fixed_usd: float = 0.0,
    always_on: bool = False,
) -> Hybrid:
    """Return the mix for each number of owned groups, and the cheapest mix with the fewest owned groups.

    `loads` are the groups needed in equal parts of `hours`; `own_fixed_usd` are the fixed costs of owning 0, 1, 2 …
    groups; `work_hours` are the group-hours of work, by default the sum of the loads. `rent_fixed_usd` is paid with any
    rented group. Rented groups follow the load, or run all the time if `always_on`.

    **Formula** k groups: F(k) + s · W · Σ min(load, k) / Σ load + p · Σ max(⌈load⌉ − k, 0) · t, or p · (n − k) · hours
    if always on. One more is worth owning while it is busy for a fraction of the time above its fixed cost over
    (p − s) · hours.

    Raises:
        SpecError: If there is no load, or one is negative or very large.
    """
    check_loads(loads)
    part, total, most = hours / len(loads), sum(loads), len(own_fixed_usd) - 1
    work = total * part if work_hours is None else work_hours
    mixes = []
    for owned, fixed in enumerate(own_fixed_usd):
        done = sum(min(load, owned) for load in loads) / total if total else 1.0
        rented = sum(max((most if always_on else ceil_with_tolerance(load)) - owned, 0) for load in loads) * part
        mixes.append(
            Mix(
                owned=owned,
                own_usd=fixed + own_usd_per_hour * done * work,
                rent_usd=rent_usd_per_hour * rented + (rent_fixed_usd if rented else 0.0),
                owned_work_fraction=done,
            )
        )
    return Hybrid(best=min(mixes, key=lambda mix: mix.usd), mixes=tuple(mixes), always_on=always_on)


def find_best_mix(case: RentOrBuyCase, loads: Sequence[float], demand: Demand) -> Hybrid:
    """Return the best mix for `case`, whose service has the `loads` and the `demand`, with hourly rent.

    Its ends are the costs of renting all and of owning all in the decision.

    Raises:
        SpecError: As `best_mix` does.
    """
    check_loads(loads)
    flows, years = case.cash_flows(), case.horizon_years
    own_annuity, rent_annuity = (annuity(case.discount_rate, years, growth) for growth in (0.0, flows.drift))
    return best_mix(
        loads,
        [_fixed_usd(case, groups) for groups in range(demand.groups + 1)],
        flows.own_usd_per_hour * own_annuity / years,
        case.central[RENT_PRICE] * rent_annuity / years,
        HOURS_PER_YEAR * years,
        work_hours=flows.busy_hours_per_year * years,
        rent_fixed_usd=case.rent_usd_per_year * rent_annuity,
        always_on=demand.always_on,
    )


def check_loads(loads: Sequence[float]) -> None:
    """Reject loads that no mix can be computed for.

    Raises:
        SpecError: If there is none, or one is negative or very large.
    """
    if not loads or min(loads) < 0 or max(loads) > MOST_GROUPS:
        raise SpecError("loads", f"must be from 0 to {MOST_GROUPS:,} groups, and at least one")


def _fixed_usd(case: RentOrBuyCase, groups: int) -> float:
    if groups == 0:
        return 0.0
    return replace(case, setup=case.setup.evolve(groups=groups)).cash_flows().own_usd(case.horizon_years, 0.0)
