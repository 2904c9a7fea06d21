"""Everything that is known of what one kind of card costs: bought, by the price's kind, and rented, by the way to rent.

Kinds are never mixed: what a maker asks, what a shop asks, what is paid second hand, and what an hour costs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from statistics import median
from typing import Final, Literal

from planner.cost.modes import RENT_MODES, RentMode
from planner.cost.offer import HISTORY_DAYS, Offer
from planner.cost.purchase import Purchase

BoughtKind = Literal["list", "street", "used"]
BOUGHT_KINDS: Final[tuple[BoughtKind, ...]] = ("list", "street", "used")
"""list: the maker's, at launch or later; street: a shop's; used: second hand."""


@dataclass(frozen=True, slots=True)
class PricePoint:
    """One price of one card. `price_usd` is for the card, or for the card and hour where it is rented."""

    price_usd: float
    price_date: str | None
    age_days: int | None
    source: str
    seller: str = ""
    region: str | None = None
    remarks: tuple[str, ...] = ()
    record_id: str | None = None

    @property
    def day(self) -> str:
        """Return the date as text that sorts; undated comes first."""
        return self.price_date or ""


@dataclass(frozen=True)
class PriceSpread:
    """The prices of one kind, the latest first and of one day the cheapest first."""

    points: tuple[PricePoint, ...]

    @cached_property
    def low(self) -> PricePoint:
        """Return the cheapest price that is no history, or of all where everything is."""
        return min(self._current, key=lambda point: point.price_usd)

    @cached_property
    def high(self) -> PricePoint:
        """Return the dearest price that is no history, or of all where everything is."""
        return max(self._current, key=lambda point: point.price_usd)

    @cached_property
    def latest(self) -> PricePoint:
        """Return the newest price; of several of one day the cheapest."""
        return self.points[0]

    @cached_property
    def median_usd(self) -> float:
        """Return the median of what is no history, or of all where everything is."""
        return median(point.price_usd for point in self._current)

    @cached_property
    def history(self) -> tuple[PricePoint, ...]:
        """Return the lowest price of each day, the oldest first; empty unless there are two days."""
        days: dict[str, PricePoint] = {}
        for point in sorted(self.points, key=lambda point: (point.day, point.price_usd)):
            days.setdefault(point.day, point)
        dated = tuple(point for day, point in days.items() if day)
        return dated if len(dated) > 1 else ()

    @cached_property
    def by_seller(self) -> tuple[PricePoint, ...]:
        """Return the cheapest price of each seller and region that is no history, the cheapest first."""
        found: dict[tuple[str, str | None], PricePoint] = {}
        for point in sorted(self._current, key=lambda point: point.price_usd):
            found.setdefault((point.seller, point.region), point)
        return tuple(found.values())

    @cached_property
    def _current(self) -> tuple[PricePoint, ...]:
        return tuple(point for point in self.points if not _is_history(point)) or self.points


@dataclass(frozen=True, slots=True)
class CardPrices:
    """What is known of one card's prices; a kind without a price is missing.

    `doubtful` are prices that may be of another card, are not all that is paid, or are seldom to be had; `servers` are
    whole machines with this card, by card. Neither is in a spread.
    """

    bought: dict[BoughtKind, PriceSpread]
    rented: dict[RentMode, PriceSpread]
    doubtful: tuple[PricePoint, ...]
    servers: tuple[PricePoint, ...]

    @property
    def known(self) -> bool:
        """Return whether there is any price."""
        return bool(self.bought or self.rented)


def card_prices(
    gpu_id: str,
    launch: PricePoint | None,
    purchases: Iterable[Purchase],
    offers: Iterable[Offer],
    today: date,
) -> CardPrices:
    """Return what `purchases` and `offers` say of the card, with its price at launch among the list prices."""
    own = [purchase for purchase in purchases if gpu_id in (purchase.gpu, *purchase.candidates)]
    theirs = [offer for offer in offers if gpu_id in offer.cards]
    sound = [offer for offer in theirs if not rent_doubts(offer)]
    doubtful = [_bought_point(each, today) for each in own if each.candidates]
    doubtful += [point for offer in theirs if rent_doubts(offer) for _, point in _rented_points(offer, today)]
    cards = [each for each in own if each.gpu == gpu_id and each.includes == "card"]
    servers = [each for each in own if each.gpu == gpu_id and each.includes != "card"]
    return CardPrices(
        bought=_by_kind(cards, launch, today),
        rented=_by_mode(sound, today),
        doubtful=tuple(doubtful),
        servers=tuple(_bought_point(each, today) for each in servers),
    )


def rented_together(
    gpu_id: str, count: int, system_id: str, offers: Iterable[Offer], today: date
) -> dict[RentMode, PriceSpread]:
    """Return what `count` cards in one machine, or the system itself, are rented for: prices of all of them together.

    **Formula** price of a card × count. Offers whose price may not stand beside others are left out.
    """
    theirs = [
        offer
        for offer in offers
        if (offer.system == system_id or (offer.gpu == gpu_id and offer.gpu_count == count)) and not rent_doubts(offer)
    ]
    return {
        mode: PriceSpread(tuple(replace(point, price_usd=point.price_usd * count) for point in spread.points))
        for mode, spread in _by_mode(theirs, today).items()
    }


def rent_doubts(offer: Offer) -> tuple[str, ...]:
    """Return why an offer's price may not stand beside the others."""
    doubts = (
        (f"one of {', '.join(offer.candidates)}: the source does not say which", offer.ambiguous),
        ("the lowest price of a marketplace, seldom to be had", offer.price_kind == "from"),
        (offer.incomplete or "", bool(offer.incomplete)),
        ("the currency could not be verified", offer.billed_currency is None),
    )
    return tuple(text for text, holds in doubts if holds)


