"""The feeds from which prices are fetched, each with its host and the function that reads it."""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from planner.cost.price_feeds import gpu_price_feed as price_feed
from planner.cost.price_feeds import gpuhunt
from planner.cost.price_feeds.download import FetchedFile, Fetcher
from planner.cost.price_feeds.offers import Listing, RejectedRow

Rows = tuple[FetchedFile, list[Listing | RejectedRow]]


class PriceSource(NamedTuple):
    """One price file to fetch: `key` selects it on the command line, and `title` is its display name."""

    key: str
    title: str
    host: str
    fetch: Callable[[Fetcher], Rows]


SOURCES: Final[tuple[PriceSource, ...]] = (
    *(
        PriceSource(key, f"gpuhunt: {title}", gpuhunt.HOST, partial(gpuhunt.fetch_gpuhunt, key=key))
        for key, title in gpuhunt.PROVIDERS.items()
    ),
    PriceSource(price_feed.TITLE, price_feed.TITLE, price_feed.HOST, price_feed.fetch_price_feed),
)
HOSTS: Final = frozenset(source.host for source in SOURCES)
