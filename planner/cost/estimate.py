"""Cost estimate for one plan: renting, owning, break-even, and the decision with its sensitivities."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from planner.cost.carbon import rented_footprint
from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand, Throughput, demand_of, load_profile, required_groups
from planner.cost.figure import TEN_TO_NINETY
from planner.cost.owning.accounting import break_even_utilization, payback_month
from planner.cost.owning.costs import full_power_watts, place_of
from planner.cost.owning.ownership_cost import accounting_servers, accounting_utilization, own_cost
from planner.cost.rent_or_buy.case import RESALE, TIME, USE, RentOrBuyCase, UnknownFigureError, build_case, rented_at
from planner.cost.rent_or_buy.cash_flows import CashFlows, break_even, hours_to_pay_back, paid_until
from planner.cost.rent_or_buy.decision import MOST_GROUPS, DecisionInputs, Hybrid, find_best_mix, make_decision
from planner.cost.renting.quote import TERM_YEARS, RentQuote
from planner.cost.renting.rent_cost import RentalMarket, rent_cost
from planner.cost.renting.table import OfferRow
from planner.cost.result import CostPoint, CostResult, Machines, RentalMode, RentCost
from planner.cost.terms import CostTerms, Service
from planner.hardware.gpu import Gpu
from planner.units import MONTHS_PER_YEAR, WATTS_PER_KW

_POINTS: Final = 60
_VAT: Final = "the offer's price excludes VAT, and the household electricity price includes it"
_CAPACITY_NOTE: Final = "at full load, the plan's GPUs answer {:,.3g} requests per second, {:,.0f} at a time"
_WAIT_NOTE: Final = "; at the peak of the service, the mean wait is at most {:.2g} s"
_BILLED_MONTHLY: Final = (
    "the commitment is taken to be billed by the month, used or not; no offer states a payment at its start"
)
_LAST_TERM: Final = (
    "the last term ends after {1:g} years, and its rest is counted at the end of the {0:g} compared years"
)
_SHORTEST_WAIT: Final = 0.01
_NO_CARBON: Final = (
    "the offer does not state where its machines are, so the carbon intensity of their electricity is unknown"
)
_LOW: Final[Mapping[str, float]] = {TIME: -TEN_TO_NINETY, USE: -TEN_TO_NINETY}


@dataclass(frozen=True, eq=False)
class CostEstimate:
    """The cost result, and the inputs for tornado charts, Monte Carlo simulations and further questions."""

    result: CostResult
    """Costs of renting and owning, and the decision."""
    case: RentOrBuyCase | None
    """Inputs of the decision, for tornado charts and simulations; None if one side has no price."""
    demand: Demand
    """GPUs and hours that the job needs."""
    rows: tuple[OfferRow, ...]
    """Rows for all offers of the plan's GPU."""


@dataclass(frozen=True, eq=False)
class _EstimateInputs:
    """Inputs of one cost estimate."""

    terms: CostTerms
    throughput: Throughput | None
    market: RentalMarket

    def rent_cost(self, chosen: RentQuote) -> RentCost:
        """Return the cost of the chosen quote, with its derivation."""
        return rent_cost(chosen, self.market.demand, self.terms.rent, self.market.facts, self.throughput)


def estimate_cost(
    terms: CostTerms,
    gpu: Gpu,
    count: int,
    throughput: Throughput | None,
    catalog: CostCatalog,
    today: date,
    linked_cards: int | None = None,
) -> CostEstimate:
    """Estimate the cost of the job on `count` GPUs at the given throughput, rented and owned.

    `linked_cards` exchange data while they work, so that those of several servers need a network; None for all.

    Raises:
        SpecError: If the terms name an offer of another GPU, or the job's hours cannot be computed.
    """
    demand = demand_of(terms.job, throughput)
    market = RentalMarket(gpu, count, demand, terms.rent, catalog, today, linked_cards)
    inputs = _EstimateInputs(terms, throughput, market)
    chosen, reason = market.choose()
    case: RentOrBuyCase | None = None
    try:
        case = build_case(terms, gpu, count, demand, chosen, catalog, today, linked_cards)
        result = _cost_result(inputs, case, chosen, reason)
    except UnknownFigureError as unknown:
        result = _result_without_owning(inputs, chosen, (reason, f"owning: {unknown.reason}. {unknown.hint}"))
    result = result.replaced(machines=_machines(market, result, case), rental_modes=tuple(_rental_modes(market, case)))
    return CostEstimate(result, case, demand, market.rows(terms.rent.mode))


