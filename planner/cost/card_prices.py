"""Known prices of one GPU model: purchase prices by kind, rental prices by rental mode.

Kinds are never mixed: list prices, shop prices, second-hand prices and hourly rents.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from statistics import median
from typing import Final, Literal

from planner.cost.owning.purchase import Purchase
from planner.cost.renting.offer import AMBIGUOUS, Offer
from planner.cost.terms import HISTORY_DAYS, RENT_MODES, RentMode, days_since

BoughtKind = Literal["list", "partner", "street", "used"]
BOUGHT_KINDS: Final[tuple[BoughtKind, ...]] = ("list", "partner", "street", "used")
"""list: the maker's price; partner: board partners' prices; street: shop prices; used: second-hand prices."""
LIST_PRICE_SELLER: Final = "list price"
"""The seller of list prices, whose prices of several days form a history."""


@dataclass(frozen=True, slots=True)
class PricePoint:
    """One price of one GPU: `price_usd` per GPU, or per GPU and hour if rented.

    `seller` is empty if the source does not name it; `cards` is the number of GPUs that are only sold together.
    """

    price_usd: float
    price_date: str | None
    age_days: int | None
    source: str
    seller: str = ""
    region: str | None = None
    cards: float = 1
    remarks: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        """Return the date as sortable text; undated prices come first."""
        return self.price_date or ""

    @property
    def outdated(self) -> bool:
        """Return whether the price is history: older than twelve months."""
        return self.age_days is not None and self.age_days > HISTORY_DAYS


# Cached is what tables of all GPUs sort by repeatedly: together it takes tens of milliseconds.
@dataclass(frozen=True)
class PriceSpread:
    """The prices of one kind, the latest first, and the cheapest first within a day."""

    points: tuple[PricePoint, ...]

    @cached_property
    def current(self) -> tuple[PricePoint, ...]:
        """Return the current prices, on which ranges, medians and counts are based.

        These are the prices of the last twelve months; without any, the older prices; and only if no price has a date,
        the undated prices.
        """
        dated = tuple(point for point in self.points if point.age_days is not None)
        return tuple(point for point in dated if not point.outdated) or dated or self.points

    @property
    def outdated(self) -> bool:
        """Return whether there is history only: no price of the last twelve months and none without a date."""
        return self.current[0].outdated

    @property
    def older(self) -> tuple[PricePoint, ...]:
        """Return the old prices that are excluded in favor of prices from the last twelve months."""
        return tuple(point for point in self.points if point.outdated and not self.outdated)

    @property
    def undated(self) -> tuple[PricePoint, ...]:
        """Return the undated prices, which are excluded if others have a date."""
        dated = self.current[0].age_days is not None
        return tuple(point for point in self.points if point.age_days is None and dated)

    @cached_property
    def low(self) -> PricePoint:
        """Return the lowest current price."""
        return min(self.current, key=lambda point: point.price_usd)

    @property
    def high(self) -> PricePoint:
        """Return the highest current price."""
        return max(self.current, key=lambda point: point.price_usd)

    @property
    def latest(self) -> PricePoint:
        """Return the newest price; of several prices on that day, the lowest."""
        return self.points[0]

    @cached_property
    def median_usd(self) -> float:
        """Return the median of the current prices."""
        return median(point.price_usd for point in self.current)

    @property
    def histories(self) -> tuple[tuple[PricePoint, ...], ...]:
        """Return the price history of each seller and region: the lowest price of each day, the oldest first.

        A history has at least two dates of the same seller, region and number of GPUs sold together; of several
        numbers of GPUs, the smallest. The history with the latest date comes first.
        """
        histories: dict[tuple[str, str | None], tuple[PricePoint, ...]] = {}
        for series in self._daily_lowest_prices():
            if len(series) > 1:
                histories.setdefault((series[0].seller, series[0].region), series)
        return tuple(sorted(histories.values(), key=lambda series: series[-1].day, reverse=True))

    def _daily_lowest_prices(self) -> Iterator[tuple[PricePoint, ...]]:
        """Yield the lowest price of each day for each seller, region and number of GPUs, fewer GPUs first."""
        alike: dict[tuple[float, str, str], dict[str, PricePoint]] = {}
        for point in sorted(self.points, key=lambda point: (point.day, point.price_usd)):
            if point.seller and point.day:
                key = (point.cards, point.seller, point.region or "")
                alike.setdefault(key, {}).setdefault(point.day, point)
        for _, days in sorted(alike.items()):
            yield tuple(days.values())

    @property
    def by_seller(self) -> tuple[PricePoint, ...]:
        """Return the lowest current price of each seller and region, the cheapest first."""
        lowest: dict[tuple[str, str | None], PricePoint] = {}
        for point in sorted(self.current, key=lambda point: point.price_usd):
            lowest.setdefault((point.seller, point.region), point)
        return tuple(lowest.values())


@dataclass(frozen=True, slots=True)
class CardPrices:
    """Known prices of one GPU; kinds without a price are missing.

    `doubtful` prices may be of another GPU, incomplete or rarely available; `servers` are prices of whole machines,
    per GPU. Neither is part of a spread.
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
    """Return the prices of the GPU in `purchases` and `offers`, with its launch price among the list prices."""
    own = [purchase for purchase in purchases if gpu_id in (purchase.gpu, *purchase.candidates)]
    theirs = [offer for offer in offers if gpu_id in offer.cards]
    sound = [offer for offer in theirs if not offer.doubts]
    doubtful = [_purchase_point(each, today) for each in own if _purchase_doubts(each)]
    doubtful += [point for offer in theirs if offer.doubts for _, point in _offer_points(offer, today)]
    cards = [each for each in own if each.includes == "card" and not _purchase_doubts(each)]
    servers = [each for each in own if each.includes != "card" and not _purchase_doubts(each)]
    return CardPrices(
        bought=_spreads_by_kind(cards, launch, today),
        rented=_spreads_by_mode(sound, today),
        doubtful=tuple(doubtful),
        servers=tuple(_purchase_point(each, today) for each in servers),
    )


