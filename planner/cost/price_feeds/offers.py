"""Conversion of price-source rows to offers: machines are merged, GPUs matched, and fields validated."""

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

KEPT_PRICES_HINT: Final = "The prices in use stay as they are. Try again later, or update GPU Planner."
"""What to do where a price source is not as expected."""


@dataclass(frozen=True)
class Listing:
    """One row of a price source, in the source's spelling; the price is for the whole instance.

    `card` is the source's spelling, and `card_memory_gb` its memory size per GPU. `region` is empty if it is not
    stated. The provider's price is in `billed_currency`, and converted with the source's rate `usd_per_billed` of
    `rate_date`.
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
    usd_per_billed: float | None = None
    rate_date: str | None = None
    note: str = ""

    @property
    def machine_key(self) -> tuple[str, str, str, int]:
        """Return the key of a machine: provider, instance, region and number of GPUs."""
        return self.provider, self.instance, self.region, self.count


@dataclass(frozen=True)
class RejectedRow:
    """A row of a price source that was rejected, with the reason; `name` is the row's name in the source."""

    name: str
    reason: str


Known = Mapping[tuple[str, str], str]
"""GPU ids of known instance types, by provider and instance type."""

_MEMORY_DIFFERENCE: Final = 0.07
"""Relative tolerance for stated memory sizes, which may be rounded, in GB or in GiB."""
_DECIMAL: Final = 1e9


class CardMatch(NamedTuple):
    """Id of the matched GPU (`gpu`), or ids of the possible GPUs (`candidates`).

    `devices` is the number of devices on the GPU if the source lists and counts them singly, such as an A16's four.
    """

    gpu: str | None
    candidates: tuple[str, ...]
    devices: int = 1


class CardMatcher:
    """Matcher of source rows to catalog GPUs; each spelling is looked up once.

    A known instance type keeps its GPU: "p5.48xlarge" has H100 SXM, whatever a list calls them.
    """

    def __init__(self, hardware: HardwareCatalog, known: Known) -> None:
        self._hardware, self._known = hardware, known
        self._found: dict[tuple[str, float | None], CardMatch] = {}

    def match(self, listing: Listing) -> CardMatch:
        """Return the GPU that `listing` names, or the candidate GPUs; an empty match if no GPU fits."""
        known = self._known.get((listing.provider, listing.instance))
        if known is not None and _has_memory_size(self._hardware.gpu(known), listing.card_memory_gb):
            return CardMatch(known, ())
        key = listing.card, listing.card_memory_gb
        if key not in self._found:
            self._found[key] = self._look_up_card(*key)
        return self._found[key]

    def _look_up_card(self, card: str, memory_gb: float | None) -> CardMatch:
        named = find_gpu_candidates(self._hardware, card)
        cards = [gpu for gpu in named if _has_memory_size(gpu, memory_gb)]
        if len(cards) == 1:
            return CardMatch(cards[0].id, ())
        if not cards and len(named) == 1 and _has_memory_size(named[0], memory_gb, named[0].device_count):
            return CardMatch(named[0].id, (), named[0].device_count)
        return CardMatch(None, tuple(gpu.id for gpu in cards))


def _has_memory_size(gpu: Gpu, memory_gb: float | None, devices: int = 1) -> bool:
    """Return whether one of a GPU's `devices` may have `memory_gb`, in GB or GiB; true if a size is not stated."""
    if memory_gb is None or not memory_gb or gpu.memory_bytes is None:
        return True
    each = gpu.memory_bytes / devices
    return any(abs(size - memory_gb) <= _MEMORY_DIFFERENCE * size for size in (each / GIB, each / _DECIMAL))


_NO_SLUG: Final = re.compile(r"[^a-z0-9.]+")


def merge_listings(
    rows: Iterable[Listing | RejectedRow], matcher: CardMatcher, source: str
) -> tuple[list[Offer], list[RejectedRow]]:
    """Merge source rows into offers, and return the offers and the rejected rows.

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
            machines[row.machine_key].append(row)
    for listings in machines.values():
        made = _merge_offer(listings, matcher, source)
        if isinstance(made, RejectedRow):
            refused.append(made)
        elif made.id in offers:
            refused.append(RejectedRow(made.id, "is listed twice under names that differ only in punctuation"))
        else:
            offers[made.id] = made
    return list(offers.values()), refused


def _merge_offer(listings: Sequence[Listing], matcher: CardMatcher, source: str) -> Offer | RejectedRow:
    first = listings[0]
    row_name = " ".join(part for part in (first.provider, first.instance, first.region) if part)
    match = matcher.match(first)
    if match.gpu is None and not match.candidates:
        size = f" with {first.card_memory_gb:g} GB" if first.card_memory_gb else ""
        return RejectedRow(row_name, f"the catalog has no GPU called {first.card!r}{size}")
    on_demand = [listing for listing in listings if not listing.is_spot]
    spot = [listing for listing in listings if listing.is_spot]
    try:
        return Offer.model_validate(
            {
                "id": _offer_id(first),
                "provider": first.provider,
                "instance": first.instance,
                "gpu": match.gpu,
                "candidates": match.candidates,
                "gpu_count": first.count / match.devices,
                "gpu_memory_gb": first.card_memory_gb,
                "vcpus": first.vcpus or None,
                "ram_gb": first.ram_gb or None,
                "local_storage_gb": first.storage_gb,
                "region": first.region or None,
                "billed_currency": first.billed_currency,
                "exchange_rate": _exchange_rate_fields(first, source),
                "on_demand_price_usd_per_hour": _median_price(on_demand),
                "spot_price_usd_per_hour": _median_price(spot),
                "price_date": min(listing.date for listing in listings),
                "source": source,
                "notes": tuple(_price_notes(on_demand, spot)),
            }
        )
    except ValidationError as error:
        return RejectedRow(row_name, SpecError.from_validation(error).message)


def _exchange_rate_fields(listing: Listing, source: str) -> dict[str, object] | None:
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


def _price_notes(on_demand: Sequence[Listing], spot: Sequence[Listing]) -> Iterator[str]:
    for listings, kind in ((on_demand, ""), (spot, "spot: ")):
        if len(listings) > 1:
            prices = sorted(listing.price_usd_per_hour for listing in listings)
            yield f"{kind}the median of {len(prices)} listings, {prices[0]:,.4g} – {prices[-1]:,.4g} USD per hour"
        elif listings and listings[0].note:
            yield f"{kind}{listings[0].note}"


def _offer_id(listing: Listing) -> str:
    name = f"fetched {listing.provider} {listing.instance} {listing.region} {listing.count}x"
    return _NO_SLUG.sub("-", name.lower()).strip("-")
