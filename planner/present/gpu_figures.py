"""Columns of an accelerator that follow from others or from the market: derived figures, and prices by their kind."""

from typing import TYPE_CHECKING, Final

from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.present import format as fmt
from planner.present.columns import Column, numbers
from planner.present.gpu_row import GpuRow

if TYPE_CHECKING:
    from planner.cost.market import BoughtKind, PriceSpread

_PRICE_WIDTH: Final = 11


def _derived(figure: DerivedFigure) -> Column[GpuRow]:
    def explained(row: GpuRow) -> str:
        return f"{figure.title} = {figure.formula}\n{figure.explained(row.gpu)}"

    return numbers(
        figure.key,
        figure.title,
        lambda row: figure.value(row.gpu),
        unit=figure.unit,
        show=fmt.significant,
        unknown=fmt.UNKNOWN,
        shown=False,
        tooltip=explained,
    )


def spread_words(spread: "PriceSpread", unit: str = "") -> str:
    """Return the range of a kind of price, how many there are, and the days they are of."""
    days = sorted({point.day for point in spread.points if point.day})
    dates = fmt.date(days[0], "") if len(days) == 1 else f"{fmt.date(days[0])} – {fmt.date(days[-1])}" if days else ""
    low, high = spread.low.price_usd, spread.high.price_usd
    span = fmt.money(low) if low == high else f"{fmt.money(low)} – {fmt.money(high)}"
    count = fmt.plural(len(spread.points), "price")
    return ", ".join(part for part in (f"{span}{unit}", count, dates) if part)


def _bought(kind: "BoughtKind", title: str) -> Column[GpuRow]:
    def spread(row: GpuRow) -> "PriceSpread | None":
        return None if row.prices is None else row.prices.bought.get(kind)

    def usd(row: GpuRow) -> float | None:
        found = spread(row)
        return None if found is None else found.median_usd

    def tooltip(row: GpuRow) -> str:
        found = spread(row)
        if found is None:
            return "The catalog has no such price."
        return f"Median of {spread_words(found)}\n{found.latest.source}"

    return numbers(
        kind,
        title,
        usd,
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        width=_PRICE_WIDTH,
        shown=False,
        measure=fmt.USD,
        tooltip=tooltip,
    )


def _rent(row: GpuRow) -> float | None:
    spread = None if row.prices is None else row.prices.rented.get("on-demand")
    return None if spread is None else spread.low.price_usd


def _rent_tooltip(row: GpuRow) -> str:
    spread = None if row.prices is None else row.prices.rented.get("on-demand")
    if spread is None:
        return "The catalog has no offer of this card by the hour."
    low = spread.low
    where = ", ".join(part for part in (low.seller, low.region, fmt.date(low.price_date, "")) if part)
    return f"Cheapest: {where}\n{spread_words(spread, ' per card and hour')}\n{low.source}"


DERIVED_COLUMNS: Final[tuple[Column[GpuRow], ...]] = tuple(_derived(figure) for figure in DERIVED_FIGURES.values())
PRICE_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    _bought("street", "Street price"),
    _bought("used", "Used price"),
    numbers(
        "rent",
        "Rent",
        _rent,
        unit="USD/h",
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        width=_PRICE_WIDTH,
        shown=False,
        tooltip=_rent_tooltip,
    ),
)
