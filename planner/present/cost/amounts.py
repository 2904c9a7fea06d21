"""Cost terms and the inputs of the tornado chart, as rows."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.cost.figure import Certainty
from planner.cost.rent_or_buy.uncertainty import Swing
from planner.cost.result import MoneyTerm, RentCost
from planner.present import format as fmt
from planner.present.format import symbol_value

_DETAIL: Final = re.compile(r" ?; |: | \(")
_SHORT_SOURCE: Final = 48


def short_source(source: str) -> str:
    """Return the name of a source without file, range and further sources, cut to a width that fits a table."""
    name = _DETAIL.split(source, maxsplit=1)[0].strip()
    if name.startswith("github:"):
        name = name.partition(" ")[0].rstrip(",")
    return name if len(name) <= _SHORT_SOURCE else f"{name[: _SHORT_SOURCE - 1].rsplit(' ', 1)[0].rstrip(',')} …"


PRICE_CERTAINTY_TITLES: Final[dict[Certainty, str]] = {
    "quoted": "quoted",
    "measured": "measured",
    "derived": "computed",
    "assumed": "assumed",
    "yours": "yours",
}
COST_TERM_TITLES: Final = {
    "machines": "Machines",
    "storage": "Storage",
    "egress": "Cloud egress",
    "cards": "GPUs",
    "servers": "Servers with GPUs",
    "host": "Host (server without GPUs)",
    "network": "Network",
    "rack": "Rack and facility",
    "tax": "Tax",
    "shipping": "Shipping",
    "install": "Installation",
    "energy": "Electricity",
    "colocation": "Colocation",
    "operations": "Operations",
    "support": "Support",
    "spares": "Spares",
    "insurance": "Insurance",
    "staff": "Staff",
    "licence": "Licenses",
    "loan": "Loan",
}
SWING_TITLES: Final = {
    "card_price_usd": "GPU price",
    "server_price_usd": "Server price",
    "resale_share": "Resale value",
    "rent_usd_per_hour": "Rent",
    "price_drift_per_year": "Rental price trend",
    "use_factor": "Hours used vs. planned",
    "time_factor": "Actual vs. estimated time",
    "tariff_usd_per_kwh": "Electricity price",
    "host_factor": "Server-to-GPU price ratio",
    "network_share": "Network",
    "pue": "Cooling (PUE)",
    "operations_fraction_per_year": "Operations",
    "server_power_factor": "Server-to-GPU power ratio",
    "active_power_fraction": "Power under load",
    "idle_power_fraction": "Idle power",
    "staff_usd_per_year": "Staff",
    "colocation_usd_per_kw_month": "Colocation",
}
_NEXT_TO_NOTHING: Final = 0.0005


class MoneyRow(NamedTuple):
    """A cost term with its formula, certainty and source."""

    name: str
    title: str
    text: str
    usd: float
    range_text: str
    how: str
    symbols: tuple[tuple[str, str, str, str], ...]
    certainty: str
    source: str
    short_source: str
    date: str


class SwingRow(NamedTuple):
    """One input of the tornado chart: its range, and the saving at both ends of it."""

    title: str
    low_value: str
    high_value: str
    low_saving_usd: float
    high_saving_usd: float
    flips: bool
    source: str


def money_rows(terms: Iterable[MoneyTerm]) -> tuple[MoneyRow, ...]:
    """Return a row for each term."""
    return tuple(_row(term) for term in terms)


def swing_rows(swings: Iterable[Swing]) -> tuple[SwingRow, ...]:
    """Return a row for each input of the tornado chart."""
    return tuple(
        SwingRow(
            SWING_TITLES.get(swing.name, swing.name.replace("_", " ")),
            _value(swing.name, swing.low_value),
            _value(swing.name, swing.high_value),
            swing.low_saving_usd,
            swing.high_saving_usd,
            swing.flips,
            swing.source,
        )
        for swing in swings
    )


def amount_range(amount: RentCost | MoneyTerm) -> str:
    """Return the range of an amount, or an empty text if it is negligible."""
    spread = amount.high_usd - amount.low_usd
    return usd_range(amount.low_usd, amount.high_usd) if spread > abs(amount.usd) * _NEXT_TO_NOTHING else ""


def usd_range(low: float, high: float) -> str:
    """Return `$1,100 – $4,398`."""
    return f"{fmt.money(low)} – {fmt.money(high)}"


def _row(term: MoneyTerm) -> MoneyRow:
    return MoneyRow(
        name=term.name,
        title=COST_TERM_TITLES.get(term.name, term.name.replace("_", " ").capitalize()),
        text=fmt.money(term.usd),
        usd=term.usd,
        range_text=amount_range(term),
        how=term.formula,
        symbols=tuple(
            (symbol.name, symbol_value(symbol.value), symbol.meaning, _origin(symbol.source, symbol.date))
            for symbol in term.symbols
        ),
        certainty=PRICE_CERTAINTY_TITLES[term.certainty],
        source=term.source,
        short_source=short_source(term.source),
        date=fmt.date(term.date, ""),
    )


def _origin(source: str, day: str | None) -> str:
    return source if day is None else f"{source}, {fmt.date(day)}"


def _value(name: str, value: float) -> str:
    if "usd" in name:
        return fmt.money(value)
    return fmt.plain(value) if name in ("pue", "host_factor", "server_power_factor") else fmt.percent(value)
