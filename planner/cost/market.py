"""Everything that is known of what one kind of card costs: bought, by the price's kind, and rented, by the way to rent.

Kinds are never mixed: what a maker asks, what a shop asks, what is paid second hand, and what an hour costs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from statistics import median
from typing import Final, Literal

from planner.cost.owning.purchase import Purchase
from planner.cost.renting.offer import Offer
from planner.cost.terms import HISTORY_DAYS, RENT_MODES, RentMode

BoughtKind = Literal["list", "partner", "street", "used"]
BOUGHT_KINDS: Final[tuple[BoughtKind, ...]] = ("list", "partner", "street", "used")
"""list: the maker's, at launch or later; partner: of who builds a board with the maker's chip; street: a shop's; used:
second hand."""
LIST_PRICE_SELLER: Final = "list price"
"""Who asks a list price: one seller, whose prices of several days are a history."""


@dataclass(frozen=True, slots=True)
class PricePoint:
    """One price of one card. `price_usd` is for the card, or for the card and hour where it is rented.

    `seller` is empty where the source does not name who sells; `cards` are how many are had only together.
    """

    price_usd: float
    price_date: str | None
    age_days: int | None
    source: str
    seller: str = ""
    region: str | None = None
    cards: float = 1
    remarks: tuple[str, ...] = ()
    record_id: str | None = None

    @property
    def day(self) -> str:
        """Return the date as text that sorts; undated comes first."""
        return self.price_date or ""


# A table of all cards sorts and shows these figures again and again: together they take tens of milliseconds.
@dataclass(frozen=True)
class PriceSpread:
    """The prices of one kind, the latest first and of one day the cheapest first."""

    points: tuple[PricePoint, ...]

    @cached_property
    def current(self) -> tuple[PricePoint, ...]:
        """Return the prices that a range, a median and a count are of.

        Those of the last twelve months; without any the older ones; and only where none has a date those without.
        """
        dated = tuple(point for point in self.points if point.age_days is not None)
        return tuple(point for point in dated if not _is_history(point)) or dated or self.points

    @cached_property
    def older(self) -> tuple[PricePoint, ...]:
        """Return the prices that are left out because there are some of the last twelve months."""
        return tuple(point for point in self.points if point.age_days is not None and point not in self.current)

    @cached_property
    def undated(self) -> tuple[PricePoint, ...]:
        """Return the prices that are left out because they have no date and others have one."""
        return tuple(point for point in self.points if point.age_days is None and point not in self.current)

    @cached_property
    def low(self) -> PricePoint:
        """Return the cheapest of the current prices."""
        return min(self.current, key=lambda point: point.price_usd)

    @cached_property
    def high(self) -> PricePoint:
        """Return the dearest of the current prices."""
        return max(self.current, key=lambda point: point.price_usd)

    @cached_property
    def latest(self) -> PricePoint:
        """Return the newest price; of several of one day the cheapest."""
        return self.points[0]

    @cached_property
    def median_usd(self) -> float:
        """Return the median of the current prices."""
        return median(point.price_usd for point in self.current)

    @cached_property
    def histories(self) -> tuple[tuple[PricePoint, ...], ...]:
        """Return what one seller asked in one region over time, the lowest price of each day, the oldest first.

        Only what is alike is compared: the same seller, region and number of cards had together, dated twice; of
        several numbers of cards the lowest. The history that reaches the latest day comes first.
        """
        found: dict[tuple[str, str | None], tuple[PricePoint, ...]] = {}
        for series in self._series():
            if len(series) > 1:
                found.setdefault((series[0].seller, series[0].region), series)
        return tuple(sorted(found.values(), key=lambda series: series[-1].day, reverse=True))

    def _series(self) -> Iterator[tuple[PricePoint, ...]]:
        """Yield the lowest price of each day of what is alike, fewer cards first."""
        alike: dict[tuple[float, str, str], dict[str, PricePoint]] = {}
        for point in sorted(self.points, key=lambda point: (point.day, point.price_usd)):
            if point.seller and point.day:
                key = (point.cards, point.seller, point.region or "")
                alike.setdefault(key, {}).setdefault(point.day, point)
        for _, days in sorted(alike.items()):
            yield tuple(days.values())

    @cached_property
    def by_seller(self) -> tuple[PricePoint, ...]:
        """Return the cheapest current price of each seller and region, the cheapest first."""
        found: dict[tuple[str, str | None], PricePoint] = {}
        for point in sorted(self.current, key=lambda point: point.price_usd):
            found.setdefault((point.seller, point.region), point)
        return tuple(found.values())


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
    sound = [offer for offer in theirs if not offer.doubts]
    doubtful = [_purchase_point(each, today) for each in own if _purchase_doubts(each)]
    doubtful += [point for offer in theirs if offer.doubts for _, point in _offer_points(offer, today)]
    cards = [each for each in own if each.includes == "card" and not _purchase_doubts(each)]
    servers = [each for each in own if each.includes != "card" and not _purchase_doubts(each)]
    return CardPrices(
        bought=_by_kind(cards, launch, today),
        rented=_by_mode(sound, today),
        doubtful=tuple(doubtful),
        servers=tuple(_purchase_point(each, today) for each in servers),
    )


def rents_of_machine(
    gpu_id: str, count: int, system_id: str, offers: Iterable[Offer], today: date
) -> dict[RentMode, PriceSpread]:
    """Return what `count` cards in one machine, or the system itself, are rented for: prices of all of them together.

    **Formula** price of a card × count. Offers whose price may not stand beside others are left out.
    """
    theirs = [
        offer
        for offer in offers
        if (offer.system == system_id or (offer.gpu == gpu_id and offer.gpu_count == count)) and not offer.doubts
    ]
    return {
        mode: PriceSpread(tuple(replace(point, price_usd=point.price_usd * count) for point in spread.points))
        for mode, spread in _by_mode(theirs, today).items()
    }


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
        points = [_purchase_point(each, today) for each in cards if _purchase_kind(each) == kind]
        if kind == "list" and launch is not None:
            points.append(launch)
        if points:
            found[kind] = PriceSpread(_latest_first(points))
    return found


def _purchase_doubts(purchase: Purchase) -> tuple[str, ...]:
    """Return why a price may not stand beside the others."""
    doubts = (
        (f"one of {', '.join(purchase.candidates)}: the source does not say which", bool(purchase.candidates)),
        (purchase.doubt or "", purchase.doubt is not None),
    )
    return tuple(text for text, holds in doubts if holds)


def _purchase_kind(purchase: Purchase) -> BoughtKind:
    return "list" if purchase.price_kind == "msrp" else purchase.price_kind


def _by_mode(offers: list[Offer], today: date) -> dict[RentMode, PriceSpread]:
    points = [pair for offer in offers for pair in _offer_points(offer, today)]
    found = {mode: [point for each, point in points if each == mode] for mode in RENT_MODES}
    return {mode: PriceSpread(_latest_first(of_mode)) for mode, of_mode in found.items() if of_mode}


def _latest_first(points: list[PricePoint]) -> tuple[PricePoint, ...]:
    cheapest_first = sorted(points, key=lambda point: point.price_usd)
    return tuple(sorted(cheapest_first, key=lambda point: point.day, reverse=True))


def _purchase_point(purchase: Purchase, today: date) -> PricePoint:
    count = purchase.gpu_count or 1
    whole = (f"{purchase.price_usd:,.0f} USD for {count} ({purchase.item})",) if count > 1 else ()
    return PricePoint(
        price_usd=purchase.price_usd / count,
        price_date=purchase.price_date,
        age_days=age_days(purchase.price_date, today),
        source=purchase.source,
        seller=LIST_PRICE_SELLER if _purchase_kind(purchase) == "list" else "",
        remarks=(*_purchase_doubts(purchase), *whole, *purchase.notes),
        record_id=purchase.id,
    )


def _offer_points(offer: Offer, today: date) -> list[tuple[RentMode, PricePoint]]:
    remarks = list(offer.doubts)
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
                cards=offer.gpu_count,
                remarks=(*remarks, *offer.notes),
                record_id=offer.id,
            ),
        )
        for mode, usd in offer.prices
    ]
