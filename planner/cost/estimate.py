"""Cost estimate for one plan: renting, owning, break-even, and the decision with its sensitivities."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from planner.cost.carbon import rented_footprint
from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand, Throughput, demand_of, load_profile, required_groups
from planner.cost.figure import TEN_TO_NINETY
from planner.cost.job import HOURS_PER_YEAR, Service
from planner.cost.owning.accounting import break_even_utilization, payback_month
from planner.cost.owning.costs import full_power_watts
from planner.cost.owning.ownership_cost import book_servers, book_utilization, explain_ownership
from planner.cost.rent_or_buy.case import RENT_PRICE, RESALE, TIME, USE, RentOrBuyCase
from planner.cost.rent_or_buy.case_builder import UnknownFigureError, build_case
from planner.cost.rent_or_buy.cash_flows import CashFlows, break_even, hours_to_pay_back
from planner.cost.rent_or_buy.hybrid import MOST_GROUPS, Hybrid, find_best_mix
from planner.cost.renting.offer import Offer
from planner.cost.renting.quote import TERM_YEARS, RentFacts, RentQuote, quote
from planner.cost.renting.rent_cost import rent_cost
from planner.cost.renting.table import CardDemand, OfferRow, cheapest_row, quote_offers
from planner.cost.result import BreakEven, CostPoint, CostResult, Decision, OwnCost, RentCost
from planner.cost.terms import CostTerms, RentMode
from planner.errors import SpecError
from planner.hardware.gpu import Gpu

_CARD_PRICE = "card_price_usd"


def make_decision(
    case: RentOrBuyCase, streams: CashFlows, crossing: BreakEven, rent: RentCost, own: OwnCost
) -> Decision:
    """Return the rent-or-buy decision over the horizon, in present value, with the figures behind it."""
    years, shape = case.horizon_years, case.shape
    rented, owned = streams.rent_usd(years), streams.own_usd(years)
    flip_rent = flip_value(case, RENT_PRICE)
    dates = [day for day in (rent.oldest_price_date, own.oldest_price_date) if day]
    return Decision(
        decision="buy" if owned < rented else "rent",
        provider=rent.provider,
        region=rent.region,
        offer_id=rent.offer_id,
        gpu=own.gpu,
        count=shape.cards,
        planned_gpu_hours=streams.busy_hours_per_year * years * shape.count,
        planned_utilization_fraction=streams.busy_hours_per_year / (HOURS_PER_YEAR * shape.groups),
        break_even_gpu_hours=crossing.gpu_hours,
        break_even_reason=crossing.reason,
        rent_usd=rented,
        own_usd=owned,
        saves_usd=abs(rented - owned),
        flips_at_utilization_fraction=crossing.utilization_fraction,
        flips_at_card_price_usd=flip_value(case, _CARD_PRICE),
        flips_at_rent_usd_per_gpu_hour=None if flip_rent is None else flip_rent / shape.count,
        horizon_years=years,
        oldest_price_date=min(dates, default=None),
        undated=tuple(_undated_figures(rent, own)),
    )


def flip_value(case: RentOrBuyCase, name: str) -> float | None:
    """Return the value of the figure `name` at which renting and owning cost the same, or None if it is not positive.

    **Formula** the saving is linear in a price: x* = x₀ − saving(x₀) · (x₁ − x₀) / (saving(x₁) − saving(x₀))
    """
    start = case.central[name]
    before, after = (_saving_usd(case, name, start + step) for step in (0.0, 1.0))
    if before == after:
        return None
    flip = start - before / (after - before)
    return flip if flip > 0 else None


def _saving_usd(case: RentOrBuyCase, name: str, value: float) -> float:
    return case.with_values({**case.central, name: value}).saving_usd(case.horizon_years)


def _undated_figures(rent: RentCost, own: OwnCost) -> list[str]:
    """Return the names of the cost terms without a date, the largest amount first."""
    terms = (*rent.terms, *own.upfront, *own.monthly)
    named = [term for term in terms if term.date is None and term.certainty != "yours"]
    return [term.name for term in sorted(named, key=lambda term: -term.usd)]


_POINTS: Final = 60
_WATTS: Final = 1_000
_VAT: Final = "the offer's price excludes VAT, and the household electricity price includes it"
_CAPACITY_NOTE: Final = "one group of cards answers {:,.3g} requests per second, {:,.0f} concurrently"
_WAIT_NOTE: Final = "; at peak load, a request waits {:.2g} s on average, or less"
_SHORTEST_WAIT: Final = 0.01
_NO_CARBON: Final = "the location of the machines is unknown, and so is the carbon intensity of their electricity"
_LOW: Final[Mapping[str, float]] = {TIME: -TEN_TO_NINETY, USE: -TEN_TO_NINETY}


@dataclass(frozen=True, eq=False)
class CostEstimate:
    """The cost result, and the inputs for tornado charts, Monte Carlo simulations and further questions."""

    result: CostResult
    case: RentOrBuyCase | None
    demand: Demand
    rows: tuple[OfferRow, ...]
    """Rows for all offers of the plan's card."""


