"""The rental market for a job on one kind of GPU, and the cost of renting with its derivation."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand, Throughput, usd_per_million_tokens
from planner.cost.figure import USER_SOURCE, Figure
from planner.cost.finance import ceil_with_tolerance
from planner.cost.renting.offer import PRICE_FIELDS, Offer
from planner.cost.renting.quote import (
    MAX_CARDS_PER_MACHINE,
    TERM_YEARS,
    RentalFacts,
    RentQuote,
    commitment_share,
    needs_extra_machines,
    quote,
)
from planner.cost.renting.table import CardDemand, OfferRow, cheapest_row, quote_offers
from planner.cost.result import Commitment, MoneySymbol, MoneyTerm, RentCost, figure_symbol
from planner.cost.terms import RENT_MODES, RentMode, RentTerms
from planner.errors import SpecError
from planner.hardware.gpu import Gpu

_ADJECTIVES: Final[dict[RentMode, str]] = {
    "on-demand": "on-demand",
    "spot": "spot",
    "reserved-1y": "one-year",
    "reserved-3y": "three-year",
}


@dataclass(frozen=True, eq=False)
class RentalMarket:
    """Offers of one kind of GPU for one job; `linked_cards` of each group exchange data, None means all of them."""

    gpu: Gpu
    count: int
    demand: Demand
    terms: RentTerms
    catalog: CostCatalog
    today: date
    linked_cards: int | None = None

    @cached_property
    def facts(self) -> RentalFacts:
        """Return the catalog's data on rental costs."""
        return RentalFacts.of(self.catalog)

    @cached_property
    def _rows(self) -> tuple[OfferRow, ...]:
        candidates = {self.gpu.id: CardDemand(self.gpu.id, self.count, self.demand, self.linked_cards)}
        return quote_offers(self.catalog.offers, candidates, self.terms, self.facts, self.today, RENT_MODES)

    def rows(self, mode: RentMode) -> tuple[OfferRow, ...]:
        """Return a row for each offer that has a price in the rental mode `mode`, the cheapest first."""
        return tuple(row for row in self._rows if row.mode == mode)

    def choose(self) -> tuple[RentQuote | None, str]:
        """Return the quote in the rental mode of the terms and an empty text, or None and the reason for its absence.

        Raises:
            SpecError: If the terms name an offer of another GPU, or one without a price in this mode.
        """
        mode = self.terms.mode
        named = self._named_offer
        if named is not None and self.terms.usd_per_gpu_hour is None:
            return self._quote(named, mode), ""
        found = self.quote_in(mode)
        if found is not None:
            return found, ""
        rows = self.rows(mode)
        if not rows:
            return None, f"no current {_ADJECTIVES[mode]} offer for the {self.gpu.name} is known"
        return None, (
            f"no {_ADJECTIVES[mode]} offer for the {self.gpu.name} is comparable "
            f"(the cheapest: {rows[0].remarks[0]}); choose one to rent it"
        )

    def quotes(self) -> Iterator[RentQuote]:
        """Yield the chosen quote of each rental mode in which GPUs are offered."""
        for mode in RENT_MODES:
            found = self.quote_in(mode)
            if found is not None:
                yield found

    def quote_in(self, mode: RentMode) -> RentQuote | None:
        """Return the quote of the offer that the terms name, or else of the cheapest comparable offer, or None.

        In the mode of the terms, the user's own price replaces the price of the offer.
        """
        offer = self._named_offer
        if offer is None:
            row = cheapest_row(self.rows(mode))
            offer = None if row is None else row.offer
        if self.terms.usd_per_gpu_hour is not None and mode == self.terms.mode:
            offer = self._with_user_price(offer, self.terms.usd_per_gpu_hour)
        return None if offer is None or offer.price_usd_per_hour(mode) is None else self._quote(offer, mode)

    @property
    def _named_offer(self) -> Offer | None:
        if self.terms.offer is None:
            return None
        offer = self.catalog.offer(self.terms.offer)
        if self.gpu.id not in offer.cards:
            raise SpecError("rent.offer", f"{offer.id} has {' or '.join(offer.cards)}, not {self.gpu.id}")
        return offer

    def _quote(self, offer: Offer, mode: RentMode) -> RentQuote:
        return quote(offer, mode, self.demand, self.count, self.terms, self.facts, self.linked_cards)

    def _with_user_price(self, offer: Offer | None, usd_per_gpu_hour: float) -> Offer:
        """Return `offer`, or one of unknown origin, with as many GPUs as are used, each at the user's own price."""
        most = MAX_CARDS_PER_MACHINE if offer is None else offer.gpu_count
        cards = self.count / ceil_with_tolerance(self.count / most)
        priced: dict[str, object] = {PRICE_FIELDS[self.terms.mode]: usd_per_gpu_hour * cards, "own": True}
        if offer is None:
            priced |= {"id": "own-price", "provider": "your own offer", "instance": "your own offer"}
        else:
            kept = ("id", "provider", "instance", "region", "billing_increment_seconds", "egress_free")
            priced |= {name: getattr(offer, name) for name in kept}
        return Offer.model_validate({"gpu": self.gpu.id, "gpu_count": cards, "source": USER_SOURCE, **priced})


