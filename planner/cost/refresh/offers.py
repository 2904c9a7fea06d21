"""Rows of price sources and their conversion to offers: machines merged, cards matched, fields validated."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.cost.renting.offer import Offer
from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import find_gpu_candidates
from planner.units import GIB


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


Known = Mapping[tuple[str, str], str]
"""Cards of known instance types, by provider and instance."""

_MEMORY_DIFFERENCE: Final = 0.07
"""Tolerance of stated memory sizes, which may be rounded and in either unit: 23 GB and 24 GiB can be the same card."""
_DECIMAL: Final = 1e9


class Match(NamedTuple):
    """The matched card `gpu`, or the ids of its `candidates`."""

    gpu: str | None
    candidates: tuple[str, ...]


class Matcher:
    """Matches listings to cards of the catalog; each spelling is looked up once.

    A known instance type keeps its card: "p5.48xlarge" has H100 SXM, whatever a list calls them.
    """

    def __init__(self, hardware: HardwareCatalog, known: Known) -> None:
        self._hardware, self._known = hardware, known
        self._found: dict[tuple[str, float | None], Match] = {}

    def match(self, listing: Listing) -> Match:
        """Return the card of `listing`, its candidates, or neither if nothing matches."""
        known = self._known.get((listing.provider, listing.instance))
        if known is not None and _is_of_size(self._hardware.gpu(known), listing.card_memory_gb):
            return Match(known, ())
        key = listing.card, listing.card_memory_gb
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, card: str, memory_gb: float | None) -> Match:
        found = [gpu for gpu in find_gpu_candidates(self._hardware, card) if _is_of_size(gpu, memory_gb)]
        if len(found) == 1:
            return Match(found[0].id, ())
        return Match(None, tuple(gpu.id for gpu in found))


def _is_of_size(gpu: Gpu, memory_gb: float | None) -> bool:
    """Return whether a card may have the stated memory, which is always true if none is stated."""
    if memory_gb is None or not memory_gb or gpu.memory_bytes is None:
        return True
    sizes = gpu.memory_bytes / GIB, gpu.memory_bytes / _DECIMAL
    return any(abs(size - memory_gb) <= _MEMORY_DIFFERENCE * size for size in sizes)


_NO_SLUG: Final = re.compile(r"[^a-z0-9.]+")


def offers_of(
    rows: Iterable[Listing | RejectedRow], matcher: Matcher, source: str
) -> tuple[list[Offer], list[RejectedRow]]:
    """Return the offers in `rows`, and the rejected rows.

    Rows of the same machine become one offer with its on-demand and spot prices. If a marketplace has several hosts,
    the offer has their median price, and its notes state their number and price range.
    """
    offers: dict[str, Offer] = {}
    refused: list[RejectedRow] = []
    machines: dict[tuple[str, str, str, int], list[Listing]] = defaultdict(list)
    for row in rows:
        if isinstance(row, RejectedRow):
            refused.append(row)
        else:
            machines[row.place].append(row)
    for listings in machines.values():
        made = _offer(listings, matcher, source)
        if isinstance(made, RejectedRow):
            refused.append(made)
        elif made.id in offers:
            refused.append(RejectedRow(made.id, "is listed twice under names that differ only in punctuation"))
        else:
            offers[made.id] = made
    return list(offers.values()), refused


def _offer(listings: Sequence[Listing], matcher: Matcher, source: str) -> Offer | RejectedRow:
    first = listings[0]
    what = " ".join(part for part in (first.provider, first.instance, first.region) if part)
    found = matcher.match(first)
    if found.gpu is None and not found.candidates:
        size = f" with {first.card_memory_gb:g} GB" if first.card_memory_gb else ""
        return RejectedRow(what, f"the catalog has no card called {first.card!r}{size}")
    on_demand = [listing for listing in listings if not listing.is_spot]
    spot = [listing for listing in listings if listing.is_spot]
    try:
        return Offer.model_validate(
            {
                "id": _offer_id(first),
                "provider": first.provider,
                "instance": first.instance,
                "gpu": found.gpu,
                "candidates": found.candidates,
                "gpu_count": first.count,
                "gpu_memory_gb": first.card_memory_gb,
                "vcpus": first.vcpus or None,
                "ram_gb": first.ram_gb or None,
                "local_storage_gb": first.storage_gb,
                "region": first.region or None,
                "billed_currency": first.billed_currency,
                "exchange_rate": _rate(first, source),
                "on_demand_price_usd_per_hour": _median_price(on_demand),
                "spot_price_usd_per_hour": _median_price(spot),
                "price_date": min(listing.date for listing in listings),
                "source": source,
                "notes": tuple(_notes(on_demand, spot)),
            }
        )
    except ValidationError as error:
        return RejectedRow(what, SpecError.from_validation(error).message)


def _rate(listing: Listing, source: str) -> dict[str, object] | None:
    if listing.usd_per_billed is None:
        return None
    return {
        "currency": listing.billed_currency,
        "usd_per_unit": listing.usd_per_billed,
        "date": listing.rate_date,
        "source": source,
    }


def _median_price(listings: Sequence[Listing]) -> float | None:
    return median(listing.price_usd_per_hour for listing in listings) if listings else None


def _notes(on_demand: Sequence[Listing], spot: Sequence[Listing]) -> Iterator[str]:
    for listings, kind in ((on_demand, ""), (spot, "spot: ")):
        if len(listings) > 1:
            prices = sorted(listing.price_usd_per_hour for listing in listings)
            yield f"{kind}the median of {len(prices)} listings, {prices[0]:,.4g} – {prices[-1]:,.4g} USD per hour"
        elif listings and listings[0].note:
            yield f"{kind}{listings[0].note}"


def _offer_id(listing: Listing) -> str:
    name = f"fetched {listing.provider} {listing.instance} {listing.region} {listing.count}x"
    return _NO_SLUG.sub("-", name.lower()).strip("-")
