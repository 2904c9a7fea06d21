"""Price update: fetch every source, use plausible prices, hold back doubtful prices, and report the results."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Final, Literal, NamedTuple

from planner.cost.price_feeds.download import FetchedFile, Fetcher
from planner.cost.price_feeds.offers import CardMatcher, Listing, RejectedRow, merge_listings
from planner.cost.price_feeds.registry import SOURCES, PriceSource
from planner.cost.price_feeds.store import PriceStore, ProviderPrices, StoredPrices
from planner.cost.renting.offer import Offer
from planner.errors import PriceError
from planner.hardware.catalog import HardwareCatalog

# Thresholds of mixxor/eu-cloud-prices (rows, single prices, median) and gpu-price-feed (marketplaces), which were set
# after real mistakes: prices of 0, host prices without their GPUs, bids instead of prices.
MIN_ROWS_SHARE: Final = 0.8
MAX_RISE: Final = 1.5
MAX_FALL: Final = 0.5
MAX_MEDIAN_CHANGE: Final = 0.25
MARKETPLACES: Final = frozenset({"Vast.ai", "RunPod Community", "Akash"})
"""Marketplaces, where individual hosts set their own prices."""
_MARKETPLACE_CHANGE: Final = 5.0
_MIN_OFFERS: Final = 5
_MAX_LISTED: Final = 5

_Key = tuple[str, str | None, float, str]


def find_doubts(before: Sequence[Offer], after: Sequence[Offer]) -> tuple[str, ...]:
    """Return a sentence on each implausible change from a provider's previous offers to its new offers."""
    old, new = _newest_prices(before), _newest_prices(after)
    doubts: list[str] = []
    if len(before) >= _MIN_OFFERS and len(after) < MIN_ROWS_SHARE * len(before):
        doubts.append(f"{len(after):,} offers instead of {len(before):,}")
    moves = {key: new[key] / old[key] for key in old if key in new}
    low, high = _price_limits(after)
    far = sorted((key for key, move in moves.items() if not low <= move <= high), key=lambda key: -abs(moves[key] - 1))
    doubts += [_price_change_text(key, old[key], new[key]) for key in far[:_MAX_LISTED]]
    if len(far) > _MAX_LISTED:
        doubts.append(f"{len(far) - _MAX_LISTED:,} more prices changed by implausible factors")
    if len(moves) >= _MIN_OFFERS and abs(median(moves.values()) - 1) > MAX_MEDIAN_CHANGE:
        doubts.append(f"the median change of all prices is {median(moves.values()) - 1:+.0%}")
    return tuple(doubts)


def _price_limits(offers: Sequence[Offer]) -> tuple[float, float]:
    if offers and offers[0].provider in MARKETPLACES:
        return 1 / _MARKETPLACE_CHANGE, _MARKETPLACE_CHANGE
    return MAX_FALL, MAX_RISE


def _newest_prices(offers: Sequence[Offer]) -> Mapping[_Key, float]:
    by_age = sorted(offers, key=lambda offer: offer.price_date or "")
    return {
        (offer.instance, offer.region, offer.gpu_count, mode): price for offer in by_age for mode, price in offer.prices
    }


def _price_change_text(key: _Key, before: float, after: float) -> str:
    instance, region, _, mode = key
    place = f" in {region}" if region else ""
    change = f"{before:,.4g} → {after:,.4g} USD per hour, {after / before:.2f} times the previous price"
    return f"{instance}{place}, {mode}: {change}"


Progress = Callable[[int, int, str], None]
"""Callback with the number of finished price sources, the number of all sources, and the next source's title."""
RefreshStatus = Literal["new", "unchanged", "held", "failed"]


class ProviderOutcome(NamedTuple):
    """Result of a price update for one provider; for a source that failed, `provider` is the source's title."""

    provider: str
    source: str
    status: RefreshStatus
    offers: int = 0
    refused: tuple[RejectedRow, ...] = ()
    doubts: tuple[str, ...] = ()
    error: PriceError | None = None


