"""What makes fetched prices doubtful beside those that are in use: a person is asked before they count.

**Source** of the thresholds: mixxor/eu-cloud-prices (rows, single prices, median) and gpu-price-feed (marketplaces),
which were set after real mistakes: prices of 0, host prices without their cards, bids instead of prices.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from planner.cost.offer import Offer

FEWEST_ROWS_SHARE: Final = 0.8
HIGHEST_RISE: Final = 1.5
LOWEST_FALL: Final = 0.5
LARGEST_MEDIAN_MOVE: Final = 0.25
MARKETPLACES: Final = frozenset({"Vast.ai", "RunPod Community", "Akash"})
"""Where single hosts ask what they like."""
_MARKET_MOVE: Final = 5.0
_FEW: Final = 5
_MOST_NAMED: Final = 5

_Key = tuple[str, str | None, float, str]


def doubts(before: Sequence[Offer], after: Sequence[Offer]) -> tuple[str, ...]:
    """Return in words what is odd about a provider's new offers beside those of before; nothing where all is well."""
    old, new = _prices(before), _prices(after)
    found: list[str] = []
    if len(before) >= _FEW and len(after) < FEWEST_ROWS_SHARE * len(before):
        found.append(f"{len(after):,} offers instead of {len(before):,}")
    moves = {key: new[key] / old[key] for key in old if key in new}
    low, high = _limits(after)
    far = sorted((key for key, move in moves.items() if not low <= move <= high), key=lambda key: -abs(moves[key] - 1))
    found += [_words(key, old[key], new[key]) for key in far[:_MOST_NAMED]]
    if len(far) > _MOST_NAMED:
        found.append(f"{len(far) - _MOST_NAMED:,} more prices moved as far")
    if len(moves) >= _FEW and abs(median(moves.values()) - 1) > LARGEST_MEDIAN_MOVE:
        found.append(f"prices moved by {median(moves.values()) - 1:+.0%} in the middle")
    return tuple(found)


def _limits(offers: Sequence[Offer]) -> tuple[float, float]:
    if offers and offers[0].provider in MARKETPLACES:
        return 1 / _MARKET_MOVE, _MARKET_MOVE
    return LOWEST_FALL, HIGHEST_RISE


def _prices(offers: Sequence[Offer]) -> Mapping[_Key, float]:
    """Return the newest price of each machine and way to rent."""
    by_age = sorted(offers, key=lambda offer: offer.price_date or "")
    return {
        (offer.instance, offer.region, offer.gpu_count, mode): price for offer in by_age for mode, price in offer.prices
    }


def _words(key: _Key, before: float, after: float) -> str:
    instance, region, _, mode = key
    place = f" in {region}" if region else ""
    return f"{instance}{place}, {mode}: {before:,.4g} → {after:,.4g} USD an hour (× {after / before:.2f})"
