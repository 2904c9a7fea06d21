"""Rental offers: a machine with accelerators at a provider, with dated prices."""

from collections.abc import Iterator
from datetime import date
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE
from planner.cost.terms import HISTORY_DAYS, RENT_MODES, RentMode, days_since

Currency = Literal[
    "USD", "EUR", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CAD", "AUD", "JPY", "KRW", "INR", "CNY", "SGD", "BRL"
]
PriceKind = Literal["list", "median", "from"]
"""list: the provider's price; median: a marketplace's median; from: a marketplace's lowest price, rarely available."""
AMBIGUOUS: Final = "the source is ambiguous"
FROM_PRICE: Final = "the lowest price of a marketplace, rarely available"
UNVERIFIED: Final = "the currency could not be verified"
MEDIAN_RANGE: Final = (0.6, 1.54)
"""Range of available prices around a marketplace's median, as factors.

**Source** Vast.ai, H100 SXM, August to October 2026: medians from 2.40 to 6.15 USD, around 4.00.
"""
LOWEST_USD_PER_GPU_HOUR: Final = 0.01
HIGHEST_USD_PER_GPU_HOUR: Final = 100.0
"""Upper bound of plausible prices; beyond the bounds, the source is wrong: marketplaces have shown 0 and 0.01."""


PRICE_FIELDS: Final[dict[RentMode, str]] = {mode: f"{mode.replace('-', '_')}_price_usd_per_hour" for mode in RENT_MODES}
"""Fields of an offer with its prices, by rental mode."""


class ExchangeRate(Spec):
    """Value of one currency unit in US dollars on a given day."""

    currency: Currency
    usd_per_unit: float = Field(gt=0, lt=1_000, allow_inf_nan=False)
    date: str = Field(pattern=DATE)
    source: str = Field(min_length=3)


class Offer(Spec):
    """A machine (instance) for rent, with prices of the whole machine in US dollars, without tax.

    Its GPU is `gpu`, or one of the `candidates` if the source is ambiguous.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    provider: str = Field(min_length=1)
    instance: str = Field(min_length=1, description="the provider's name for the machine")
    gpu: str | None = Field(default=None, description="id of the GPU in the catalog")
    system: str | None = Field(default=None, description="id of the system in the catalog, if a whole system is rented")
    candidates: tuple[str, ...] = Field(default=(), description="ids of the possible GPUs, if the source is ambiguous")
    gpu_count: float = Field(gt=0, le=72, description="number of GPUs; less than 1 for a fraction of a GPU")
    gpu_memory_gb: float | None = Field(
        default=None, gt=0, description="memory of one GPU in GB or GiB, as stated by the source"
    )
    vcpus: float | None = Field(default=None, gt=0)
    ram_gb: float | None = Field(default=None, gt=0, description="host memory in GB or GiB, as stated by the source")
    local_storage_gb: float | None = Field(default=None, ge=0)
    region: str | None = Field(default=None, description="none if the source does not state the region")
    billed_currency: Currency | None = Field(default="USD", description="none if the currency could not be verified")
    exchange_rate: ExchangeRate | None = Field(default=None, description="used to convert the prices to US dollars")
    on_demand_price_usd_per_hour: float | None = None
    spot_price_usd_per_hour: float | None = None
    reserved_1y_price_usd_per_hour: float | None = None
    reserved_3y_price_usd_per_hour: float | None = None
    billing_increment_seconds: int | None = Field(
        default=None, gt=0, description="none if the source does not state the increment"
    )
    price_kind: PriceKind = "list"
    sample_size: int | None = Field(default=None, ge=1, description="number of offers of which the price is the median")
    incomplete: str | None = Field(
        default=None, min_length=3, description="why the price does not cover the whole cost of the machine"
    )
    egress_free: bool = Field(default=False, description="whether the provider states that egress is free")
    price_date: str | None = Field(default=None, pattern=DATE, description="none if the source does not date the price")
    source: str = Field(min_length=3)
    notes: tuple[str, ...] = ()
    own: bool = Field(default=False, description="added by the user, not bundled")

    @model_validator(mode="after")
    def _check_card(self) -> Self:
        if (self.gpu is None) == (not self.candidates):
            raise ValueError("needs either gpu or candidates")
        if len(self.candidates) == 1:
            raise ValueError("a single candidate must be named as gpu")
        return self

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        prices = dict(self.prices)
        if not prices:
            raise ValueError("has no price")
        for mode, price in prices.items():
            if not LOWEST_USD_PER_GPU_HOUR < price / self.gpu_count < HIGHEST_USD_PER_GPU_HOUR:
                raise ValueError(
                    f"the {mode} price of {price:,.4g} USD an hour for {self.gpu_count:g} GPUs is not between "
                    f"{LOWEST_USD_PER_GPU_HOUR:g} and {HIGHEST_USD_PER_GPU_HOUR:g} USD per GPU and hour"
                )
        if "on-demand" in prices and prices.get("spot", 0.0) > prices["on-demand"]:
            raise ValueError("the spot price is above the on-demand price")
        return self

    @model_validator(mode="after")
    def _check_currency(self) -> Self:
        foreign = self.billed_currency not in ("USD", None)
        if foreign != (self.exchange_rate is not None):
            raise ValueError(
                "a price in another currency needs an exchange rate, and one in US dollars must not have one"
            )
        if self.exchange_rate is not None and self.exchange_rate.currency != self.billed_currency:
            raise ValueError(f"the exchange rate is for {self.exchange_rate.currency}, not {self.billed_currency}")
        if self.billed_currency is None and not self.notes:
            raise ValueError("an unverified currency needs an explanatory note")
        return self

    @property
    def prices(self) -> Iterator[tuple[RentMode, float]]:
        """Yield each rental mode that has a price, with the price of the machine in USD per hour."""
        for mode in RENT_MODES:
            price = self.price_usd_per_hour(mode)
            if price is not None:
                yield mode, price

    @property
    def price_range(self) -> tuple[float, float]:
        """Return the factors from the price to its lower and upper bounds; both are 1 unless the price is a median."""
        return MEDIAN_RANGE if self.price_kind == "median" else (1.0, 1.0)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return the reasons why the price is not comparable with the prices of other offers."""
        doubts = (
            (f"one of {', '.join(self.candidates)}: {AMBIGUOUS}", self.ambiguous),
            (FROM_PRICE, self.price_kind == "from"),
            (self.incomplete or "", bool(self.incomplete)),
            (UNVERIFIED, self.billed_currency is None),
        )
        return tuple(text for text, holds in doubts if holds)

    @property
    def ambiguous(self) -> bool:
        """Return whether the source does not say which of several GPUs the machine has."""
        return bool(self.candidates)

    @property
    def cards(self) -> tuple[str, ...]:
        """Return the id of the offer's GPU, or the ids of all candidate GPUs of an ambiguous offer."""
        return (self.gpu,) if self.gpu else self.candidates

    def price_usd_per_hour(self, mode: RentMode) -> float | None:
        """Return the price of the machine in USD per hour, or None if it is not offered in this rental mode."""
        price: float | None = getattr(self, PRICE_FIELDS[mode])
        return price

    def age_days(self, today: date) -> int | None:
        """Return the age of the price in days, or None if the price has no date."""
        return days_since(self.price_date, today)

    def is_history(self, today: date) -> bool:
        """Return whether the price is older than twelve months; undated prices are not."""
        age = self.age_days(today)
        return age is not None and age > HISTORY_DAYS