def _result_without_owning(inputs: _EstimateInputs, chosen: RentQuote | None, notes: tuple[str, ...]) -> CostResult:
    rent = None if chosen is None else inputs.rent_cost(chosen)
    texts = tuple(note for note in notes if note)
    return CostResult(rent=rent, own=None, break_even=None, unsupported=None if rent else notes[0], notes=texts)


def hybrid_of_plan(estimate: CostEstimate, terms: CostTerms, throughput: Throughput | None) -> Hybrid | None:
    """Return the best mix of owned GPU groups and rented ones, or None if a mix does not apply.

    It applies to services with an hourly offer and a limited number of groups. Rented machines are always on or scaled
    down as the job says, as in the decision.
    """
    case, rent = estimate.case, estimate.result.rent
    if (
        not isinstance(terms.job, Service)
        or throughput is None
        or case is None
        or rent is None
        or rent.mode in TERM_YEARS
    ):
        return None
    if estimate.demand.groups > MOST_GROUPS:
        return None
    return find_best_mix(case, load_profile(terms.job, required_groups(terms.job, throughput)), estimate.demand)


def _rental_modes(market: RentalMarket, case: RentOrBuyCase | None) -> Iterator[RentalMode]:
    demand = market.demand
    per_year = demand.periods_per_year
    for found in market.quotes():
        rented = None if case is None else rented_at(case, found, demand).cash_flows()
        yield RentalMode(
            mode=found.mode,
            provider=found.offer.provider,
            offer_id=found.offer.id,
            price_date=found.offer.price_date,
            usd=found.usd,
            month_usd=None if per_year is None else found.usd * per_year / MONTHS_PER_YEAR,
            usd_per_gpu_hour=found.usd / (demand.rented_hours * market.count),
            horizon_usd=None if rented is None or case is None else rented.rent_usd(case.horizon_years),
        )


def _machines(market: RentalMarket, result: CostResult, case: RentOrBuyCase | None) -> Machines:
    groups = market.demand.groups if case is None else case.setup.groups
    cards, watts = groups * market.count, market.gpu.drawn_watts
    return Machines(
        groups=groups,
        cards_per_group=market.count,
        cards=cards,
        rented=None if result.rent is None else result.rent.instances,
        owned=None if case is None else case.setup.servers,
        power_watts=None if watts is None else cards * watts,
    )


def _cost_result(inputs: _EstimateInputs, case: RentOrBuyCase, chosen: RentQuote | None, reason: str) -> CostResult:
    flows, terms = case.cash_flows(), inputs.terms
    own = own_cost(
        case, flows, inputs.market.demand, terms, inputs.market.gpu, inputs.throughput, inputs.market.catalog
    )
    if chosen is None:
        return CostResult(rent=None, own=own, break_even=None, notes=(reason,))
    rent = _with_footprint(inputs.rent_cost(chosen), chosen, case, inputs)
    crossing = break_even(flows, case.horizon_years)
    held = inputs.market.demand.rented_hours_per_busy_hour
    crossing = crossing.evolve(
        gpu_hours=None if crossing.gpu_hours is None else crossing.gpu_hours * held,
        **_accounting_figures(case, flows, rent, inputs),
    )
    return CostResult(
        rent=rent,
        own=own,
        break_even=crossing,
        curve=cost_curve(case, held),
        answer=make_decision(
            DecisionInputs(case, flows, crossing, rent, own, terms, inputs.market.demand, inputs.throughput)
        ),
        notes=_rental_notes(inputs, chosen),
    )


def _accounting_figures(
    case: RentOrBuyCase, flows: CashFlows, rent: RentCost, inputs: _EstimateInputs
) -> dict[str, float | int | None]:
    servers, utilization = accounting_servers(case, flows, inputs.terms), accounting_utilization(case, flows)
    hours = hours_to_pay_back(flows.capex_usd, flows.rent_usd_per_hour, flows.own_usd_per_hour)
    held = inputs.market.demand.rented_hours_per_busy_hour
    usd_per_busy_hour = rent.usd_per_gpu_hour * held
    return {
        "simple_gpu_hours": None if hours is None else hours * case.setup.count * held,
        "books_utilization_fraction": break_even_utilization(servers, usd_per_busy_hour),
        "books_payback_months": payback_month(servers, utilization, usd_per_busy_hour),
    }


