"""One offer to rent: a machine with accelerators at a provider, its prices, and how old they are."""

from collections.abc import Iterator
from datetime import date
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE
from planner.cost.terms import HISTORY_DAYS, RENT_MODES, RentMode

Currency = Literal[
    "USD", "EUR", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CAD", "AUD", "JPY", "KRW", "INR", "CNY", "SGD", "BRL"
]
PriceKind = Literal["list", "median", "from"]
"""list: what the provider asks; median: of a marketplace's offers; from: the lowest of them, seldom to be had."""
AMBIGUOUS: Final = "the source does not say which"
FROM_PRICE: Final = "the lowest price of a marketplace, seldom to be had"
UNVERIFIED: Final = "the currency could not be verified"
MEDIAN_RANGE: Final = (0.6, 1.54)
"""How far a marketplace's median may lie off what is to be had, as shares of it.

**Source** Vast.ai, H100 SXM, August to October 2026: medians from 2.40 to 6.15 USD, around 4.00.
"""
LOWEST_USD_PER_GPU_HOUR: Final = 0.01
HIGHEST_USD_PER_GPU_HOUR: Final = 100.0
"""Beyond these a price is a mistake of its source: marketplaces have shown 0 and bid floors of 0.01."""


class ExchangeRate(Spec):
    """What one unit of a currency was worth on a day."""

    currency: Currency
    usd_per_unit: float = Field(gt=0, lt=1_000, allow_inf_nan=False)
    date: str = Field(pattern=DATE)
    source: str = Field(min_length=3)


class Offer(Spec):
    """A machine to rent. Prices are for the whole instance, in US dollars, without tax.

    It names one card of the catalog (`gpu`), or, where the source does not say which card it is, the `candidates`.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    provider: str = Field(min_length=1)
    instance: str = Field(min_length=1, description="what the provider calls it")
    gpu: str | None = Field(default=None, description="the catalog's id of the card")
    system: str | None = Field(
        default=None, description="the catalog's id of the system, for pods that are rented whole"
    )
    candidates: tuple[str, ...] = Field(default=(), description="cards that it may be, where the source does not say")
    gpu_count: float = Field(gt=0, le=72, description="less than one: a share of a card")
    gpu_memory_gb: float | None = Field(default=None, gt=0, description="of one card, as its source states it")
    vcpus: float | None = Field(default=None, gt=0)
    ram_gb: float | None = Field(default=None, gt=0, description="GiB or GB, as its source states it")
    local_storage_gb: float | None = Field(default=None, ge=0)
    region: str | None = Field(default=None, description="none where the source does not say")
    billed_currency: Currency | None = Field(default="USD", description="none where it could not be verified")
    exchange_rate: ExchangeRate | None = Field(default=None, description="by which the prices became US dollars")
    on_demand_price_usd_per_hour: float | None = None
    spot_price_usd_per_hour: float | None = None
    reserved_1y_price_usd_per_hour: float | None = None
    reserved_3y_price_usd_per_hour: float | None = None
    billing_increment_seconds: int | None = Field(default=None, gt=0, description="none where the source does not say")
    price_kind: PriceKind = "list"
    sample_size: int | None = Field(default=None, ge=1, description="how many offers a median is of")
    incomplete: str | None = Field(default=None, min_length=3, description="why the price is not all that is paid")
    egress_free: bool = Field(default=False, description="whether the provider says that it charges no egress")
    price_date: str | None = Field(default=None, pattern=DATE, description="none where the source has no day")
    source: str = Field(min_length=3)
    notes: tuple[str, ...] = ()
    own: bool = Field(default=False, description="added by the person, not bundled")

    @model_validator(mode="after")
    def _names_its_card(self) -> Self:
        if (self.gpu is None) == (not self.candidates):
            raise ValueError("needs either gpu or candidates")
        if len(self.candidates) == 1:
            raise ValueError("one candidate is no ambiguity: name it as gpu")
        return self

    @model_validator(mode="after")
    def _prices_are_plausible(self) -> Self:
        prices = dict(self.prices)
        if not prices:
            raise ValueError("has no price")
        for mode, price in prices.items():
            if not LOWEST_USD_PER_GPU_HOUR < price / self.gpu_count < HIGHEST_USD_PER_GPU_HOUR:
                raise ValueError(
                    f"the {mode} price of {price:,.4g} USD an hour for {self.gpu_count:g} cards is not between "
                    f"{LOWEST_USD_PER_GPU_HOUR:g} and {HIGHEST_USD_PER_GPU_HOUR:g} USD a card and hour"
                )
        if "on-demand" in prices and prices.get("spot", 0.0) > prices["on-demand"]:
            raise ValueError("the spot price is above the on-demand price")
        return self

    @model_validator(mode="after")
    def _says_how_it_became_dollars(self) -> Self:
        foreign = self.billed_currency not in ("USD", None)
        if foreign != (self.exchange_rate is not None):
            raise ValueError("a price billed in another currency needs its exchange rate, and one in US dollars none")
        if self.exchange_rate is not None and self.exchange_rate.currency != self.billed_currency:
            raise ValueError(f"the exchange rate is of {self.exchange_rate.currency}, not {self.billed_currency}")
        if self.billed_currency is None and not self.notes:
            raise ValueError("an unverified currency needs a note that says why")
        return self

    @property
    def prices(self) -> Iterator[tuple[RentMode, float]]:
        """Yield the ways to rent that have a price, each with that of the instance in USD an hour."""
        for mode in RENT_MODES:
            price = self.price_usd_per_hour(mode)
            if price is not None:
                yield mode, price

    @property
    def price_range(self) -> tuple[float, float]:
        """Return the shares of the price that it lies between: one for what a provider asks."""
        return MEDIAN_RANGE if self.price_kind == "median" else (1.0, 1.0)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return why the price may not stand beside those of other offers."""
        doubts = (
            (f"one of {', '.join(self.candidates)}: {AMBIGUOUS}", self.ambiguous),
            (FROM_PRICE, self.price_kind == "from"),
            (self.incomplete or "", bool(self.incomplete)),
            (UNVERIFIED, self.billed_currency is None),
        )
        return tuple(text for text, holds in doubts if holds)

    @property
    def ambiguous(self) -> bool:
        """Return whether it is not known which card this is."""
        return bool(self.candidates)

    @property
    def cards(self) -> tuple[str, ...]:
        """Return the ids of the cards that it is, or may be."""
        return (self.gpu,) if self.gpu else self.candidates

    def price_usd_per_hour(self, mode: RentMode) -> float | None:
        """Return the price of the whole instance in USD an hour, or None where there is none for this way to rent."""
        match mode:
            case "on-demand":
                return self.on_demand_price_usd_per_hour
            case "spot":
                return self.spot_price_usd_per_hour
            case "reserved-1y":
                return self.reserved_1y_price_usd_per_hour
            case _:
                return self.reserved_3y_price_usd_per_hour

    def age_days(self, today: date) -> int | None:
        """Return how many days old the price is, or None where it has no date."""
        return None if self.price_date is None else (today - date.fromisoformat(self.price_date)).days

    def is_history(self, today: date) -> bool:
        """Return whether the price is older than twelve months; one without a date is not known to be."""
        age = self.age_days(today)
        return age is not None and age > HISTORY_DAYS
