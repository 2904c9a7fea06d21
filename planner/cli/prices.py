"""`gpu-planner prices`: list rental prices, fetch new ones, and manage the user's own offers."""

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from planner.cli.parser import Parser, join_descending_sort, row_limit
from planner.cli.table import column_table
from planner.cost.price_feeds.store import PriceStore, StoredPrices, offers_in_use, read_offers
from planner.cost.renting.offer import Offer
from planner.errors import PriceError, SpecError
from planner.hardware.names import resolve_gpu
from planner.paths import prices_dir
from planner.plan.catalog import Catalog, load_catalog
from planner.present.cost.offers import OFFER_COLUMNS, ListedOffer, listed_offers, outcome_lines, state_lines
from planner.present.cost.prices import oldest_price_text

_DESCRIPTION: Final = """\
List rental prices: bundled offers of many providers, each with its date and source, fetched ones, and your own.
Prices are in USD per GPU and hour, without tax. Offers older than twelve months are listed only with --history. If a
source does not specify the GPU exactly, all candidates are named."""

_EXAMPLES: Final = """\
examples:
  gpu-planner prices --gpu h100-sxm --sort on-demand
  gpu-planner prices runpod --json
  gpu-planner prices --refresh                     fetch all sources; of this command, only --refresh uses the network
  gpu-planner prices --refresh aws gpu-price-feed
  gpu-planner prices --accept                      use new prices that were held back because of large changes
  gpu-planner prices --bundled                     go back to the bundled prices
  gpu-planner prices --add my-offers.json

sources for --refresh:
{sources}

fields for --sort (with - before it: descending):
  {fields}"""

_DISPENSABLE: Final = ("reserved-3y", "reserved-1y", "region", "spot")
"""Columns that a narrow terminal leaves out, unless they are sorted by."""


def run(argv: list[str]) -> int:
    """Run `gpu-planner prices` and return the exit code."""
    arguments = make_parser().parse_args(join_descending_sort(argv))
    store, catalog = PriceStore(prices_dir()), load_catalog()
    if arguments.refresh is not None:
        return _fetch_prices(arguments.refresh, store, catalog, as_json=arguments.json)
    if _run_requested_action(arguments, store):
        return 0
    return _print_offers(arguments, store, catalog)


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    from planner.cost.price_feeds.registry import SOURCES

    width = max(len(source.key) for source in SOURCES)
    epilog = _EXAMPLES.format(
        sources="\n".join(f"  {source.key:<{width}}  {source.title}, from {source.host}" for source in SOURCES),
        fields=" ".join(column.key for column in OFFER_COLUMNS),
    )
    parser = Parser("gpu-planner prices", _DESCRIPTION, epilog)
    choice = parser.add_argument_group("which offers")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words in the provider, instance, GPU or region")
    choice.add_argument("--gpu", metavar="GPU", help="only offers of this GPU, including offers whose GPU is ambiguous")
    choice.add_argument("--history", action="store_true", help="include offers older than twelve months")
    choice.add_argument("--sort", metavar="FIELD", help="sort by a field below [on-demand]")
    choice.add_argument("--limit", metavar="N", type=row_limit, help="print at most N offers")
    choice.add_argument("--csv", action="store_true", help="print the offers as CSV, with dates and sources")
    change = parser.add_argument_group("actions instead of the list").add_mutually_exclusive_group()
    change.add_argument("--refresh", metavar="SOURCE", nargs="*", help="fetch prices from all or the given sources")
    change.add_argument(
        "--accept",
        metavar="PROVIDER",
        nargs="*",
        help="use the prices of all or the given providers that were held back",
    )
    change.add_argument(
        "--discard",
        metavar="PROVIDER",
        nargs="*",
        help="discard the prices of all or the given providers that were held back",
    )
    change.add_argument("--bundled", action="store_true", help="use the bundled prices; fetched prices are kept")
    change.add_argument("--fetched", action="store_true", help="use the fetched prices again")
    change.add_argument(
        "--add", metavar="FILE", type=Path, help="add your own offers: a JSON list, as printed by --json"
    )
    change.add_argument("--remove", metavar="ID", nargs="+", help="remove your own offers")
    change.add_argument("--state", action="store_true", help="show which prices are in use and which are held back")
    parser.add_general_options()
    return parser


def _fetch_prices(keys: Sequence[str], store: PriceStore, catalog: Catalog, *, as_json: bool) -> int:
    from planner.cost.price_feeds.download import Fetcher
    from planner.cost.price_feeds.refresh import Refresh
    from planner.cost.price_feeds.registry import HOSTS, SOURCES

    known = {source.key: source for source in SOURCES}
    for key in keys:
        if key not in known:
            raise SpecError("--refresh", f"unknown source {key!r}", f"Sources: {', '.join(known)}.")
    sources = [known[key] for key in dict.fromkeys(keys)] or SOURCES
    refresh = Refresh(store, catalog.hardware, catalog.cost.bundled_offers, datetime.now(UTC))
    outcomes = refresh.run(Fetcher(HOSTS), sources)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if len(errors) == len(outcomes) == 1:
        raise errors[0]
    if as_json:
        print(to_json([outcome._asdict() for outcome in outcomes], indent=2, fallback=str).decode())
    else:
        print("\n".join(outcome_lines(outcomes)))
    if len(errors) == len(outcomes):
        raise PriceError("all sources", "no prices could be fetched", errors[0].hint, environment=errors[0].environment)
    return 0


