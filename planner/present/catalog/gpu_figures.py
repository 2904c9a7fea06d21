"""Columns of an accelerator that follow from others or from the market: derived figures, and prices by their kind."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.hardware.fields import PRICE_WORDS
from planner.present import format as fmt
from planner.present.catalog.gpu_row import GpuRow
from planner.present.columns import Column, Row, numbers
from planner.present.provenance import provenance_text

if TYPE_CHECKING:
    from planner.cost.market import BoughtKind, PricePoint, PriceSpread

Priced = tuple[float, tuple["PricePoint", ...]]
"""A price in US dollars, and the prices that it is made of."""
_RANGE_END: Final = re.compile(r"^(?:low|high) end(?: of [\d,]+-[\d,]+)?(?:, |$)")
_PRICE_WIDTH: Final = 15
_YEAR_LENGTH: Final = len("2025")


def _derived(figure: DerivedFigure) -> Column[GpuRow]:
    def explained(row: GpuRow) -> str:
        return f"{figure.title} = {figure.formula}\n{figure.explained(row.gpu)}"

    column = numbers(
        figure.key,
        figure.title,
        lambda row: figure.value(row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=explained,
    )
    return replace(column, help=sentence(f"{figure.help}{', at launch' if figure.priced else ''}"))


def sentence(words: str) -> str:
    """Return `words` with a capital at their beginning, whatever follows."""
    return f"{words[:1].upper()}{words[1:]}"


def spread_words(spread: "PriceSpread", unit: str = "") -> str:
    """Return the range of a kind of price, how many it is of and how many are left out, and the days it is of."""
    days = sorted({point.day for point in spread.current})
    dates = fmt.date(days[0] or None, "") if len(days) == 1 else f"{fmt.date(days[0])} – {fmt.date(days[-1])}"
    low, high = spread.low.price_usd, spread.high.price_usd
    span = fmt.money(low) if low == high else f"{fmt.money(low)} – {fmt.money(high)}"
    return ", ".join(part for part in (f"{span}{unit}", dates, count_words(spread)) if part)


def count_words(spread: "PriceSpread") -> str:
    """Return of how many prices a range is, and which are left out: `1 price; 15 older than twelve months left out`."""
    undated = "" if spread.current[0].day else " without a date"
    left_out = [f"{len(spread.older):,} older than twelve months"] * bool(spread.older)
    left_out += [f"{len(spread.undated):,} without a date"] * bool(spread.undated)
    beside = f"; {fmt.listing(tuple(left_out))} left out" if left_out else ""
    return f"{fmt.plural(len(spread.current), 'price')}{undated}{beside}"


def remark_words(points: Iterable["PricePoint"]) -> str:
    """Return what sources and checks say of prices, each remark once; which end of a range a price is, one sees."""
    parts = (part for point in points for remark in point.remarks for part in remark.split("; "))
    return "; ".join(filter(None, dict.fromkeys(_RANGE_END.sub("", part) for part in parts)))


def month_words(points: Iterable["PricePoint"]) -> str:
    """Return the month that prices are of, of several the years: `Mar 2025`, `2024 – 2025`, `no date`."""
    days = sorted({point.day for point in points})
    months = list(dict.fromkeys(fmt.short_date(day or None, fmt.NO_DATE) for day in days))
    if len(months) == 1:
        return months[0]
    return " – ".join(dict.fromkeys(month[-_YEAR_LENGTH:] for month in (months[0], months[-1])))


def _dated_money(
    key: str, title: str, read: Callable[[Row], Priced | None], tooltip: Callable[[Row], str], unit: str = ""
) -> Column[Row]:
    """Return a column of prices that says of which month each is; it sorts by the price alone."""

    def usd(row: Row) -> float | None:
        found = read(row)
        return None if found is None else found[0]

    def text(row: Row) -> str:
        found = read(row)
        return fmt.UNKNOWN if found is None else f"{fmt.money(found[0])} ({month_words(found[1])})"

    measure = "" if unit else fmt.USD
    plain = numbers(key, title, usd, unit=unit, width=_PRICE_WIDTH, shown=False, measure=measure, tooltip=tooltip)
    return replace(plain, text=text, help=sentence(PRICE_WORDS[key][1]))


def _bought(kind: "BoughtKind", title: str) -> Column[GpuRow]:
    def spread(row: GpuRow) -> "PriceSpread | None":
        return None if row.prices is None else row.prices.bought.get(kind)

    def priced(row: GpuRow) -> Priced | None:
        found = spread(row)
        return None if found is None else (found.median_usd, found.current)

    def tooltip(row: GpuRow) -> str:
        found = spread(row)
        if found is None:
            return "The catalog has no such price."
        told = (f"Median of {spread_words(found)}", remark_words(found.current), found.latest.source)
        return "\n".join(part for part in told if part)

    return _dated_money(kind, title, priced, tooltip)


def rent_column(on_demand: Callable[[Row], "PriceSpread | None"], nothing: str, per: str) -> Column[Row]:
    """Return a column of the cheapest price by the hour; `nothing` says that there is none, `per` what it is for."""

    def priced(row: Row) -> Priced | None:
        spread = on_demand(row)
        return None if spread is None else (spread.low.price_usd, (spread.low,))

    def tooltip(row: Row) -> str:
        spread = on_demand(row)
        if spread is None:
            return nothing
        low = spread.low
        where = ", ".join(part for part in (low.seller, low.region, fmt.date(low.price_date, "")) if part)
        return f"Cheapest: {where}\n{spread_words(spread, per)}\n{low.source}"

    return _dated_money("rent", "Rent", priced, tooltip, unit="USD/h")


def _on_demand(row: GpuRow) -> "PriceSpread | None":
    return None if row.prices is None else row.prices.rented.get("on-demand")


def _paid_tooltip(row: GpuRow) -> str:
    if row.gpu.purchase_price_usd is None:
        return "You have not said what you paid for one."
    return provenance_text(row.gpu.provenance_of("purchase_price_usd"))


DERIVED_COLUMNS: Final[tuple[Column[GpuRow], ...]] = tuple(_derived(figure) for figure in DERIVED_FIGURES.values())
PRICE_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    _bought("street", "Street price"),
    _bought("used", "Used price"),
    rent_column(_on_demand, "The catalog has no offer of this card by the hour.", " per card and hour"),
    numbers(
        "paid",
        "Paid",
        lambda row: row.gpu.purchase_price_usd,
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        shown=False,
        measure=fmt.USD,
        tooltip=_paid_tooltip,
    ),
)
