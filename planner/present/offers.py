"""Offers to rent as rows: prices of one card and hour, how old they are, and where they come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from typing import Final

from planner.cost.renting.offer import Offer
from planner.cost.terms import RentMode
from planner.hardware.catalog import HardwareCatalog
from planner.present import format as fmt
from planner.present.columns import Column, numbers, words
from planner.present.prices import MODE_WORDS, Age, age_of, age_phrase, age_words

_NOT_OFFERED: Final = "–"


@dataclass(frozen=True, slots=True)
class OfferRow:
    """An offer, the name of its card, and its age on a day."""

    offer: Offer
    card: str
    age_days: int | None

    @property
    def id(self) -> str:
        """Return the offer's id."""
        return self.offer.id

    @property
    def age(self) -> Age:
        """Return how old the price is, in a word."""
        return age_of(self.age_days)

    def usd_per_gpu_hour(self, mode: RentMode) -> float | None:
        """Return the price of one card and hour, none where the offer has none of this kind."""
        price = self.offer.price_usd_per_hour(mode)
        return None if price is None else price / self.offer.gpu_count


def offer_rows(offers: Iterable[Offer], hardware: HardwareCatalog, today: date) -> tuple[OfferRow, ...]:
    """Return a row for each offer."""
    names = {gpu.id: gpu.name for gpu in hardware.gpus} | {system.id: system.name for system in hardware.systems}
    return tuple(OfferRow(offer, _card(offer, names), offer.age_days(today)) for offer in offers)


def _card(offer: Offer, names: Mapping[str, str]) -> str:
    cards = [names.get(card, card) for card in offer.cards]
    if offer.ambiguous:
        return f"{_common_start(cards) or cards[0]} … (one of {len(cards)})"
    return names.get(offer.system, offer.system) if offer.system is not None else cards[0]


def _common_start(texts: Sequence[str]) -> str:
    """Return the words that all `texts` begin with."""
    same = takewhile(lambda words: len(set(words)) == 1, zip(*(text.split() for text in texts), strict=False))
    return " ".join(words[0] for words in same)


def _price(mode: RentMode) -> Column[OfferRow]:
    def get(row: OfferRow) -> float | None:
        return row.usd_per_gpu_hour(mode)

    return numbers(
        mode,
        MODE_WORDS[mode].capitalize(),
        get,
        show=lambda usd: f"{usd:,.2f}",
        unit="$/GPU·h",
        unknown=_NOT_OFFERED,
        width=8,
        tooltip=_origin(mode),
    )


def _origin(mode: RentMode) -> Callable[[OfferRow], str]:
    def origin(row: OfferRow) -> str:
        offer = row.offer
        price = offer.price_usd_per_hour(mode)
        whole = "" if price is None else f"${price:,.4f} an hour for {offer.gpu_count:g} × {row.card}"
        rate = offer.exchange_rate
        billed = f"billed in {rate.currency}, 1 {rate.currency} = ${rate.usd_per_unit:g} on {rate.date}" if rate else ""
        dated = f"price of {fmt.date(offer.price_date, fmt.NO_DATE)}, {age_words(row.age_days)}"
        return "\n".join(part for part in (whole, billed, dated, offer.source, *offer.notes) if part)

    return origin


OFFER_COLUMNS: Final[tuple[Column[OfferRow], ...]] = (
    words("provider", "Provider", lambda row: row.offer.provider, width=14),
    words("instance", "Instance", lambda row: row.offer.instance, width=16, tooltip=lambda row: row.offer.id),
    words("card", "Card", lambda row: row.card, width=18, tooltip=lambda row: "\n".join(row.offer.cards)),
    numbers("gpus", "Cards", lambda row: row.offer.gpu_count, width=6),
    words("region", "Region", lambda row: row.offer.region, unknown="not said", width=10),
    _price("on-demand"),
    _price("spot"),
    _price("reserved-1y"),
    _price("reserved-3y"),
    Column("age", "Age", lambda row: row.age_days, lambda row: age_phrase(row.age_days), width=20),
    words("date", "Date", lambda row: row.offer.price_date, unknown=fmt.NO_DATE, shown=False),
    words("source", "Source", lambda row: row.offer.source, shown=False, width=30),
)