@dataclass(frozen=True, eq=False)
class _EstimateInputs:
    """Inputs of one cost estimate."""

    terms: CostTerms
    gpu: Gpu
    count: int
    throughput: Throughput | None
    demand: Demand
    catalog: CostCatalog
    facts: RentFacts

    def quote(self, offer: Offer, mode: RentMode) -> RentQuote:
        """Return the quote for the job from one offer and rental mode."""
        return quote(offer, mode, self.demand, self.count, self.terms.rent, self.facts)

    def rent_cost(self, chosen: RentQuote) -> RentCost:
        """Return the cost of the chosen quote, with its derivation."""
        return rent_cost(chosen, self.demand, self.terms.rent, self.facts, self.throughput)


def estimate_cost(
    terms: CostTerms, gpu: Gpu, count: int, throughput: Throughput | None, catalog: CostCatalog, today: date
) -> CostEstimate:
    """Estimate the cost of the job on `count` cards at the given throughput, rented and owned.

    Raises:
        SpecError: If the terms name an offer of another card, or the job's hours cannot be computed.
    """
    demand, facts = demand_of(terms.job, throughput), RentFacts.of(catalog)
    inputs = _EstimateInputs(terms, gpu, count, throughput, demand, catalog, facts)
    candidates = {gpu.id: CardDemand(gpu.id, count, demand)}
    rows = quote_offers(catalog.offers, candidates, terms.rent, facts, today)
    chosen, reason = _choose_quote(inputs, rows)
    try:
        case = build_case(terms, gpu, count, demand, chosen, catalog, today)
    except UnknownFigureError as unknown:
        rent = inputs.rent_cost(chosen) if chosen else None
        notes = tuple(note for note in (reason, f"owning: {unknown.reason}. {unknown.hint}") if note)
        result = CostResult(rent=rent, own=None, break_even=None, unsupported=None if rent else reason, notes=notes)
        return CostEstimate(result, None, demand, rows)
    return CostEstimate(_cost_result(inputs, case, chosen, reason), case, demand, rows)


