"""Rows of a price source before validation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """One row of a source, in its own spelling; the price is for the whole instance.

    `card` is the source's spelling, and `card_memory_gb` its memory size per card. `region` is empty if it is not
    stated. `billed_currency` and `billed_price_per_hour` are the provider's price, converted with the source's rate
    `usd_per_billed` of `rate_date`.
    """

    provider: str
    instance: str
    card: str
    card_memory_gb: float | None
    count: int
    region: str
    price_usd_per_hour: float
    is_spot: bool
    date: str
    vcpus: float | None = None
    ram_gb: float | None = None
    storage_gb: float | None = None
    billed_currency: str = "USD"
    billed_price_per_hour: float | None = None
    usd_per_billed: float | None = None
    rate_date: str | None = None
    note: str = ""

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Return the provider, instance, region and number of cards, which identify a machine."""
        return self.provider, self.instance, self.region, self.count


@dataclass(frozen=True)
class RejectedRow:
    """A rejected row with the reason; `what` is its name in the source."""

    what: str
    reason: str
