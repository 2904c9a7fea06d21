"""The whole answer about money for one plan: rent, own, where they meet, and what would change the decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from planner.cost.carbon import rented_footprint
from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand, Throughput, demand_of, load_profile, required_groups
from planner.cost.figure import TEN_TO_NINETY
from planner.cost.job import HOURS_PER_YEAR, Service
from planner.cost.owning.accounting import break_even_utilization, payback_month
from planner.cost.owning.costs import Values, full_power_watts
from planner.cost.owning.ownership_cost import book_servers, book_utilization, explain_ownership
from planner.cost.rent_or_buy.case import RENT_PRICE, RESALE, TIME, USE, Case
from planner.cost.rent_or_buy.case_builder import UnknownFigureError, build_case
from planner.cost.rent_or_buy.cash_flows import CashFlows, break_even, hours_to_pay_back
from planner.cost.rent_or_buy.hybrid import MOST_GROUPS, Hybrid, find_best_mix
from planner.cost.renting.quote import TERM_YEARS, RentFacts, RentQuote, quote
from planner.cost.renting.rent_cost import rent_cost
from planner.cost.renting.table import CardDemand, OfferRow, cheapest, quote_offers
from planner.cost.result import Answer, BreakEven, CostResult, CurvePoint, OwnCost, RentCost
from planner.cost.terms import CostTerms
from planner.errors import SpecError
from planner.hardware.gpu import Gpu

_CARD_PRICE = "card_price_usd"


def make_decision(case: Case, streams: CashFlows, found: BreakEven, rent: RentCost, own: OwnCost) -> Answer:
    """Return the decision over the horizon, in today's money, with what it rests on."""
    years, shape = case.horizon_years, case.shape
    rented, owned = streams.rent_usd(years), streams.own_usd(years)
    flip_rent = flip_value(case, RENT_PRICE)
    dates = [day for day in (rent.oldest_price_date, own.oldest_price_date) if day]
    return Answer(
        decision="buy" if owned < rented else "rent",
        provider=rent.provider,
        region=rent.region,
        offer_id=rent.offer_id,
        gpu=own.gpu,
        count=shape.cards,
        planned_gpu_hours=streams.busy_hours_per_year * years * shape.count,
        planned_utilization_fraction=streams.busy_hours_per_year / (HOURS_PER_YEAR * shape.groups),
        break_even_gpu_hours=found.gpu_hours,
        break_even_reason=found.reason,
        rent_usd=rented,
        own_usd=owned,
        saves_usd=abs(rented - owned),
        flips_at_utilization_fraction=found.utilization_fraction,
        flips_at_card_price_usd=flip_value(case, _CARD_PRICE),
        flips_at_rent_usd_per_gpu_hour=None if flip_rent is None else flip_rent / shape.count,
        horizon_years=years,
        oldest_price_date=min(dates, default=None),
        undated=tuple(_undated(rent, own)),
    )


def flip_value(case: Case, name: str) -> float | None:
    """Return the value of one figure at which both cost the same, the others as they are; None where none above zero.

    **Formula** the saving is a straight line in a price: x* = x₀ − saving(x₀) · (x₁ − x₀) / (saving(x₁) − saving(x₀))
    """
    start = case.central[name]
    before, after = (_saving(case, name, start + step) for step in (0.0, 1.0))
    if before == after:
        return None
    found = start - before / (after - before)
    return found if found > 0 else None


def _saving(case: Case, name: str, value: float) -> float:
    return case.with_values({**case.central, name: value}).saving_usd(case.horizon_years)


def _undated(rent: RentCost, own: OwnCost) -> list[str]:
    """Return which figures have no date, in the order of their weight."""
    terms = (*rent.terms, *own.upfront, *own.monthly)
    named = [term for term in terms if term.date is None and term.certainty != "yours"]
    return [term.name for term in sorted(named, key=lambda term: -term.usd)]


