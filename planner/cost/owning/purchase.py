"""Hardware purchase prices, and the price of one new GPU derived from them."""

from datetime import date, timedelta
from statistics import median
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE, Figure

PurchaseKind = Literal["gpu", "server", "networking", "workstation"]
PurchasePriceKind = Literal["list", "partner", "street", "used", "msrp"]
"""list: the maker's price; partner: of board partners; street: of shops; used: second hand; msrp: recommended at
launch."""
Included = Literal["card", "baseboard", "server", "rack", "networking", "workstation", "unknown"]
"""baseboard: modules on their board, without a host; unknown: the source does not state whether a host is included."""


class Purchase(Spec):
    """Purchase price of hardware; for a GPU or server, `gpu` is the GPU, or `candidates` are the possible GPUs."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    item: str = Field(min_length=1, description="name in the source")
    kind: PurchaseKind
    gpu: str | None = None
    candidates: tuple[str, ...] = ()
    gpu_count: int | None = Field(default=None, ge=1, le=72)
    includes: Included
    price_usd: float = Field(ge=50, le=1e7)
    price_kind: PurchasePriceKind
    price_date: str | None = Field(default=None, pattern=DATE, description="none if the source has no date")
    source: str = Field(min_length=3)
    doubt: str | None = Field(default=None, min_length=3, description="reason why it may not be the price of a GPU")
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_card_names(self) -> Self:
        named = self.gpu is not None or bool(self.candidates)
        if named != (self.gpu_count is not None) or (self.gpu is not None and bool(self.candidates)):
            raise ValueError("needs either one GPU or several candidates, with their number, or neither")
        if named != (self.kind in ("gpu", "server")):
            raise ValueError(f"a {self.kind} {'must not name a GPU' if named else 'must name its GPU'}")
        return self


_RECENT_DAYS: Final = 731
_LOW: Final = 0.5
_HIGH: Final = 2.0
"""Factors for the 90 % range around a single known price. **Source** Epoch AI, training-cost-trends."""
_MIN_PRICES: Final = 3
_LEFTOVER_YEARS: Final = 3
_LEFTOVER_FACTOR: Final = 1.2
"""Years after the release, and factor over the launch price, from which a new GPU's price is that of leftover stock.

**Assumes** both: production of consumer GPUs ends with the next generation, after two to three years.
"""


def card_price(
    purchases: tuple[Purchase, ...],
    gpu_id: str,
    launch_price_usd: float | None,
    today: date,
    released: str | None = None,
) -> Figure | None:
    """Return the purchase price of one GPU in USD, or None if unknown.

    **Formula** the median of shop and list prices for the GPU alone from the last two years or without a date; else of
    older prices; else the launch price. Second-hand and doubtful prices, and those that may be for another GPU, are
    excluded. Prices far above the launch price of a GPU released years before are those of leftover stock: the
    second-hand price stands for them, if it is known. The range is that of the prices if there are at least three, else
    half to twice the median.
    """
    sound = [each for each in purchases if each.gpu == gpu_id and each.includes == "card" and each.doubt is None]
    known = [each for each in sound if each.price_kind != "used"]
    new_prices = [each for each in known if each.price_kind != "msrp"] or known
    recent = [each for each in new_prices if _is_recent(each, today)]
    if not new_prices:
        return _launch_price_figure(launch_price_usd)
    price = _median_figure(recent or new_prices, stale=not recent)
    if not _is_leftover(price, launch_price_usd, released):
        return price
    used = used_card_price(purchases, gpu_id)
    if used is None:
        return price.evolve(source=f"leftover stock, far above the launch price: {price.source}", certainty="assumed")
    return used.evolve(source=f"second-hand, as new ones are leftover stock at {price.value:,.0f} USD: {used.source}")


def _is_leftover(price: Figure, launch_price_usd: float | None, released: str | None) -> bool:
    """Return whether the price is that of leftover stock: dear, years after the release."""
    if launch_price_usd is None or released is None or price.date is None:
        return False
    years = int(price.date[:4]) - int(released[:4])
    return years >= _LEFTOVER_YEARS and price.value > _LEFTOVER_FACTOR * launch_price_usd


def server_price(purchases: tuple[Purchase, ...], gpu_id: str, gpu_count: int, today: date) -> Figure | None:
    """Return the street price of a server with `gpu_count` of these GPUs in USD, or None if unknown.

    **Formula** the median of the prices from the last two years or without a date, whether or not they state that the
    host is included. List prices of whole servers are without discount, and excluded.
    """
    found = [
        each
        for each in purchases
        if (each.gpu, each.gpu_count, each.kind, each.price_kind) == (gpu_id, gpu_count, "server", "street")
        and each.includes in ("server", "unknown")
        and each.doubt is None
        and _is_recent(each, today)
    ]
    if not found:
        return None
    price, unclear = _median_figure(found, stale=False), sum(each.includes == "unknown" for each in found)
    remark = f"{unclear} of {len(found)} do not state whether the host is included; " if unclear else ""
    return price.evolve(source=f"{remark}{price.source}")


def used_card_price(purchases: tuple[Purchase, ...], gpu_id: str) -> Figure | None:
    """Return the second-hand price of one GPU in USD: the median of the known ones, or None without any."""
    used = [
        each
        for each in purchases
        if each.gpu == gpu_id and each.includes == "card" and each.doubt is None and each.price_kind == "used"
    ]
    return _median_figure(used, stale=False) if used else None


def _is_recent(purchase: Purchase, today: date) -> bool:
    day = purchase.price_date
    return day is None or today - date.fromisoformat(day) <= timedelta(days=_RECENT_DAYS)


def _median_figure(purchases: list[Purchase], *, stale: bool) -> Figure:
    prices = [purchase.price_usd for purchase in purchases]
    middle = median(prices)
    low, high = (min(prices), max(prices)) if len(prices) >= _MIN_PRICES else (_LOW * middle, _HIGH * middle)
    undated = sum(purchase.price_date is None for purchase in purchases)
    remarks = [f"median of {len(purchases)} prices" if len(purchases) > 1 else "one price"]
    remarks += [f"{undated} without a date"] * bool(undated) + ["none from the last two years"] * stale
    sources = "; ".join(dict.fromkeys(purchase.source for purchase in purchases))
    return Figure(
        value=middle,
        low=low,
        high=high,
        source=f"{', '.join(remarks)}: {sources}",
        date=min((purchase.price_date for purchase in purchases if purchase.price_date), default=None),
    )


def _launch_price_figure(launch_price_usd: float | None) -> Figure | None:
    if launch_price_usd is None:
        return None
    return Figure(
        value=launch_price_usd,
        low=_LOW * launch_price_usd,
        high=_HIGH * launch_price_usd,
        source="the vendor's launch price, from the catalog",
        certainty="assumed",
    )
