"""Prices that were asked or paid for hardware, and what one new card costs by all of them."""

from datetime import date, timedelta
from statistics import median
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE, Figure

PurchaseKind = Literal["gpu", "server", "networking", "workstation"]
PurchasePriceKind = Literal["list", "partner", "street", "used", "msrp"]
"""list: the maker's; partner: of who builds boards with the maker's chip; street: a shop's; used: second hand; msrp:
recommended at launch."""
Included = Literal["card", "baseboard", "server", "rack", "networking", "workstation", "unknown"]
"""baseboard: modules on their board, without a host; unknown: the source does not say whether there is one."""


class Purchase(Spec):
    """One price of a card, a server, a switch or a workstation. What it is for is `gpu` or, in doubt, `candidates`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    item: str = Field(min_length=1, description="as the source calls it")
    kind: PurchaseKind
    gpu: str | None = None
    candidates: tuple[str, ...] = ()
    gpu_count: int | None = Field(default=None, ge=1, le=72)
    includes: Included
    price_usd: float = Field(ge=50, le=1e7, allow_inf_nan=False)
    price_kind: PurchasePriceKind
    price_date: str | None = Field(default=None, pattern=DATE, description="none where the source has no day")
    source: str = Field(min_length=3)
    doubt: str | None = Field(default=None, min_length=3, description="why it may not be the price of a card")
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_what_for(self) -> Self:
        named = self.gpu is not None or bool(self.candidates)
        if named != (self.gpu_count is not None) or (self.gpu is not None and bool(self.candidates)):
            raise ValueError("names one card or several candidates, with how many of them, or neither")
        if named != (self.kind in ("gpu", "server")):
            raise ValueError(f"a {self.kind} {'names no card' if named else 'names its card'}")
        return self


_RECENT_DAYS: Final = 731
_LOW: Final = 0.5
_HIGH: Final = 2.0
"""90 % range of hardware prices, of one that is known. **Source** Epoch AI, training-cost-trends."""
_MIN_PRICES: Final = 3


def card_price(
    purchases: tuple[Purchase, ...], gpu_id: str, launch_price_usd: float | None, today: date
) -> Figure | None:
    """Return the price of one card in USD, or None where nothing is known.

    **Formula** the median of what shops and makers asked for the card alone within two years, or without a day; else
    of older prices; else what it cost at launch. Second-hand prices, those in doubt, and those that may be of another
    card, stay out. The range is that of the prices where there are three, else half to twice.
    """
    sound = [each for each in purchases if each.gpu == gpu_id and each.includes == "card" and each.doubt is None]
    known = [each for each in sound if each.price_kind != "used"]
    asked = [each for each in known if each.price_kind != "msrp"] or known
    recent = [each for each in asked if _is_recent(each, today)]
    if not asked:
        return _at_launch(launch_price_usd)
    return _median_figure(recent or asked, stale=not recent)


def _is_recent(purchase: Purchase, today: date) -> bool:
    day = purchase.price_date
    return day is None or today - date.fromisoformat(day) <= timedelta(days=_RECENT_DAYS)


def _median_figure(found: list[Purchase], *, stale: bool) -> Figure:
    prices = [purchase.price_usd for purchase in found]
    middle = median(prices)
    low, high = (min(prices), max(prices)) if len(prices) >= _MIN_PRICES else (_LOW * middle, _HIGH * middle)
    undated = sum(purchase.price_date is None for purchase in found)
    said = [f"median of {len(found)} prices" if len(found) > 1 else "one price"]
    said += [f"{undated} without a day"] * bool(undated) + ["none of the last two years"] * stale
    sources = "; ".join(dict.fromkeys(purchase.source for purchase in found))
    return Figure(
        value=middle,
        low=low,
        high=high,
        source=f"{', '.join(said)}: {sources}",
        date=min((purchase.price_date for purchase in found if purchase.price_date), default=None),
    )


def _at_launch(launch_price_usd: float | None) -> Figure | None:
    if launch_price_usd is None:
        return None
    return Figure(
        value=launch_price_usd,
        low=_LOW * launch_price_usd,
        high=_HIGH * launch_price_usd,
        source="the maker's price at launch, from the catalog of cards",
        certainty="assumed",
    )
