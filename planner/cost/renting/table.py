"""Table of all offers for a job, with their cost, and the choice of the cheapest offer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from planner.cost.demand import Demand
from planner.cost.renting.offer import Offer
from planner.cost.renting.quote import RentalFacts, RentQuote, needs_extra_machines, quote
from planner.cost.terms import CURRENT_DAYS, RentMode, RentTerms

HISTORY: Final = "older than twelve months"
UNDATED: Final = "the price has no date"
WHOLE_SYSTEM: Final = "only sold as part of a whole system"
TOO_FEW_CARDS: Final = "has fewer GPUs per machine than the plan; larger machines are not stated"


@dataclass(frozen=True, slots=True)
class CardDemand:
    """Number of GPUs of one kind on which the plan fits, and the job's demand at the throughput of these GPUs."""

    gpu: str
    count: int
    demand: Demand
    linked_cards: int | None = None
    """GPUs of a group that exchange data while they work; None for all."""


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer in one rental mode, for one job or one month of a service."""

    offer: Offer
    mode: RentMode
    gpu: str
    instances: int
    hours: float
    low_hours: float
    high_hours: float
    usd: float
    low_usd: float
    high_usd: float
    usd_per_gpu_hour: float
    price_date: str | None
    age_days: int | None
    comparable: bool
    """Whether the offer may be ranked as the cheapest."""
    current: bool
    """Whether the price has a date and is at most three months old; such prices precede all others."""
    remarks: tuple[str, ...]
    """Remarks on the price, including the reasons why it is not comparable."""


def quote_offers(
    offers: Iterable[Offer],
    candidates: Mapping[str, CardDemand],
    terms: RentTerms,
    facts: RentalFacts,
    today: date,
    modes: tuple[RentMode, ...] | None = None,
) -> tuple[OfferRow, ...]:
    """Return a row for each offer of a GPU in `candidates` and each rental mode, the cheapest first.

    Offers of other regions and providers than those in the terms are left out, and so are old offers unless the terms
    include them. Rows without a current price follow those with one, and rows that are not comparable come last.
    `modes` defaults to the mode of the terms.
    """
    rows = [
        row
        for offer in offers
        if _matches_terms(offer, terms, today)
        for mode in (modes or (terms.mode,))
        for row in _offer_rows(offer, mode, candidates, terms, facts, today)
    ]
    return tuple(sorted(rows, key=_rank))


def cheapest_row(rows: Iterable[OfferRow]) -> OfferRow | None:
    """Return the cheapest comparable row with a current price, else the cheapest comparable row, or None."""
    return min((row for row in rows if row.comparable), key=_rank, default=None)


def _rank(row: OfferRow) -> tuple[bool, bool, float]:
    return not row.comparable, not row.current, row.usd


def _matches_terms(offer: Offer, terms: RentTerms, today: date) -> bool:
    if terms.providers and offer.provider not in terms.providers:
        return False
    if terms.regions and offer.region not in terms.regions:
        return False
    return terms.include_history or not offer.is_history(today)


def _offer_rows(
    offer: Offer,
    mode: RentMode,
    candidates: Mapping[str, CardDemand],
    terms: RentTerms,
    facts: RentalFacts,
    today: date,
) -> Iterator[OfferRow]:
    """Yield the offer's row; for an ambiguous offer, its range covers the costs of all candidate GPUs."""
    fitting = [candidates[card] for card in offer.cards if card in candidates]
    if not fitting or offer.price_usd_per_hour(mode) is None or offer.gpu_count < 1:
        return
    quotes = [quote(offer, mode, each.demand, each.count, terms, facts, each.linked_cards) for each in fitting]
    dearest = max(range(len(quotes)), key=lambda index: quotes[index].usd)
    chosen, candidate = quotes[dearest], fitting[dearest]
    age, prevented = offer.age_days(today), tuple(_disqualifications(offer, candidate, terms))
    yield OfferRow(
        offer=offer,
        mode=mode,
        gpu=candidate.gpu,
        instances=chosen.machines,
        hours=chosen.hours,
        low_hours=min(each.low_hours for each in quotes),
        high_hours=max(each.high_hours for each in quotes),
        usd=chosen.usd,
        low_usd=min(each.low_usd for each in quotes),
        high_usd=max(each.high_usd for each in quotes),
        usd_per_gpu_hour=chosen.usd / (candidate.demand.rented_hours * candidate.count),
        price_date=offer.price_date,
        age_days=age,
        comparable=not prevented,
        current=age is not None and age <= CURRENT_DAYS,
        remarks=(*prevented, *_offer_remarks(offer, quotes, today)),
    )


def _disqualifications(offer: Offer, candidate: CardDemand, terms: RentTerms) -> Iterator[str]:
    yield from offer.doubts
    if offer.system:
        yield WHOLE_SYSTEM
    linked = candidate.count if terms.one_machine else candidate.linked_cards or candidate.count
    if terms.one_machine is not False and needs_extra_machines(offer, linked):
        yield TOO_FEW_CARDS


def _offer_remarks(offer: Offer, quotes: list[RentQuote], today: date) -> Iterator[str]:
    if offer.price_kind == "median":
        size = "" if offer.sample_size is None else f"{offer.sample_size:,} "
        yield f"the median of {size}marketplace offers, which changes daily"
    if offer.price_date is None:
        yield UNDATED
    if offer.is_history(today):
        yield HISTORY
    yield from quotes[0].notes