_JOB = "the job"


def rent_cost(
    quote: RentQuote, demand: Demand, terms: RentTerms, facts: RentalFacts, throughput: Throughput | None = None
) -> RentCost:
    """Return the cost of `quote` with its derivation; the terms add up to the quoted price."""
    offer = quote.offer
    parts = [_machines_term(quote, demand), _storage_term(quote, demand), _egress_term(quote, demand, terms, facts)]
    dates = [date for date in (offer.price_date, offer.exchange_rate and offer.exchange_rate.date) if date]
    return RentCost(
        offer_id=offer.id,
        provider=offer.provider,
        region=offer.region,
        billed_currency=offer.billed_currency,
        mode=quote.mode,
        instances=quote.machines,
        gpu_count=quote.machines * offer.gpu_count,
        hours=quote.hours,
        low_hours=quote.low_hours,
        high_hours=quote.high_hours,
        billed_hours=quote.billed_hours,
        billing_increment_seconds=quote.increment_seconds,
        states_increment=offer.billing_increment_seconds is not None,
        usd=quote.usd,
        low_usd=quote.low_usd,
        high_usd=quote.high_usd,
        usd_per_gpu_hour=quote.usd / (demand.rented_hours * quote.count),
        usd_per_million_tokens=usd_per_million_tokens(quote.usd / demand.busy_hours, throughput),
        checkpoint_interval_hours=quote.overhead.interval_hours if quote.overhead else None,
        commitments=tuple(
            Commitment(mode=mode, above_fraction=share)
            for mode in TERM_YEARS
            if (share := commitment_share(offer, mode)) is not None
        ),
        terms=tuple(part for part in parts if part is not None),
        oldest_price_date=min(dates, default=None),
        notes=(*quote.notes, *_price_remarks(quote)),
    )


def _machines_term(quote: RentQuote, demand: Demand) -> MoneyTerm:
    offer = quote.offer
    cards = f"{offer.gpu_count:g} GPU{'' if offer.gpu_count == 1 else 's'}"
    hours = "billed hours" if demand.groups == 1 else f"billed hours of all {demand.groups:,} groups"
    symbols = [
        MoneySymbol("m", quote.machines_per_group, "machines per group", f"{_JOB}, {cards} each"),
        MoneySymbol("h", quote.billed_hours, hours, _hours_source(quote)),
        MoneySymbol("p", quote.price_usd_per_hour, "USD per hour and machine", offer.source, offer.price_date),
    ]
    if quote.overhead and quote.mean_hours:
        symbols += [
            MoneySymbol("w", quote.overhead.total_fraction, "overhead of interruptions, included in h", _JOB),
            figure_symbol("M", quote.mean_hours, "hours between two interruptions of a machine"),
        ]
    if offer.exchange_rate:
        rate = offer.exchange_rate
        symbols.append(MoneySymbol("x", rate.usd_per_unit, f"USD for one {rate.currency}", rate.source, rate.date))
    return MoneyTerm(
        name="machines",
        usd=quote.machine_usd,
        formula="min(m · h · p, on-demand cost)" if quote.capped else "m · h · p",
        symbols=tuple(symbols),
        source=offer.source,
        certainty="yours" if offer.own else "quoted",
        date=offer.price_date,
        low_usd=quote.low_usd - quote.storage_usd - quote.egress_usd,
        high_usd=quote.high_usd - quote.storage_usd - quote.egress_usd,
    )


