"""Rental offers as table rows, in general and for a job, and reports on fetched prices and those in use."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import takewhile
from typing import Final, TypeVar

from planner.cost.price_feeds.refresh import ProviderOutcome, RefreshStatus
from planner.cost.price_feeds.store import ProviderPrices, StoredPrices
from planner.cost.renting.offer import Offer
from planner.cost.renting.table import OfferRow
from planner.cost.terms import RentMode
from planner.hardware.catalog import HardwareCatalog
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.cost.prices import RENT_MODE_TITLES, Age, age_of, age_phrase, age_text, oldest_price_text

STATUS_TITLES: Final[dict[RefreshStatus, str]] = {
    "new": "new prices",
    "unchanged": "unchanged",
    "held": "held for review",
    "failed": "failed",
}
_MOST_REFUSED: Final = 3


def outcome_lines(outcomes: Iterable[ProviderOutcome]) -> Iterator[str]:
    """Yield a line for each provider, with suspicious and skipped prices indented below."""
    for outcome in outcomes:
        if outcome.error is not None:
            yield f"{outcome.provider}: {outcome.error.reason}"
            continue
        skipped = f", {len(outcome.refused):,} skipped" if outcome.refused else ""
        result = f"{STATUS_TITLES[outcome.status]}, {fmt.plural(outcome.offers, 'offer')}{skipped}"
        yield f"{outcome.provider}: {result} ({outcome.source})"
        if outcome.doubts:
            yield "  large price changes; the old prices stay in use until you accept the new ones:"
        for doubt in outcome.doubts:
            yield f"  {doubt}"
        for refused in outcome.refused[:_MOST_REFUSED]:
            yield f"  skipped: {refused.name}: {refused.reason}"
        if len(outcome.refused) > _MOST_REFUSED:
            yield f"  and {len(outcome.refused) - _MOST_REFUSED:,} more skipped"


def state_lines(stored: StoredPrices, bundled: tuple[Offer, ...], today: date) -> Iterator[str]:
    """Yield the prices in use by provider, those held for review, and the files that could not be read."""
    if not stored.snapshot.parts:
        yield "The bundled prices are in use; no prices were fetched."
    elif stored.use_bundled:
        yield "The bundled prices are in use, as you chose; the fetched prices are kept."
    else:
        yield "Fetched prices are in use, and bundled prices for providers without fetched ones."
    yield f"bundled: {fmt.plural(len(bundled), 'offer')}, {oldest_price_text(bundled, today)}"
    for part in stored.snapshot.parts:
        yield _part_line(part, today)
    if stored.own:
        yield f"your own: {fmt.listing(tuple(offer.id for offer in stored.own))}"
    for part in stored.held.parts:
        yield f"held until you accept or discard them: {_part_line(part, today)}"
    for problem in stored.problems:
        yield f"skipped: {problem.message}"


def _part_line(part: ProviderPrices, today: date) -> str:
    fetched = fmt.date(datetime.fromisoformat(part.fetched_at).date().isoformat())
    offers = fmt.plural(len(part.offers), "offer")
    return (
        f"{part.provider}: {offers}, {oldest_price_text(part.offers, today)}, fetched on {fetched} from {part.source}"
    )


_NOT_OFFERED: Final = "–"
_MODE_HEADERS: Final[Mapping[RentMode, str]] = {
    "on-demand": "On demand",
    "spot": "Spot",
    "reserved-1y": "Reserved 1 y",
    "reserved-3y": "Reserved 3 y",
}
"""Titles of the rental modes, short enough for a column of prices."""


@dataclass(frozen=True, slots=True)
class ListedOffer:
    """An offer with the name of its card and its age."""

    offer: Offer
    card: str
    age_days: int | None

    @property
    def id(self) -> str:
        """Return the offer's id."""
        return self.offer.id

    @property
    def age(self) -> Age:
        """Return the age category of the price."""
        return age_of(self.age_days)

    def usd_per_gpu_hour(self, mode: RentMode) -> float | None:
        """Return the price per card and hour, or None if the offer does not have this mode."""
        price = self.offer.price_usd_per_hour(mode)
        return None if price is None else price / self.offer.gpu_count


def listed_offers(offers: Iterable[Offer], hardware: HardwareCatalog, today: date) -> tuple[ListedOffer, ...]:
    """Return a row for each offer, with its age on the day `today`."""
    names = {gpu.id: gpu.name for gpu in hardware.gpus} | {system.id: system.name for system in hardware.systems}
    return tuple(ListedOffer(offer, _card(offer, names), offer.age_days(today)) for offer in offers)


def _card(offer: Offer, names: Mapping[str, str]) -> str:
    cards = [names.get(card, card) for card in offer.cards]
    if offer.ambiguous:
        return f"{_common_start(cards) or cards[0]} … (one of {len(cards)})"
    return names.get(offer.system, offer.system) if offer.system is not None else cards[0]


def _common_start(texts: Sequence[str]) -> str:
    same = takewhile(lambda column: len(set(column)) == 1, zip(*(text.split() for text in texts), strict=False))
    return " ".join(column[0] for column in same)