_POINTS: Final = 60
_WATTS: Final = 1_000
_VAT: Final = "the offer is priced without VAT, and household electricity with it"
_CAPACITY_NOTE: Final = "one group of cards answers {:,.3g} requests a second, {:,.0f} at once"
_WAIT_NOTE: Final = "; at the busiest moment a request waits for its turn {:.2g} s on average, or less"
_SHORTEST_WAIT: Final = 0.01
_NO_CARBON: Final = "where the machines stand is not known, and so neither is the carbon of their electricity"
_LOW: Final[Mapping[str, float]] = {TIME: -TEN_TO_NINETY, USE: -TEN_TO_NINETY}


@dataclass(frozen=True, eq=False)
class CostEstimate:
    """The answer, with the case behind it: tornado, Monte Carlo and other questions start from that."""

    result: CostResult
    case: Case | None
    demand: Demand
    rows: tuple[OfferRow, ...]
    """Every offer of the plan's card for the job."""


def estimate_cost(
    terms: CostTerms, gpu: Gpu, count: int, throughput: Throughput | None, catalog: CostCatalog, today: date
) -> CostEstimate:
    """Return what the job of `terms` costs on `count` cards that work at `throughput`, rented and owned.

    Raises:
        SpecError: If the terms name an offer of another card, or the job's hours cannot be told.
    """
    demand = demand_of(terms.job, throughput)
    facts = RentFacts.of(catalog)
    candidates = {gpu.id: CardDemand(gpu.id, count, demand)}
    rows = quote_offers(catalog.offers, candidates, terms.rent, facts, today)
    chosen, reason = _chosen(terms, gpu, count, demand, rows, catalog, facts)
    try:
        case = build_case(terms, gpu, count, demand, chosen, catalog, today)
    except UnknownFigureError as unknown:
        rent = rent_cost(chosen, demand, terms.rent, facts, throughput) if chosen else None
        notes = tuple(note for note in (reason, f"owning: {unknown.reason}. {unknown.hint}") if note)
        result = CostResult(rent=rent, own=None, break_even=None, unsupported=None if rent else reason, notes=notes)
        return CostEstimate(result, None, demand, rows)
    return CostEstimate(
        _compare(case, chosen, reason, demand, terms, gpu, catalog, facts, throughput), case, demand, rows
    )