def _with_footprint(rent: RentCost, chosen: RentQuote, case: RentOrBuyCase, inputs: _EstimateInputs) -> RentCost:
    watts = full_power_watts(case.central, case.setup) / case.setup.groups * case.central["active_power_fraction"]
    carbon = rented_footprint(
        chosen.offer, watts / WATTS_PER_KW * inputs.market.demand.busy_hours, inputs.market.catalog
    )
    notes = (*rent.notes, _NO_CARBON) if carbon is None else rent.notes
    return rent.evolve(carbon=carbon, notes=notes)


def cost_curve(case: RentOrBuyCase, rented_hours_per_busy_hour: float = 1.0) -> tuple[CostPoint, ...]:
    """Return the cumulative cost of renting and owning at 61 points over the horizon, in present value.

    The GPU-hours are those that the job holds its GPUs, `rented_hours_per_busy_hour` for each hour of work.

    The bands are the 10th to 90th percentiles of the hours of use and of the resale value.
    """
    middle = case.cash_flows()
    low = case.cash_flows({**_LOW, RESALE: TEN_TO_NINETY})
    high = case.cash_flows({name: -z for name, z in _LOW.items()} | {RESALE: -TEN_TO_NINETY})
    times = (case.horizon_years * step / _POINTS for step in range(_POINTS + 1))
    gpu_hours_per_year = middle.busy_hours_per_year * case.setup.count * rented_hours_per_busy_hour
    return tuple(
        CostPoint(
            years=years,
            gpu_hours=gpu_hours_per_year * years,
            rent_usd=middle.rent_usd(years),
            own_usd=middle.own_usd(years),
            rent_low_usd=low.rent_usd(years),
            rent_high_usd=high.rent_usd(years),
            own_low_usd=low.own_usd(years),
            own_high_usd=high.own_usd(years),
        )
        for years in times
    )


def _rental_notes(inputs: _EstimateInputs, chosen: RentQuote) -> tuple[str, ...]:
    buy = inputs.terms.buy
    household = inputs.market.catalog.ownership(place_of(buy, inputs.market.gpu)).tariff_kind == "household"
    taxed = household and chosen.offer.exchange_rate is not None and buy.tariff_usd_per_kwh is None
    return (
        *(_VAT,) * taxed,
        *_commitment_notes(chosen, inputs),
        *_cheaper_old_offers(chosen, inputs.market.rows(chosen.mode)),
        *_service_notes(inputs),
    )


def _commitment_notes(chosen: RentQuote, inputs: _EstimateInputs) -> Iterator[str]:
    term, years = TERM_YEARS.get(chosen.mode), inputs.terms.horizon_years
    if term is None:
        return
    yield _BILLED_MONTHLY
    until = paid_until(years, term, years)
    if until > years and inputs.market.demand.periods_per_year is not None:
        yield _LAST_TERM.format(years, until)


def _cheaper_old_offers(chosen: RentQuote, rows: tuple[OfferRow, ...]) -> Iterator[str]:
    """Yield a note on the cheapest offer that does not lead because its price is not current."""
    cheaper = [row for row in rows if row.comparable and not row.current and row.usd < chosen.usd]
    if cheaper and not chosen.offer.own:
        row = min(cheaper, key=lambda each: each.usd)
        age = "has no date" if row.age_days is None else f"is {row.age_days} days old"
        yield f"{row.offer.provider} is cheaper at {row.usd_per_gpu_hour:,.2f} USD per GPU-hour, but that price {age}"


def _service_notes(inputs: _EstimateInputs) -> Iterator[str]:
    """Yield a note on the capacity and waiting time of a service, if known."""
    job, throughput, wait = inputs.terms.job, inputs.throughput, inputs.market.demand.peak_wait_seconds
    if isinstance(job, Service) and throughput is not None and throughput.concurrent_requests is not None:
        per_second = throughput.requests_per_second(job.prompt_tokens, job.output_tokens) or 0.0
        wait_note = "" if wait is None else _WAIT_NOTE.format(max(wait, _SHORTEST_WAIT))
        yield _CAPACITY_NOTE.format(per_second, throughput.concurrent_requests) + wait_note