def _price(mode: RentMode) -> Column[ListedOffer]:
    def get(row: ListedOffer) -> float | None:
        return row.usd_per_gpu_hour(mode)

    return number_column(
        mode,
        _MODE_HEADERS[mode],
        get,
        show=lambda usd: f"{usd:,.2f}",
        unit="$/GPU·h",
        unknown=_NOT_OFFERED,
        width=8,
        tooltip=_origin(mode),
        about=f"Price per GPU and hour: {RENT_MODE_TITLES[mode]}",
    )


def _origin(mode: RentMode) -> Callable[[ListedOffer], str]:
    def origin(row: ListedOffer) -> str:
        offer = row.offer
        price = offer.price_usd_per_hour(mode)
        whole = "" if price is None else f"${price:,.4f} per hour for {offer.gpu_count:g} × {row.card}"
        rate = offer.exchange_rate
        billed = f"billed in {rate.currency}, 1 {rate.currency} = ${rate.usd_per_unit:g} on {rate.date}" if rate else ""
        dated = f"price of {fmt.date(offer.price_date, fmt.NO_DATE)}, {age_text(row.age_days)}"
        return "\n".join(part for part in (whole, billed, dated, offer.source, *offer.notes) if part)

    return origin


_OfOffer = TypeVar("_OfOffer", ListedOffer, OfferRow)


def _provider_column() -> Column[_OfOffer]:
    return text_column(
        "provider", "Provider", lambda row: row.offer.provider, width=13, about="Company that rents the machine out"
    )


def _instance_column(width: int) -> Column[_OfOffer]:
    return text_column(
        "instance",
        "Instance",
        lambda row: row.offer.instance,
        width=width,
        tooltip=lambda row: row.offer.id,
        about="Provider's name of the machine",
    )


OFFER_COLUMNS: Final[tuple[Column[ListedOffer], ...]] = (
    _provider_column(),
    _instance_column(16),
    text_column(
        "card",
        "GPU",
        lambda row: row.card,
        width=34,
        tooltip=lambda row: "\n".join(row.offer.cards),
        about="GPU of the machine",
    ),
    number_column("gpus", "GPUs", lambda row: row.offer.gpu_count, width=6, about="Number of GPUs in the machine"),
    text_column("region", "Region", lambda row: row.offer.region, width=8, about="Where the machine is"),
    _price("on-demand"),
    _price("spot"),
    _price("reserved-1y"),
    _price("reserved-3y"),
    Column(
        "age",
        "Age",
        lambda row: row.age_days,
        lambda row: age_phrase(row.age_days),
        width=18,
        help="Days since the price was read",
    ),
    text_column(
        "date",
        "Date",
        lambda row: row.offer.price_date,
        unknown=fmt.NO_DATE,
        shown=False,
        about="Date on which the price was read",
    ),
    text_column(
        "source", "Source", lambda row: row.offer.source, shown=False, width=30, about="Page that states the price"
    ),
)


def _usd(key: str, title: str, get: Callable[[OfferRow], float], about: str, *, shown: bool = True) -> Column[OfferRow]:
    return number_column(key, title, get, show=fmt.money, width=8, shown=shown, tooltip=_price_origin, about=about)


def _price_origin(row: OfferRow) -> str:
    dated = f"price of {fmt.date(row.price_date, fmt.NO_DATE)}, {age_text(row.age_days)}"
    return "\n".join((dated, row.offer.source, *row.offer.notes, *row.remarks))


JOB_OFFER_COLUMNS: Final[tuple[Column[OfferRow], ...]] = (
    _provider_column(),
    _instance_column(11),
    number_column("instances", "Machines", lambda row: row.instances, width=7, about="Machines that the job needs"),
    text_column("region", "Region", lambda row: row.offer.region, width=8, about="Where the machine is"),
    text_column(
        "mode",
        "Type",
        lambda row: RENT_MODE_TITLES[row.mode],
        width=9,
        about="Rental type: on demand, spot or reserved",
    ),
    number_column("hours", "Hours", lambda row: row.hours, width=6, about="Hours that are billed"),
    _usd("usd", "Cost", lambda row: row.usd, "Cost of the job with this offer"),
    _usd("low", "Low", lambda row: row.low_usd, "In one of ten cases, the job costs less than this", shown=False),
    _usd("high", "High", lambda row: row.high_usd, "In one of ten cases, the job costs more than this", shown=False),
    _usd("gpu_hour", "Per GPU-hour", lambda row: row.usd_per_gpu_hour, "Cost of the job for each hour of one GPU"),
    Column(
        "age",
        "Age",
        lambda row: row.age_days,
        lambda row: age_phrase(row.age_days),
        width=18,
        tooltip=_price_origin,
        help="Days since the price was read",
    ),
    text_column(
        "remarks",
        "Remarks",
        lambda row: "; ".join(row.remarks) or None,
        unknown="",
        width=30,
        about="What the price includes or leaves out",
    ),
)


def offer_row_id(row: OfferRow) -> str:
    """Return the unique id of a row: the offer and the mode."""
    return f"{row.offer.id}·{row.mode}"
