"""The rental market for one job on one kind of card: all offers, and the offer chosen in each rental mode."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand
from planner.cost.figure import USER_SOURCE
from planner.cost.finance import ceil_with_tolerance
from planner.cost.renting.offer import Offer
from planner.cost.renting.quote import MAX_CARDS_PER_MACHINE, RentFacts, RentQuote, quote
from planner.cost.renting.table import CardDemand, OfferRow, cheapest_row, quote_offers
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
    """Offers of one kind of card for one job; `linked_cards` of each group exchange data, None means all of them."""

    gpu: Gpu
    count: int
    demand: Demand
    terms: RentTerms
    catalog: CostCatalog
    today: date
    linked_cards: int | None = None

    @cached_property
    def facts(self) -> RentFacts:
        """Return the catalog's data on rental costs."""
        return RentFacts.of(self.catalog)

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
            SpecError: If the terms name an offer of another card, or one without a price in this mode.
        """
        mode = self.terms.mode
        named = self._named_offer
        if named is not None and self.terms.usd_per_gpu_hour is None:
            return self._quote(named, mode), ""
        found = self.quote_in(mode)
        if found is not None:
            return found, ""
        comparable = "comparable " if self.rows(mode) else ""
        return None, f"no current {comparable}{_ADJECTIVES[mode]} offer for the {self.gpu.name} is known"

    def quotes(self) -> Iterator[RentQuote]:
        """Yield the chosen quote of each rental mode in which cards are offered."""
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
            offer = self._own_priced(offer, self.terms.usd_per_gpu_hour)
        return None if offer is None or offer.price_usd_per_hour(mode) is None else self._quote(offer, mode)

    @cached_property
    def _named_offer(self) -> Offer | None:
        if self.terms.offer is None:
            return None
        offer = self.catalog.offer(self.terms.offer)
        if self.gpu.id not in offer.cards:
            raise SpecError("rent.offer", f"{offer.id} has {' or '.join(offer.cards)}, not {self.gpu.id}")
        return offer

    def _quote(self, offer: Offer, mode: RentMode) -> RentQuote:
        return quote(offer, mode, self.demand, self.count, self.terms, self.facts, self.linked_cards)

    def _own_priced(self, offer: Offer | None, usd_per_gpu_hour: float) -> Offer:
        """Return `offer`, or one of unknown origin, with as many cards as are used, each at the user's own price."""
        most = MAX_CARDS_PER_MACHINE if offer is None else offer.gpu_count
        cards = self.count / ceil_with_tolerance(self.count / most)
        price_field = f"{self.terms.mode.replace('-', '_')}_price_usd_per_hour"
        priced: dict[str, object] = {price_field: usd_per_gpu_hour * cards, "own": True}
        if offer is None:
            priced |= {"id": "own-price", "provider": "your own offer", "instance": "your own offer"}
        else:
            kept = ("id", "provider", "instance", "region", "billing_increment_seconds", "egress_free")
            priced |= {name: getattr(offer, name) for name in kept}
        return Offer.model_validate({"gpu": self.gpu.id, "gpu_count": cards, "source": USER_SOURCE, **priced})
