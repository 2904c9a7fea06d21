"""What the bundled catalog knows about money: offers, purchases, electricity, constants and places; read when asked."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from planner.cost.constants import Constant, EgressTariff, egress_tariffs
from planner.cost.energy import EnergyRecord, Region, region
from planner.cost.figure import Figure
from planner.cost.owning.costs import Ownership
from planner.cost.owning.purchase import Purchase
from planner.cost.refresh.store import PriceStore, offers_in_use
from planner.cost.renting.offer import Offer
from planner.cost.terms import PlaceKind
from planner.errors import SpecError
from planner.records import read_records


@dataclass(frozen=True, eq=False)
class CostCatalog:
    """Prices and energy of a catalog folder; each part is read on first use. Two are equal only if they are the same.

    `prices` is the folder of fetched prices and the person's own offers, which stand in place of bundled ones;
    `given_offers` stand in place of all of them.

    Raises:
        CatalogError: On first use of a part, if a record of it does not validate; it names the file, the record and
            the field.
    """

    folder: Path
    given_offers: tuple[Offer, ...] | None = None
    prices: Path | None = None

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Return every offer that is in use."""
        if self.given_offers is not None:
            return self.given_offers
        if self.prices is None:
            return self.bundled_offers
        return offers_in_use(self.bundled_offers, PriceStore(self.prices).read())

    @cached_property
    def bundled_offers(self) -> tuple[Offer, ...]:
        """Return the offers that come with the program."""
        return read_records(self.folder / "offers", Offer)

    @cached_property
    def purchases(self) -> tuple[Purchase, ...]:
        """Return what hardware was sold for."""
        return read_records(self.folder / "purchases", Purchase)

    @cached_property
    def energy(self) -> tuple[EnergyRecord, ...]:
        """Return what every source says about electricity."""
        return read_records(self.folder / "energy", EnergyRecord)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Return the published constants."""
        return read_records(self.folder / "constants", Constant)

    @cached_property
    def ownerships(self) -> tuple[Ownership, ...]:
        """Return the places where cards may stand, with their figures."""
        return read_records(self.folder / "ownership", Ownership)

    @cached_property
    def egress(self) -> dict[str, EgressTariff]:
        """Return what providers take for data that leaves them."""
        return egress_tariffs(self.constants)

    @cached_property
    def _offers_by_id(self) -> dict[str, Offer]:
        return {offer.id: offer for offer in self.offers}

    @cached_property
    def _constants_by_id(self) -> dict[str, Constant]:
        return {constant.id: constant for constant in self.constants}

    @cached_property
    def _regions(self) -> dict[str, Region]:
        return {}

    def offer(self, offer_id: str) -> Offer:
        """Return the offer with exactly this id.

        Raises:
            SpecError: If there is none.
        """
        try:
            return self._offers_by_id[offer_id]
        except KeyError:
            reason = f"there is no offer with the id {offer_id!r}"
            raise SpecError("rent.offer", reason, "Prices may have been refreshed: choose another.") from None

    def constant(self, constant_id: str) -> Figure:
        """Return the published constant with exactly this id."""
        return self._constants_by_id[constant_id].figure

    def region(self, code: str) -> Region:
        """Return what is known of a region's electricity.

        Raises:
            SpecError: If nothing is.
        """
        if code not in self._regions:
            self._regions[code] = region(self.energy, code, {"EUR": self.constant("fx-eur-to-usd")})
        return self._regions[code]

    def ownership(self, place: PlaceKind) -> Ownership:
        """Return the figures of a kind of place."""
        return next(ownership for ownership in self.ownerships if ownership.id == place)
