"""Prices of single GPUs, and rental prices of whole systems, from the catalog."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

from planner.cost.card_prices import (
    LIST_PRICE_SELLER,
    BoughtKind,
    CardPrices,
    PricePoint,
    PriceSpread,
    card_prices,
    rents_of_machine,
)
from planner.cost.figure import Figure
from planner.cost.owning.purchase import Purchase, card_price
from planner.cost.renting.offer import Offer
from planner.cost.terms import RentMode, days_since
from planner.hardware.gpu import Gpu
from planner.hardware.query_fields import RENT_FIELD
from planner.hardware.system import System
from planner.plan.catalog import Catalog

_CURRENT_KINDS: Final[tuple[BoughtKind, ...]] = ("street", "used")


def prices_of(gpu: Gpu, catalog: Catalog, today: date) -> CardPrices:
    """Return a GPU's purchase and rental prices by kind, with their age on `today`.

    The price at launch counts as a list price of the day of release.
    """
    cost = catalog.cost
    return card_prices(gpu.id, _launch_price(gpu, today), cost.purchases, cost.offers, today)


def prices_by_card(catalog: Catalog, today: date) -> dict[str, CardPrices]:
    """Return the purchase and rental prices of every GPU, by GPU id."""
    offers, purchases = defaultdict[str, list[Offer]](list), defaultdict[str, list[Purchase]](list)
    for offer in catalog.cost.offers:
        for card in offer.cards:
            offers[card].append(offer)
    for purchase in catalog.cost.purchases:
        for named in {purchase.gpu, *purchase.candidates} - {None}:
            purchases[str(named)].append(purchase)
    return {
        gpu.id: card_prices(gpu.id, _launch_price(gpu, today), purchases[gpu.id], offers[gpu.id], today)
        for gpu in catalog.hardware.gpus
    }


def buying_prices(catalog: Catalog, today: date) -> dict[str, Figure]:
    """Return what one new GPU costs, as cost estimates assume it, by GPU id; GPUs without a price are left out."""
    purchases = defaultdict[str, list[Purchase]](list)
    for purchase in catalog.cost.purchases:
        if purchase.gpu is not None:
            purchases[purchase.gpu].append(purchase)
    found = (
        (gpu.id, card_price(tuple(purchases[gpu.id]), gpu.id, gpu.launch_price_usd, today, gpu.released))
        for gpu in catalog.hardware.gpus
    )
    return {name: price for name, price in found if price is not None}


def rents_of(system: System, catalog: Catalog, today: date) -> dict[RentMode, PriceSpread]:
    """Return the whole-machine rental prices of a system, or of machines with the same accelerators, by rental mode."""
    return _rents_of_system(system, catalog.cost.offers, today)


def rents_by_system(catalog: Catalog, today: date) -> dict[str, dict[RentMode, PriceSpread]]:
    """Return the whole-machine rental prices of every system, by system id and rental mode."""
    named = defaultdict[str, dict[str, Offer]](dict)
    for offer in catalog.cost.offers:
        for name in {offer.gpu, offer.system} - {None}:
            named[str(name)][offer.id] = offer
    return {
        system.id: _rents_of_system(system, {**named[str(system.gpu_id)], **named[system.id]}.values(), today)
        for system in catalog.hardware.systems
    }


def system_price_fields(rents: Mapping[str, Mapping[RentMode, PriceSpread]]) -> dict[str, dict[str, float]]:
    """Return the price field for system queries, by system id: the lowest on-demand price per hour."""
    return {
        system: {RENT_FIELD: known["on-demand"].low.price_usd} if "on-demand" in known else {}
        for system, known in rents.items()
    }


def price_words(
    prices: Mapping[str, CardPrices], buying: Mapping[str, Figure] = MappingProxyType({})
) -> dict[str, dict[str, float]]:
    """Return the price fields for GPU queries, by GPU id.

    Args:
        prices: Prices by kind, for the median purchase prices and the lowest on-demand rent.
        buying: What one GPU costs, for the field `price`; by default, that is the price at launch.
    """
    words: dict[str, dict[str, float]] = {}
    for card, known in prices.items():
        fields: dict[str, float] = {
            kind: known.bought[kind].median_usd for kind in _CURRENT_KINDS if kind in known.bought
        }
        if "on-demand" in known.rented:
            fields["rent"] = known.rented["on-demand"].low.price_usd
        if card in buying:
            fields["price"] = buying[card].value
        words[card] = fields
    return words


def _rents_of_system(system: System, offers: Iterable[Offer], today: date) -> dict[RentMode, PriceSpread]:
    if system.gpu_id is None or system.gpu_count is None:
        return {}
    return rents_of_machine(system.gpu_id, system.gpu_count, system.id, offers, today)


def _launch_price(gpu: Gpu, today: date) -> PricePoint | None:
    if gpu.launch_price_usd is None:
        return None
    return PricePoint(
        price_usd=gpu.launch_price_usd,
        price_date=gpu.released,
        age_days=days_since(gpu.released, today),
        source=gpu.provenance_of("launch_price_usd").source,
        seller=LIST_PRICE_SELLER,
        remarks=("at launch",),
    )
