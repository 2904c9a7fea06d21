"""Prices in words: how they are paid, and how old they are. What is written in rows of them is in `offers`."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from planner.cost.terms import HISTORY_DAYS, RentMode
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.renting.offer import Offer

Age = Literal["fresh", "recent", "ageing", "old", "history", "undated"]
_AGES: Final[tuple[tuple[int, Age], ...]] = ((7, "fresh"), (30, "recent"), (90, "ageing"), (HISTORY_DAYS, "old"))
"""Up to how many days a price is called so."""
MODE_WORDS: Final[Mapping[RentMode, str]] = {
    "on-demand": "on demand",
    "spot": "spot",
    "reserved-1y": "1 year",
    "reserved-3y": "3 years",
}


def age_of(days: int | None) -> Age:
    """Return the word for an age in days."""
    if days is None:
        return "undated"
    return next((age for most, age in _AGES if days <= most), "history")


def age_words(days: int | None) -> str:
    """Return `today`, `12 days old`, `no date`."""
    if days is None:
        return fmt.NO_DATE
    return "today" if days == 0 else f"{fmt.plural(days, 'day')} old"


def age_phrase(days: int | None) -> str:
    """Return an age in days with the word for it: `12 days old, recent`; `186 days old`; `no date`."""
    word = age_of(days)
    return age_words(days) if word in ("undated", "old") else f"{age_words(days)}, {word}"


def newest_age_days(prices: "Iterable[Offer]", today: date) -> int | None:
    """Return how many days ago the newest of the prices was read; none where none has a date."""
    return min((age for offer in prices if (age := offer.age_days(today)) is not None), default=None)


def oldest_words(prices: "Iterable[Offer]", today: date) -> str:
    """Return how old the oldest price is, and how many have no date: `oldest price 12 days old, 2 without a date`."""
    ages = [offer.age_days(today) for offer in prices]
    dated = [age for age in ages if age is not None]
    oldest = f"oldest price {age_words(max(dated))}" if dated else ""
    undated = f"{len(ages) - len(dated):,} without a date" if len(dated) < len(ages) else ""
    return ", ".join(part for part in (oldest, undated) if part)
