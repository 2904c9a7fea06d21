"""The catalog's price data: offers, purchases, electricity, constants and places, loaded on first use."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from planner.cost.energy import EnergyRecord, Region, merge_region
from planner.cost.figure import Constant, EgressTariff, Figure, egress_tariffs
from planner.cost.owning.costs import Ownership
from planner.cost.owning.purchase import Purchase
from planner.cost.price_feeds.store import PriceStore, offers_in_use
from planner.cost.renting.offer import Offer
from planner.cost.terms import PlaceKind
from planner.errors import SpecError
from planner.records import read_records


@dataclass(frozen=True, eq=False)
class CostCatalog:
    """Price and energy data in a catalog folder, loaded on first use; instances are equal only if identical.

    `prices` is the folder of fetched prices and the user's own offers, which replace bundled ones; `given_offers`
    replace all of them.

    Raises:
        CatalogError: On first use of a part with an invalid record; it names the file, the record and the field.
    """

    folder: Path
    given_offers: tuple[Offer, ...] | None = None
    prices: Path | None = None

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Return all offers in use."""
        if self.given_offers is not None:
            return self.given_offers
        if self.prices is None:
            return self.bundled_offers
        return offers_in_use(self.bundled_offers, PriceStore(self.prices).read())

    @cached_property
    def bundled_offers(self) -> tuple[Offer, ...]:
        """Return the bundled offers."""
        return read_records(self.folder / "offers", Offer)

    @cached_property
    def purchases(self) -> tuple[Purchase, ...]:
        """Return the purchase prices of hardware."""
        return read_records(self.folder / "purchases", Purchase)

    @cached_property
    def energy(self) -> tuple[EnergyRecord, ...]:
        """Return the electricity records from all sources."""
        return read_records(self.folder / "energy", EnergyRecord)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Return the published constants."""
        return read_records(self.folder / "constants", Constant)

    @cached_property
    def ownerships(self) -> tuple[Ownership, ...]:
        """Return the kinds of places for owned GPUs, with their figures."""
        return read_records(self.folder / "ownership", Ownership)

    @property
    def egress(self) -> dict[str, EgressTariff]:
        """Return the egress tariffs by provider."""
        return egress_tariffs(self.constants)

    def offer(self, offer_id: str) -> Offer:
        """Return the offer with the given id.

        Raises:
            SpecError: If there is no such offer.
        """
        found = next((offer for offer in self.offers if offer.id == offer_id), None)
        if found is None:
            reason = f"there is no offer with the id {offer_id!r}"
            raise SpecError("rent.offer", reason, "Prices may have been updated: choose another offer.")
        return found

    def constant(self, constant_id: str) -> Figure:
        """Return the published constant with the given id."""
        return next(constant for constant in self.constants if constant.id == constant_id).figure

    def region(self, code: str) -> Region:
        """Return the electricity prices and carbon intensity of a region.

        Raises:
            SpecError: If the catalog has no data on it.
        """
        return merge_region(self.energy, code, {"EUR": self.constant("fx-eur-to-usd")})

    def ownership(self, place: PlaceKind) -> Ownership:
        """Return the preset ownership figures for a kind of place."""
        return next(ownership for ownership in self.ownerships if ownership.id == place)