def age_days(day: str | None, today: date) -> int | None:
    """Return how many days ago `day` was; a month or a year counts from its first day; None without one."""
    if day is None:
        return None
    year, month, first = (*(int(part) for part in day.split("-")), 1, 1)[:3]
    return (today - date(year, month, first)).days


def _is_history(point: PricePoint) -> bool:
    return point.age_days is not None and point.age_days > HISTORY_DAYS


def _by_kind(cards: list[Purchase], launch: PricePoint | None, today: date) -> dict[BoughtKind, PriceSpread]:
    found: dict[BoughtKind, PriceSpread] = {}
    for kind in BOUGHT_KINDS:
        points = [_bought_point(each, today) for each in cards if _bought_kind(each) == kind]
        if kind == "list" and launch is not None:
            points.append(launch)
        if points:
            found[kind] = PriceSpread(_latest_first(points))
    return found


def _bought_kind(purchase: Purchase) -> BoughtKind:
    return "list" if purchase.price_kind == "msrp" else purchase.price_kind


def _by_mode(offers: list[Offer], today: date) -> dict[RentMode, PriceSpread]:
    points = [pair for offer in offers for pair in _rented_points(offer, today)]
    found = {mode: [point for each, point in points if each == mode] for mode in RENT_MODES}
    return {mode: PriceSpread(_latest_first(of_mode)) for mode, of_mode in found.items() if of_mode}


def _latest_first(points: list[PricePoint]) -> tuple[PricePoint, ...]:
    cheapest_first = sorted(points, key=lambda point: point.price_usd)
    return tuple(sorted(cheapest_first, key=lambda point: point.day, reverse=True))


def _bought_point(purchase: Purchase, today: date) -> PricePoint:
    count = purchase.gpu_count or 1
    whole = (f"{purchase.price_usd:,.0f} USD for {count} ({purchase.item})",) if count > 1 else ()
    doubt = (f"one of {', '.join(purchase.candidates)}: the source does not say which",) if purchase.candidates else ()
    return PricePoint(
        price_usd=purchase.price_usd / count,
        price_date=purchase.price_date,
        age_days=age_days(purchase.price_date, today),
        source=purchase.source,
        seller=_KIND_WORDS[_bought_kind(purchase)],
        remarks=(*doubt, *whole, *purchase.notes),
        record_id=purchase.id,
    )


_KIND_WORDS: Final[dict[BoughtKind, str]] = {"list": "list price", "street": "shop", "used": "second hand"}


def _rented_points(offer: Offer, today: date) -> list[tuple[RentMode, PricePoint]]:
    remarks = list(rent_doubts(offer))
    if offer.price_kind == "median":
        remarks.append("the median of a marketplace's offers")
    if offer.gpu_count < 1:
        remarks.append(f"by the share: {offer.gpu_count:g} of a card")
    return [
        (
            mode,
            PricePoint(
                price_usd=usd / offer.gpu_count,
                price_date=offer.price_date,
                age_days=age_days(offer.price_date, today),
                source=offer.source,
                seller=offer.provider,
                region=offer.region,
                remarks=(*remarks, *offer.notes),
                record_id=offer.id,
            ),
        )
        for mode, usd in offer.prices
    ]