def rents_of_machine(
    gpu_id: str, count: int, system_id: str, offers: Iterable[Offer], today: date
) -> dict[RentMode, PriceSpread]:
    """Return the rental prices of `count` GPUs in one machine, or of the system itself, for all GPUs together.

    **Formula** price of a GPU × count. Offers that are not comparable are left out.
    """
    theirs = [
        offer
        for offer in offers
        if (offer.system == system_id or (offer.gpu == gpu_id and offer.gpu_count == count)) and not offer.doubts
    ]
    return {
        mode: PriceSpread(tuple(replace(point, price_usd=point.price_usd * count) for point in spread.points))
        for mode, spread in _spreads_by_mode(theirs, today).items()
    }


def _spreads_by_kind(cards: list[Purchase], launch: PricePoint | None, today: date) -> dict[BoughtKind, PriceSpread]:
    spreads: dict[BoughtKind, PriceSpread] = {}
    for kind in BOUGHT_KINDS:
        points = [_purchase_point(each, today) for each in cards if _purchase_kind(each) == kind]
        if kind == "list" and launch is not None:
            points.append(launch)
        if points:
            spreads[kind] = PriceSpread(_latest_first(points))
    return spreads


def _purchase_doubts(purchase: Purchase) -> tuple[str, ...]:
    ambiguous = f"one of {', '.join(purchase.candidates)}: {AMBIGUOUS}" if purchase.candidates else None
    return tuple(text for text in (ambiguous, purchase.doubt) if text is not None)


def _purchase_kind(purchase: Purchase) -> BoughtKind:
    return "list" if purchase.price_kind == "msrp" else purchase.price_kind


def _spreads_by_mode(offers: list[Offer], today: date) -> dict[RentMode, PriceSpread]:
    points = [pair for offer in offers for pair in _offer_points(offer, today)]
    by_mode = {mode: [point for each, point in points if each == mode] for mode in RENT_MODES}
    return {mode: PriceSpread(_latest_first(of_mode)) for mode, of_mode in by_mode.items() if of_mode}


def _latest_first(points: list[PricePoint]) -> tuple[PricePoint, ...]:
    cheapest_first = sorted(points, key=lambda point: point.price_usd)
    return tuple(sorted(cheapest_first, key=lambda point: point.day, reverse=True))


def _purchase_point(purchase: Purchase, today: date) -> PricePoint:
    count = purchase.gpu_count or 1
    whole = (f"{purchase.price_usd:,.0f} USD for {count} ({purchase.item})",) if count > 1 else ()
    return PricePoint(
        price_usd=purchase.price_usd / count,
        price_date=purchase.price_date,
        age_days=days_since(purchase.price_date, today),
        source=purchase.source,
        seller=LIST_PRICE_SELLER if _purchase_kind(purchase) == "list" else "",
        remarks=(*_purchase_doubts(purchase), *whole, *purchase.notes),
    )


def _offer_points(offer: Offer, today: date) -> list[tuple[RentMode, PricePoint]]:
    remarks = list(offer.doubts)
    if offer.price_kind == "median":
        remarks.append("the median of a marketplace's offers")
    if offer.gpu_count < 1:
        remarks.append(f"only {offer.gpu_count:g} of a GPU")
    return [
        (
            mode,
            PricePoint(
                price_usd=usd / offer.gpu_count,
                price_date=offer.price_date,
                age_days=days_since(offer.price_date, today),
                source=offer.source,
                seller=offer.provider,
                region=offer.region,
                cards=offer.gpu_count,
                remarks=(*remarks, *offer.notes),
            ),
        )
        for mode, usd in offer.prices
    ]
