"""The answers about money: each figure with its formula, its symbols, and where and when they come from."""

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
    """One letter of a formula, with its value here and where that comes from."""

    name: str
    value: SymbolValue
    meaning: str
    source: str
    date: str | None = None


@dataclass(frozen=True, slots=True)
class MoneyTerm:
    """An amount of money and how it was found; `low_usd` and `high_usd` bound it."""

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
    """What renting one offer costs for one job; for services and daily hours, for one month."""

    offer_id: str
    provider: str
    region: str | None
    """Where the offer is; none where its source does not say."""
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
    """A commitment of an offer, and the share of the time from which on it is cheaper than on-demand."""

    mode: RentMode
    above_fraction: float


class Footprint(Spec):
    """The electricity of one period, with that of cooling, and the carbon that the grid there stands for."""

    region: str
    energy_kwh: float
    pue: Figure
    grams_per_kwh: Figure | None
    carbon_kg: float | None
    notes: tuple[str, ...] = ()


class OwnCost(Spec):
    """What owning costs: at once, each month, over the horizon, and for each hour that it is used."""

    gpu: str
    count: int
    upfront_usd: float
    upfront: tuple[MoneyTerm, ...]
    borrowed_usd: float
    """Of what is bought, paid back with interest by `loan_usd_per_month`."""
    loan_usd_per_month: float
    monthly_cash_usd: float
    """What running costs, without the loan."""
    monthly: tuple[MoneyTerm, ...]
    resale_usd: float
    low_resale_usd: float
    high_resale_usd: float
    resale_source: str
    present_value_usd: float
    equivalent_usd_per_year: float
    usd_per_gpu_hour: float
    usd_per_period: float
    """Of one run; for services and daily hours, of one month."""
    usd_per_million_tokens: float | None
    amortised_usd_per_gpu_hour: float
    """The value that a new system loses by the trend, as research on the cost of training counts."""
    rate_of_return: float | None
    """Of buying instead of renting, a year."""
    books: OwnedMonth
    """The average month as the books see it."""
    depreciation_usd_by_year: tuple[float, ...]
    carbon: Footprint
    """Of one month."""
    oldest_price_date: str | None
    notes: tuple[str, ...] = ()


class BreakEven(Spec):
    """Where renting and owning cost the same; each is missing with its reason where there is no such point."""

    gpu_hours: float | None
    utilization_fraction: float | None
    years: float | None
    reason: str | None = None
    years_reason: str | None = None
    simple_gpu_hours: float | None = None
    """The purchase over what an hour saves, without resale, interest and fixed costs, as vendors' papers count."""
    books_utilization_fraction: float | None = None
    books_payback_months: int | None = None


class CurvePoint(Spec):
    """What was spent by a moment, in today's money."""

    years: float
    gpu_hours: float
    rent_usd: float
    own_usd: float
    rent_low_usd: float
    rent_high_usd: float
    own_low_usd: float
    own_high_usd: float


class Answer(Spec):
    """The facts of the one sentence that answers whether to rent or to buy."""

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
    """Renting beside owning for one job."""

    rent: RentCost | None
    own: OwnCost | None
    break_even: BreakEven | None
    curve: tuple[CurvePoint, ...] = ()
    answer: Answer | None = None
    unsupported: str | None = None
    notes: tuple[str, ...] = ()


def symbol(name: str, figure: Figure, meaning: str) -> MoneySymbol:
    """Return the letter that stands for `figure`."""
    return MoneySymbol(name, figure.value, meaning, figure.source, figure.date)