class Refresh:
    """One price update; the `bundled` offers tell which GPUs known instance types have."""

    def __init__(self, store: PriceStore, hardware: HardwareCatalog, bundled: tuple[Offer, ...], now: datetime) -> None:
        self._store, self._bundled = store, bundled
        known = {(offer.provider, offer.instance): offer.gpu for offer in bundled if offer.gpu}
        self._matcher = CardMatcher(hardware, known)
        self._taken_at = f"{now:%Y%m%dT%H%M%SZ}"
        self._today = now.date()

    def run(
        self, fetcher: Fetcher, sources: Sequence[PriceSource] = SOURCES, progress: Progress = lambda *_: None
    ) -> tuple[ProviderOutcome, ...]:
        """Fetch `sources` one after another, store the prices, and return the result for each provider.

        A failed source leaves the prices of its providers unchanged. If two sources have the same provider, the newer
        prices win, and on the same day those of the earlier source.

        Raises:
            PriceError: If nothing can be written.
        """
        parts: dict[str, tuple[ProviderPrices, ProviderOutcome]] = {}
        outcomes: list[ProviderOutcome] = []
        for at, source in enumerate(sources):
            progress(at, len(sources), source.title)
            try:
                results = self._provider_results(source, *source.fetch(fetcher))
            except PriceError as error:
                outcomes.append(ProviderOutcome(source.title, source.title, "failed", error=error))
                continue
            for part, outcome in results:
                other = parts.get(part.provider)
                if other is None or _latest_price_day(part) > _latest_price_day(other[0]):
                    parts[part.provider] = part, outcome
        progress(len(sources), len(sources), "")
        return (*self._store_or_hold(parts), *outcomes)

    def _provider_results(
        self, source: PriceSource, fetched: FetchedFile, rows: Sequence[Listing | RejectedRow]
    ) -> list[tuple[ProviderPrices, ProviderOutcome]]:
        on_time = [self._reject_future_date(row) for row in rows]
        offers, refused = merge_listings(on_time, self._matcher, f"{source.title} ({fetched.url})")
        if not offers:
            why = f", such as {refused[0].name}: {refused[0].reason}" if refused else ""
            raise PriceError(source.title, f"contains no usable offer{why}")
        providers = dict.fromkeys(offer.provider for offer in offers)
        return [
            (
                ProviderPrices(
                    provider=provider,
                    source=source.title,
                    url=fetched.url,
                    fetched_at=fetched.fetched_at,
                    bytes=len(fetched.content),
                    sha256=fetched.sha256,
                    offers=tuple(offer for offer in offers if offer.provider == provider),
                ),
                ProviderOutcome(
                    provider,
                    source.title,
                    "new",
                    refused=tuple(row for row in refused if len(providers) == 1 or row.name.startswith(provider)),
                ),
            )
            for provider in providers
        ]

    def _reject_future_date(self, row: Listing | RejectedRow) -> Listing | RejectedRow:
        if isinstance(row, Listing) and row.date > self._today.isoformat():
            return RejectedRow(f"{row.provider} {row.instance}", f"its price is dated {row.date}, in the future")
        return row

    def _store_or_hold(self, parts: dict[str, tuple[ProviderPrices, ProviderOutcome]]) -> list[ProviderOutcome]:
        """Store plausible new prices, hold back doubtful prices, and return the result for each provider."""
        stored = self._store.read()
        accepted: list[ProviderPrices] = []
        held: list[ProviderPrices] = []
        outcomes = []
        for part, outcome in parts.values():
            doubts = find_doubts(self._previous_offers(part.provider, stored), part.offers)
            same = (known := stored.snapshot.part(part.provider)) is not None and known.offers == part.offers
            status: RefreshStatus = "held" if doubts else "unchanged" if same else "new"
            (held if doubts else accepted).append(part)
            outcomes.append(outcome._replace(status=status, offers=len(part.offers), doubts=doubts))
        if accepted:
            self._store.take(stored.snapshot.with_parts(tuple(accepted), self._taken_at))
        settled = {part.provider for part in accepted}
        waiting = tuple(part for part in stored.held.parts if part.provider not in settled)
        self._store.hold(stored.held.evolve(parts=waiting).with_parts(tuple(held), self._taken_at))
        return outcomes

    def _previous_offers(self, provider: str, stored: StoredPrices) -> tuple[Offer, ...]:
        part = stored.snapshot.part(provider)
        if part is not None:
            return part.offers
        dated = (offer for offer in self._bundled if offer.provider == provider and offer.price_date)
        return tuple(offer for offer in dated if not offer.is_history(self._today))


def accept_held_back_prices(store: PriceStore, providers: Sequence[str] = ()) -> tuple[str, ...]:
    """Put held-back prices of all or the named `providers` into use, and return the names of these providers.

    Raises:
        PriceError: If no prices of a named provider are held, or the folder cannot be written.
    """
    return _resolve_held_back(store, providers, is_accepted=True)


def discard_held_back_prices(store: PriceStore, providers: Sequence[str] = ()) -> tuple[str, ...]:
    """Delete the held-back prices of all or the named `providers`, and return the names of these providers.

    Raises:
        PriceError: As `accept_held_back_prices`.
    """
    return _resolve_held_back(store, providers, is_accepted=False)


def _resolve_held_back(store: PriceStore, providers: Sequence[str], *, is_accepted: bool) -> tuple[str, ...]:
    stored = store.read()
    names = [part.provider for part in stored.held.parts]
    for provider in providers:
        if provider not in names:
            hint = f"Prices are held back for {', '.join(names)}." if names else "No prices are held back."
            raise PriceError(provider, "has no held-back prices", hint)
    chosen = tuple(part for part in stored.held.parts if not providers or part.provider in providers)
    if is_accepted:
        store.take(stored.snapshot.with_parts(chosen, stored.held.taken_at))
    store.hold(stored.held.evolve(parts=tuple(part for part in stored.held.parts if part not in chosen)))
    return tuple(part.provider for part in chosen)


def _latest_price_day(part: ProviderPrices) -> str:
    return max(offer.price_date or "" for offer in part.offers)