def hybrid_of_plan(estimate: CostEstimate, terms: CostTerms, throughput: Throughput | None) -> Hybrid | None:
    """Return the best mix of owned card groups and groups rented for peaks, or None if a mix does not apply.

    It applies to services with an hourly offer and a limited number of groups.
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


def _choose_quote(inputs: _EstimateInputs, rows: tuple[OfferRow, ...]) -> tuple[RentQuote | None, str]:
    """Return the quote of the named or cheapest comparable offer, or None and the reason why there is none."""
    gpu, terms = inputs.gpu, inputs.terms.rent
    if terms.offer is not None:
        offer = inputs.catalog.offer(terms.offer)
        if gpu.id not in offer.cards:
            raise SpecError("rent.offer", f"{offer.id} has {' or '.join(offer.cards)}, not {gpu.id}")
        return inputs.quote(offer, terms.mode), ""
    row = cheapest_row(rows)
    if row is not None:
        return inputs.quote(row.offer, row.mode), ""
    kind = "comparable offer" if rows else "offer"
    return None, f"no current {kind} for the {gpu.name} ({terms.mode}) is known"


def _cost_result(inputs: _EstimateInputs, case: RentOrBuyCase, chosen: RentQuote | None, reason: str) -> CostResult:
    streams, terms = case.streams(), inputs.terms
    own = explain_ownership(case, streams, inputs.demand, terms, inputs.gpu.id, inputs.throughput, inputs.catalog)
    if chosen is None:
        return CostResult(rent=None, own=own, break_even=None, notes=(reason,))
    rent = _with_footprint(inputs.rent_cost(chosen), chosen, case, inputs)
    crossing = break_even(streams, case.horizon_years).evolve(**_accounting_figures(case, streams, rent, terms))
    return CostResult(
        rent=rent,
        own=own,
        break_even=crossing,
        curve=cost_curve(case),
        answer=make_decision(case, streams, crossing, rent, own),
        notes=_rental_notes(inputs, chosen),
    )


def _accounting_figures(
    case: RentOrBuyCase, streams: CashFlows, rent: RentCost, terms: CostTerms
) -> dict[str, float | int | None]:
    servers, utilization = book_servers(case, streams, terms), book_utilization(case, streams)
    hours = hours_to_pay_back(streams.capex_usd, streams.rent_usd_per_hour, streams.own_usd_per_hour)
    return {
        "simple_gpu_hours": None if hours is None else hours * case.shape.count,
        "books_utilization_fraction": break_even_utilization(servers, rent.usd_per_gpu_hour),
        "books_payback_months": payback_month(servers, utilization, rent.usd_per_gpu_hour),
    }


def _with_footprint(rent: RentCost, chosen: RentQuote, case: RentOrBuyCase, inputs: _EstimateInputs) -> RentCost:
    watts = full_power_watts(case.central, case.shape) / case.shape.groups * case.central["active_power_fraction"]
    carbon = rented_footprint(chosen.offer, watts / _WATTS * inputs.demand.busy_hours, inputs.catalog)
    notes = (*rent.notes, _NO_CARBON) if carbon is None else rent.notes
    return rent.evolve(carbon=carbon, notes=notes)


def cost_curve(case: RentOrBuyCase) -> tuple[CostPoint, ...]:
    """Return the cumulative cost of renting and owning at 61 points over the horizon, in present value.

    The bands are the 10th to 90th percentiles of the hours of use and of the resale value.
    """
    middle = case.streams()
    low = case.streams({**_LOW, RESALE: TEN_TO_NINETY})
    high = case.streams({name: -z for name, z in _LOW.items()} | {RESALE: -TEN_TO_NINETY})
    times = (case.horizon_years * step / _POINTS for step in range(_POINTS + 1))
    return tuple(_cost_point(case, years, low, middle, high) for years in times)


def _cost_point(case: RentOrBuyCase, years: float, low: CashFlows, middle: CashFlows, high: CashFlows) -> CostPoint:
    return CostPoint(
        years=years,
        gpu_hours=middle.busy_hours_per_year * years * case.shape.count,
        rent_usd=middle.rent_usd(years),
        own_usd=middle.own_usd(years),
        rent_low_usd=low.rent_usd(years),
        rent_high_usd=high.rent_usd(years),
        own_low_usd=low.own_usd(years),
        own_high_usd=high.own_usd(years),
    )


def _rental_notes(inputs: _EstimateInputs, chosen: RentQuote) -> tuple[str, ...]:
    buy = inputs.terms.buy
    household = inputs.catalog.ownership(buy.place).tariff_kind == "household"
    taxed = household and chosen.offer.exchange_rate is not None and buy.tariff_usd_per_kwh is None
    return (*(_VAT,) * taxed, *_service_notes(inputs))


def _service_notes(inputs: _EstimateInputs) -> Iterator[str]:
    """Yield a note on the capacity and waiting time of a service, if known."""
    job, throughput, wait = inputs.terms.job, inputs.throughput, inputs.demand.peak_wait_seconds
    if isinstance(job, Service) and throughput is not None and throughput.concurrent_requests is not None:
        per_second = throughput.requests_per_second(job.prompt_tokens, job.output_tokens) or 0.0
        wait_note = "" if wait is None else _WAIT_NOTE.format(max(wait, _SHORTEST_WAIT))
        yield _CAPACITY_NOTE.format(per_second, throughput.concurrent_requests) + wait_note