def hybrid_of_plan(estimate: CostEstimate, terms: CostTerms, throughput: Throughput | None) -> Hybrid | None:
    """Return how many groups to own and what to rent for the peaks, or None where that is no question.

    It is one for services that have an offer to rent by the hour, and need no more groups than can be looked through.
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
    loads = load_profile(terms.job, required_groups(terms.job, throughput))
    if max(loads) > MOST_GROUPS:
        return None
    return find_best_mix(case, loads, case.central[RENT_PRICE])


def _chosen(
    terms: CostTerms,
    gpu: Gpu,
    count: int,
    demand: Demand,
    rows: tuple[OfferRow, ...],
    catalog: CostCatalog,
    facts: RentFacts,
) -> tuple[RentQuote | None, str]:
    """Return the quote of the named offer, or of the cheapest that can be compared; else why there is none."""
    if terms.rent.offer is not None:
        offer = catalog.offer(terms.rent.offer)
        if gpu.id not in offer.cards:
            raise SpecError("rent.offer", f"{offer.id} is of {' or '.join(offer.cards)}, not of {gpu.id}")
        return quote(offer, terms.rent.mode, demand, count, terms.rent, facts), ""
    row = cheapest(rows)
    if row is not None:
        return quote(row.offer, row.mode, demand, count, terms.rent, facts), ""
    kind = "offer that can be compared" if rows else "offer"
    return None, f"no current {kind} of the {gpu.name} is known for {terms.rent.mode}"


def _compare(
    case: Case,
    chosen: RentQuote | None,
    reason: str,
    demand: Demand,
    terms: CostTerms,
    gpu: Gpu,
    catalog: CostCatalog,
    facts: RentFacts,
    throughput: Throughput | None,
) -> CostResult:
    streams = case.streams()
    own = explain_ownership(case, streams, demand, terms, gpu.id, throughput, catalog)
    if chosen is None:
        return CostResult(rent=None, own=own, break_even=None, notes=(reason,))
    rent = _with_carbon(rent_cost(chosen, demand, terms.rent, facts, throughput), chosen, case, demand, catalog)
    found = break_even(streams, case.horizon_years).evolve(**_accounting_figures(case, streams, rent, terms))
    return CostResult(
        rent=rent,
        own=own,
        break_even=found,
        curve=cost_curve(case),
        answer=make_decision(case, streams, found, rent, own),
        notes=_notes(chosen, demand, terms, throughput, catalog),
    )


def _accounting_figures(
    case: Case, streams: CashFlows, rent: RentCost, terms: CostTerms
) -> dict[str, float | int | None]:
    servers, used = book_servers(case, streams, terms), book_utilization(case, streams)
    hours = hours_to_pay_back(streams.capex_usd, streams.rent_usd_per_hour, streams.own_usd_per_hour)
    return {
        "simple_gpu_hours": None if hours is None else hours * case.shape.count,
        "books_utilization_fraction": break_even_utilization(servers, rent.usd_per_gpu_hour),
        "books_payback_months": payback_month(servers, used, rent.usd_per_gpu_hour),
    }


def _with_carbon(rent: RentCost, chosen: RentQuote, case: Case, demand: Demand, catalog: CostCatalog) -> RentCost:
    values: Values = case.central
    watts = full_power_watts(values, case.shape) / case.shape.groups * values["active_power_fraction"]
    carbon = rented_footprint(chosen.offer, watts / _WATTS * demand.busy_hours, catalog)
    notes = (*rent.notes, _NO_CARBON) if carbon is None else rent.notes
    return rent.evolve(carbon=carbon, notes=notes)


def cost_curve(case: Case) -> tuple[CurvePoint, ...]:
    """Return what renting and owning have cost by each of sixty moments, in today's money.

    The bands go from the 10th to the 90th percentile of the hours that are used, and of what the cards sell for.
    """
    middle = case.streams()
    low = case.streams({**_LOW, RESALE: TEN_TO_NINETY})
    high = case.streams({name: -z for name, z in _LOW.items()} | {RESALE: -TEN_TO_NINETY})
    times = (case.horizon_years * step / _POINTS for step in range(_POINTS + 1))
    return tuple(_point(case, years, low, middle, high) for years in times)


def _point(case: Case, years: float, low: CashFlows, middle: CashFlows, high: CashFlows) -> CurvePoint:
    return CurvePoint(
        years=years,
        gpu_hours=middle.busy_hours_per_year * years * case.shape.count,
        rent_usd=middle.rent_usd(years),
        own_usd=middle.own_usd(years),
        rent_low_usd=low.rent_usd(years),
        rent_high_usd=high.rent_usd(years),
        own_low_usd=low.own_usd(years),
        own_high_usd=high.own_usd(years),
    )


def _notes(
    chosen: RentQuote, demand: Demand, terms: CostTerms, throughput: Throughput | None, catalog: CostCatalog
) -> tuple[str, ...]:
    household = catalog.ownership(terms.buy.place).tariff_kind == "household"
    foreign = chosen.offer.exchange_rate is not None
    taxed = household and foreign and terms.buy.tariff_usd_per_kwh is None
    return ((_VAT,) if taxed else ()) + _service_notes(demand, terms, throughput)


def _service_notes(demand: Demand, terms: CostTerms, throughput: Throughput | None) -> tuple[str, ...]:
    """Return how a service is answered: how many requests, and how long they wait, as far as that is known."""
    job = terms.job
    if not isinstance(job, Service) or throughput is None or throughput.concurrent_requests is None:
        return ()
    answered = throughput.requests_per_second(job.prompt_tokens, job.output_tokens) or 0.0
    waits = demand.peak_wait_seconds
    told = "" if waits is None else _WAIT_NOTE.format(max(waits, _SHORTEST_WAIT))
    return (_CAPACITY_NOTE.format(answered, throughput.concurrent_requests) + told,)