def _hours_source(quote: RentQuote) -> str:
    if quote.mode in TERM_YEARS:
        return "the whole term of the commitment, used or not"
    stated = "the offer" if quote.offer.billing_increment_seconds else "assumed; not stated by the offer"
    return f"{_JOB}, billed in steps of {quote.increment_seconds:,} s ({stated})"


def _storage_term(quote: RentQuote, demand: Demand) -> MoneyTerm | None:
    if demand.stored_gb == 0:
        return None
    price = quote.storage
    amount = demand.stored_gb * demand.stored_months
    return MoneyTerm(
        name="storage",
        usd=quote.storage_usd,
        formula="g · t · s",
        symbols=(
            MoneySymbol("g", demand.stored_gb, "stored GB", _JOB),
            MoneySymbol("t", demand.stored_months, "months", _JOB),
            figure_symbol("s", price, "USD per GB and month"),
        ),
        source=price.source,
        certainty=price.certainty,
        date=price.date,
        low_usd=amount * price.lowest,
        high_usd=amount * price.highest,
    )


def _egress_term(quote: RentQuote, demand: Demand, terms: RentTerms, facts: RentalFacts) -> MoneyTerm | None:
    if demand.egress_gb == 0:
        return None
    figure, formula = _egress_price(quote, terms, facts)
    return MoneyTerm(
        name="egress",
        usd=quote.egress_usd,
        formula=formula,
        symbols=(MoneySymbol("g", demand.egress_gb, "GB of egress", _JOB),),
        source=figure.source,
        certainty=figure.certainty,
        date=figure.date,
        low_usd=quote.egress_usd,
        high_usd=quote.egress_usd,
    )


def _egress_price(quote: RentQuote, terms: RentTerms, facts: RentalFacts) -> tuple[Figure, str]:
    offer = quote.offer
    if offer.egress_free:
        return Figure(value=0.0, source=offer.source, date=offer.price_date), "g · 0"
    if terms.egress_usd_per_gb is not None:
        return Figure.own(terms.egress_usd_per_gb), f"g · {terms.egress_usd_per_gb:g}"
    tariff = facts.egress.get(offer.provider)
    if tariff is None:
        return Figure(value=0.0, source="unknown and not counted", certainty="assumed"), "not counted"
    tiers = "; ".join(
        f"{tier.usd_per_gb:g}" + (f" to {tier.up_to_gb:,.0f} GB" if tier.up_to_gb else " above")
        for tier in tariff.tiers
    )
    return Figure(value=0.0, source=tariff.source, date=tariff.date), f"{tariff.free_gb:,.0f} GB free, then {tiers}"


def _price_remarks(quote: RentQuote) -> tuple[str, ...]:
    offer, spot = quote.offer, quote.mode == "spot"
    remarks = (
        ("the price has no date", offer.price_date is None),
        ("the currency could not be verified", offer.billed_currency is None),
        ("the region is not stated", offer.region is None),
        (f"the GPU is ambiguous in the source: {', '.join(offer.candidates)}", offer.ambiguous),
        (offer.incomplete or "", bool(offer.incomplete)),
        (_machines_remark(quote), quote.linked_cards > offer.gpu_count),
        (_unlinked_remark(quote), quote.linked_cards <= offer.gpu_count < quote.count),
        ("with interruptions, spot would cost more than on-demand, so the on-demand cost is used", quote.capped),
        (
            "work lost to interruptions is unknown for this job and not counted",
            spot and quote.overhead is not None and quote.overhead.total_fraction == 0,
        ),
        (
            f"how often {offer.provider} interrupts this GPU is assumed from the rates of AWS",
            spot and quote.mean_hours is not None and quote.mean_hours.certainty == "assumed",
        ),
    )
    return tuple(text for text, holds in remarks if holds)


def _machines_remark(quote: RentQuote) -> str:
    if needs_extra_machines(quote.offer, quote.linked_cards):
        return f"{quote.machines} machines; their interconnect is not stated"
    return f"{quote.machines} machines; the network between them is taken as part of their price"


def _unlinked_remark(quote: RentQuote) -> str:
    alone = "each GPU holds" if quote.linked_cards == 1 else f"each {quote.linked_cards} GPUs hold"
    return (
        f"{quote.machines} machines are enough: {alone} a whole copy of the model and exchange no data with the others"
    )
