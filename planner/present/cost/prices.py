"""Price ages, price ranges and rental modes as text. Table rows of offers are in `offers`."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from planner.cost.terms import HISTORY_DAYS, RentMode
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.card_prices import PricePoint, PriceSpread
    from planner.cost.renting.offer import Offer

Age = Literal["fresh", "recent", "aging", "old", "outdated", "undated"]
_AGES: Final[tuple[tuple[int, Age], ...]] = ((7, "fresh"), (30, "recent"), (90, "aging"), (HISTORY_DAYS, "old"))
"""The age categories, each with the most days that it covers."""
RENT_MODE_TITLES: Final[Mapping[RentMode, str]] = {
    "on-demand": "on demand",
    "spot": "spot",
    "reserved-1y": "reserved for 1 year",
    "reserved-3y": "reserved for 3 years",
}
_RANGE_END: Final = re.compile(r"^(?:low|high) end(?: of [\d,]+-[\d,]+)?(?:, |$)")
_YEAR_LENGTH: Final = len("2025")


def age_of(days: int | None) -> Age:
    """Return the category of an age in days."""
    if days is None:
        return "undated"
    return next((age for most, age in _AGES if days <= most), "outdated")


def age_text(days: int | None) -> str:
    """Return `today`, `12 days old`, `no date`."""
    if days is None:
        return fmt.NO_DATE
    return "today" if days == 0 else f"{fmt.plural(days, 'day')} old"


def age_phrase(days: int | None) -> str:
    """Return an age in days with its category: `12 days old, recent`; `186 days old`; `no date`."""
    word = age_of(days)
    return age_text(days) if word in ("undated", "old") else f"{age_text(days)}, {word}"


def newest_age_days(prices: "Iterable[Offer]", today: date) -> int | None:
    """Return the age in days of the newest price, or None if no price has a date."""
    return min((age for offer in prices if (age := offer.age_days(today)) is not None), default=None)


def oldest_price_text(prices: "Iterable[Offer]", today: date) -> str:
    """Return the age of the oldest price and the undated ones: `oldest price 12 days old, 2 without a date`."""
    ages = [offer.age_days(today) for offer in prices]
    dated = [age for age in ages if age is not None]
    oldest = f"oldest price {age_text(max(dated))}" if dated else ""
    undated = f"{len(ages) - len(dated):,} without a date" if len(dated) < len(ages) else ""
    return ", ".join(part for part in (oldest, undated) if part)


def price_range_text(spread: "PriceSpread", unit: str = "") -> str:
    """Return the range of a kind of price with its dates, and how many prices it includes and leaves out."""
    days = sorted({point.day for point in spread.current})
    dates = fmt.date(days[0] or None, "") if len(days) == 1 else f"{fmt.date(days[0])} – {fmt.date(days[-1])}"
    low, high = spread.low.price_usd, spread.high.price_usd
    span = fmt.money(low) if low == high else f"{fmt.money(low)} – {fmt.money(high)}"
    return ", ".join(part for part in (f"{span}{unit}", dates, price_count_text(spread)) if part)


def price_count_text(spread: "PriceSpread") -> str:
    """Return how many prices a range includes and leaves out: `1 price; 15 older than twelve months left out`."""
    undated = " older than twelve months" * spread.outdated or " without a date" * (not spread.current[0].day)
    left_out = [f"{len(spread.older):,} older than twelve months"] * bool(spread.older)
    left_out += [f"{len(spread.undated):,} without a date"] * bool(spread.undated)
    beside = f"; {fmt.listing(tuple(left_out))} left out" if left_out else ""
    return f"{fmt.plural(len(spread.current), 'price')}{undated}{beside}"


def remarks_text(points: Iterable["PricePoint"]) -> str:
    """Return the remarks on prices, each once and without the note on which end of a range a price is."""
    parts = (part for point in points for remark in point.remarks for part in remark.split("; "))
    return "; ".join(filter(None, dict.fromkeys(_RANGE_END.sub("", part) for part in parts)))


def months_text(points: Iterable["PricePoint"]) -> str:
    """Return the month of the prices, or their years if they differ: `Mar 2025`, `2024 – 2025`, `no date`."""
    days = sorted({point.day for point in points})
    months = list(dict.fromkeys(fmt.short_date(day or None, fmt.NO_DATE) for day in days))
    if len(months) == 1:
        return months[0]
    return " – ".join(dict.fromkeys(month[-_YEAR_LENGTH:] for month in (months[0], months[-1])))
