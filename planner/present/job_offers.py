"""Every offer that can do a job, as rows of a table."""

from collections.abc import Callable
from typing import Final

from planner.cost.renting.table import OfferRow
from planner.present import format as fmt
from planner.present.columns import Column, numbers, words
from planner.present.prices import MODE_WORDS, age_phrase, age_words


def _usd(
    key: str, title: str, get: Callable[[OfferRow], float], *, unit: str = "", shown: bool = True
) -> Column[OfferRow]:
    return numbers(key, title, get, unit=unit, show=fmt.money, width=8, shown=shown, tooltip=_price_origin)


def _price_origin(row: OfferRow) -> str:
    dated = f"price of {fmt.date(row.price_date, fmt.NO_DATE)}, {age_words(row.age_days)}"
    return "\n".join((dated, row.offer.source, *row.offer.notes, *row.remarks))


JOB_OFFER_COLUMNS: Final[tuple[Column[OfferRow], ...]] = (
    words("provider", "Provider", lambda row: row.offer.provider, width=14),
    words("instance", "Instance", lambda row: row.offer.instance, width=13, tooltip=lambda row: row.offer.id),
    numbers("instances", "Machines", lambda row: row.instances, width=7),
    words("region", "Region", lambda row: row.offer.region, unknown="not said", width=8),
    words("mode", "How", lambda row: MODE_WORDS[row.mode], width=9),
    numbers("hours", "Hours", lambda row: row.hours, width=6),
    _usd("usd", "Cost", lambda row: row.usd),
    _usd("low", "at least", lambda row: row.low_usd, shown=False),
    _usd("high", "at most", lambda row: row.high_usd, shown=False),
    _usd("gpu_hour", "a GPU-hour", lambda row: row.usd_per_gpu_hour),
    Column(
        "age", "Age", lambda row: row.age_days, lambda row: age_phrase(row.age_days), width=18, tooltip=_price_origin
    ),
    words("remarks", "Remarks", lambda row: "; ".join(row.remarks) or None, unknown="", width=30),
)


def offer_row_id(row: OfferRow) -> str:
    """Return what tells a row from the others."""
    return f"{row.offer.id}·{row.mode}"