def _run_requested_action(arguments: argparse.Namespace, store: PriceStore) -> bool:
    """Run the action that an option requests instead of the list; return False without such an option."""
    if arguments.accept is not None or arguments.discard is not None:
        _accept_or_discard_held(arguments, store)
    elif arguments.bundled or arguments.fetched:
        store.use_bundled(arguments.bundled)
        print("The bundled prices are in use." if arguments.bundled else "The fetched prices are in use.")
    elif arguments.add is not None:
        added = read_offers(arguments.add)
        kept = [offer for offer in store.read().own if offer.id not in {new.id for new in added}]
        store.set_own((*kept, *added))
        print(f"Added {len(added):,} of your own offers: {', '.join(offer.id for offer in added)}.")
    elif arguments.remove:
        _remove_own_offers(arguments.remove, store)
    else:
        return False
    return True


def _accept_or_discard_held(arguments: argparse.Namespace, store: PriceStore) -> None:
    from planner.cost.price_feeds.refresh import accept_held_back_prices, discard_held_back_prices

    if arguments.accept is not None:
        providers, verb = accept_held_back_prices(store, arguments.accept), "Now in use"
    else:
        providers, verb = discard_held_back_prices(store, arguments.discard), "Discarded"
    print(f"{verb}: {', '.join(providers)}." if providers else "No prices are held back.")


def _remove_own_offers(ids: Sequence[str], store: PriceStore) -> None:
    own = store.read().own
    for offer_id in ids:
        if offer_id not in {offer.id for offer in own}:
            mine = ", ".join(offer.id for offer in own)
            raise SpecError(
                "--remove",
                f"you have no offer of your own called {offer_id!r}",
                f"Your offers: {mine}." if mine else "You have none; --add FILE adds some.",
            )
    store.set_own(offer for offer in own if offer.id not in ids)
    print(f"Removed {', '.join(ids)}.")


def _print_offers(arguments: argparse.Namespace, store: PriceStore, catalog: Catalog) -> int:
    stored, today = store.read(), datetime.now(UTC).date()
    if arguments.state:
        print("\n".join(state_lines(stored, catalog.cost.bundled_offers, today)))
        return 0
    all_offers = offers_in_use(catalog.cost.bundled_offers, stored)
    rows = _requested_offers(arguments, all_offers, catalog, today)
    if arguments.json:
        print(to_json([row.offer.model_dump(mode="json") for row in rows], indent=2).decode())
    elif arguments.csv:
        print(_offers_csv(rows), end="")
    else:
        print("\n".join(_list_report(rows, all_offers, stored, today, arguments.sort or "")))
    return 0


def _requested_offers(
    arguments: argparse.Namespace, all_offers: Sequence[Offer], catalog: Catalog, today: date
) -> tuple[ListedOffer, ...]:
    gpu = resolve_gpu(catalog.hardware, arguments.gpu).id if arguments.gpu else None
    offers = (
        offer
        for offer in all_offers
        if (arguments.history or not offer.is_history(today)) and (gpu is None or gpu in offer.cards)
    )
    rows = [row for row in listed_offers(offers, catalog.hardware, today) if _contains_words(row, arguments.words)]
    return tuple(_sorted_offers(rows, arguments.sort or "on-demand")[: arguments.limit])


def _contains_words(row: ListedOffer, words: Sequence[str]) -> bool:
    text = " ".join((row.offer.provider, row.offer.instance, row.card, row.offer.region or "", row.id)).lower()
    return all(word.lower() in text for word in words)


def _sorted_offers(rows: list[ListedOffer], field: str) -> list[ListedOffer]:
    """Return `rows` sorted by the column `field`, descending if it starts with `-`; unknown values come last."""
    name, descending = field.removeprefix("-"), field.startswith("-")
    column = next((column for column in OFFER_COLUMNS if column.key == name), None)
    if column is None:
        keys = ", ".join(column.key for column in OFFER_COLUMNS)
        raise SpecError("--sort", f"unknown field {name!r}", f"Fields: {keys}.")
    known = [row for row in rows if column.value(row) is not None]
    unknown = [row for row in rows if column.value(row) is None]
    return [*sorted(known, key=column.value, reverse=descending), *unknown]  # type: ignore[arg-type]  # none is None


def _list_report(
    rows: Sequence[ListedOffer], all_offers: Sequence[Offer], stored: StoredPrices, today: date, sort: str
) -> Iterator[str]:
    if rows:
        columns = [column for column in OFFER_COLUMNS if column.shown]
        yield column_table(columns, rows, dispensable=[key for key in _DISPENSABLE if key not in sort])
        yield ""
    else:
        yield "No offer matches; --history includes offers older than twelve months."
    shown = oldest_price_text([row.offer for row in rows], today)
    yield f"{len(rows):,} of {len(all_offers):,} offers{f'; {shown}' if shown else ''}"
    if stored.held.parts:
        providers = ", ".join(part.provider for part in stored.held.parts)
        yield f"Prices held until you accept or discard them: {providers}; see --state."
    for problem in stored.problems:
        yield f"Skipped: {problem.message}"


def _offers_csv(rows: Sequence[ListedOffer]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = [name for name in Offer.model_fields if name not in ("exchange_rate", "candidates", "notes")]
    writer.writerow([*fields, "candidates", "usd_per_unit", "rate_date", "notes"])
    for row in rows:
        offer, rate = row.offer, row.offer.exchange_rate
        values = [getattr(offer, name) for name in fields]
        rate_values = (rate.usd_per_unit, rate.date) if rate else (None, None)
        writer.writerow([*values, " ".join(offer.candidates), *rate_values, "; ".join(offer.notes)])
    return text.getvalue()
