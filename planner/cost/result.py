"""Results of cost estimates: each amount with its formula, symbols, source and date."""

from dataclasses import dataclass
from typing import Literal

from planner.base import Spec
from planner.cost.figure import Certainty, Figure
from planner.cost.owning.accounting import OwnedMonth
from planner.cost.renting.offer import Currency
from planner.cost.terms import RentMode

SymbolValue = float | int | str


@dataclass(frozen=True, slots=True)
class MoneySymbol:
    """A symbol in a cost formula, with its value, meaning and source."""

    name: str
    value: SymbolValue
    meaning: str
    source: str
    date: str | None = None


@dataclass(frozen=True, slots=True)
class MoneyTerm:
    """A cost term with its derivation; `low_usd` and `high_usd` are its range."""

    name: str
    usd: float
    formula: str
    symbols: tuple[MoneySymbol, ...]
    source: str
    certainty: Certainty
    date: str | None
    low_usd: float
    high_usd: float


class RentCost(Spec):
    """Cost of renting one offer for one job; for services and daily hours, for one month."""

    offer_id: str
    provider: str
    region: str | None
    """Region of the offer; None if the source does not state it."""
    billed_currency: Currency | None
    mode: RentMode
    instances: int
    gpu_count: float
    hours: float
    low_hours: float
    high_hours: float
    billed_hours: float
    usd: float
    low_usd: float
    high_usd: float
    usd_per_gpu_hour: float
    terms: tuple[MoneyTerm, ...]
    oldest_price_date: str | None
    usd_per_million_tokens: float | None = None
    checkpoint_interval_hours: float | None = None
    commitments: "tuple[Commitment, ...]" = ()
    carbon: "Footprint | None" = None
    notes: tuple[str, ...] = ()


class Commitment(Spec):
    """A rental commitment, and the utilization above which it is cheaper than on-demand."""

    mode: RentMode
    above_fraction: float


class Footprint(Spec):
    """Electricity used in one period, including cooling, and its carbon emissions in the local grid."""

    region: str
    energy_kwh: float
    pue: Figure
    grams_per_kwh: Figure | None
    carbon_kg: float | None
    notes: tuple[str, ...] = ()


class OwnCost(Spec):
    """Cost of owning: upfront, per month, over the horizon, and per hour of use."""

    gpu: str
    count: int
    upfront_usd: float
    upfront: tuple[MoneyTerm, ...]
    borrowed_usd: float
    """Borrowed part of the purchase, repaid with interest by `loan_usd_per_month`."""
    loan_usd_per_month: float
    monthly_cash_usd: float
    """Running costs per month, without the loan."""
    monthly: tuple[MoneyTerm, ...]
    resale_usd: float
    low_resale_usd: float
    high_resale_usd: float
    resale_source: str
    present_value_usd: float
    equivalent_usd_per_year: float
    usd_per_gpu_hour: float
    usd_per_period: float
    """Share of all costs per run; for services and daily hours, per month."""
    usd_per_million_tokens: float | None
    amortised_usd_per_gpu_hour: float
    """Hourly loss of value of a new system on the price trend, as in research on training costs."""
    rate_of_return: float | None
    """Yearly rate of return from buying instead of renting."""
    books: OwnedMonth
    """Average month from the accounting view."""
    depreciation_usd_by_year: tuple[float, ...]
    carbon: Footprint
    """Footprint per month."""
    oldest_price_date: str | None
    notes: tuple[str, ...] = ()


class BreakEven(Spec):
    """Break-even points between renting and owning; each missing point has a reason."""

    gpu_hours: float | None
    utilization_fraction: float | None
    years: float | None
    reason: str | None = None
    years_reason: str | None = None
    simple_gpu_hours: float | None = None
    """Purchase price divided by the hourly saving, without resale, interest and fixed costs, as in vendors' papers."""
    books_utilization_fraction: float | None = None
    books_payback_months: int | None = None


class CostPoint(Spec):
    """Cumulative cost of renting and owning up to one time, in present value."""

    years: float
    gpu_hours: float
    rent_usd: float
    own_usd: float
    rent_low_usd: float
    rent_high_usd: float
    own_low_usd: float
    own_high_usd: float


class Decision(Spec):
    """The decision to rent or to buy, with the figures behind it."""

    decision: Literal["rent", "buy"]
    provider: str
    region: str | None
    offer_id: str
    gpu: str
    count: int
    planned_gpu_hours: float
    planned_utilization_fraction: float
    break_even_gpu_hours: float | None
    break_even_reason: str | None
    rent_usd: float
    own_usd: float
    saves_usd: float
    flips_at_utilization_fraction: float | None
    flips_at_card_price_usd: float | None
    flips_at_rent_usd_per_gpu_hour: float | None
    horizon_years: float
    oldest_price_date: str | None
    undated: tuple[str, ...] = ()


class CostResult(Spec):
    """Costs of renting and owning for one job."""

    rent: RentCost | None
    own: OwnCost | None
    break_even: BreakEven | None
    curve: tuple[CostPoint, ...] = ()
    answer: Decision | None = None
    unsupported: str | None = None
    notes: tuple[str, ...] = ()


def figure_symbol(name: str, figure: Figure, meaning: str) -> MoneySymbol:
    """Return the symbol `name` with the value and source of `figure`."""
    return MoneySymbol(name, figure.value, meaning, figure.source, figure.date)
