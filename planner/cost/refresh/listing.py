"""What a source of prices says of one thing that can be rented, before anything of it is believed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """One row of a source, in its own words; the price is of the whole instance.

    `card` is the source's spelling, `card_memory_gb` what it states of one card. `region` is empty where none is
    stated. `billed_currency` and `billed_price_per_hour` are as the provider asks them, `usd_per_billed` the rate that
    the source used and `rate_date` its day.
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
        """Return what makes two listings the same thing: provider, instance, region and number of cards."""
        return self.provider, self.instance, self.region, self.count


@dataclass(frozen=True)
class RejectedRow:
    """A row that is not taken over, with the reason; `what` names it as its source does."""

    what: str
    reason: str
