"""Results of cost estimates: each amount with its formula, symbols, source and date."""

from dataclasses import dataclass
from typing import Literal

from planner.base import Spec
from planner.cost.figure import Certainty, Figure
from planner.cost.owning.accounting import OwnedMonth
from planner.cost.renting.offer import Currency
from planner.cost.terms import RentMode

SymbolValue = float | int | str
Side = Literal["rent", "buy"]
WorkUnitName = Literal["run", "million tokens", "1,000 requests", "GPU-hour"]


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
    billing_increment_seconds: int
    states_increment: bool
    """Whether the offer states its billing increment, which otherwise is that of the terms."""
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
    """Running costs per month, without the loan; of a run that is done once, all that it causes."""
    monthly: tuple[MoneyTerm, ...]
    resale_usd: float
    low_resale_usd: float
    high_resale_usd: float
    resale_source: str
    sale_today_usd: float | None = None
    """Second-hand price of owned cards today, which is not counted; None if unknown, or if they are not owned."""
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
    """Footprint per month; of a run that is done once, of that run."""
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


class SideFigures(Spec):
    """Costs of one side: a month, at the start, and for a unit of the job's work."""

    month_usd: float | None
    """Payments of an average month; None for a run that is done once."""
    start_usd: float
    """Payments before the first hour: what is bought, without the borrowed part."""
    unit_usd: float
    """All costs for one `unit` of work; owned cards lose their value over the horizon."""
    unit: WorkUnitName
    resale_usd: float = 0.0
    """Resale value at the horizon, in today's money."""
    running_usd: float | None = None
    """Running costs of a run that is done once; None for other jobs."""


class Flip(Spec):
    """A value of one input at which the cheaper side changes, and the plan field that would try it.

    Only values within reach are listed; of a service, none of its use.
    """

    name: Literal["utilization", "card-price", "server-price", "rental-price"]
    value: float
    """A fraction of the time, USD for one card or server, or USD per GPU-hour."""
    now: float
    """Value of the input in the plan."""
    direction: Literal["under", "over"]
    """Side of `value` on which the other side is cheaper."""
    field: str | None = None
    """Field of the plan, such as `cost.job.hours_per_day`; None if no single field would try it."""
    try_value: float | None = None
    """Value of `field` that is a little beyond the flip."""


class Decision(Spec):
    """The decision to rent or to buy, with the figures behind it.

    `decision` is the cheaper side of the central estimate. `verdict` is that side if enough of the draws agree, and
    `confidence` is the share of the draws in which the side `more_often_cheaper` is the cheaper one. Of a card that is
    owned already, "buy" means to use it.
    """

    decision: Side
    verdict: Literal["rent", "buy", "too-close"]
    confidence: float
    more_often_cheaper: Side
    draws: int
    owned: bool = False
    rent_figures: SideFigures
    own_figures: SideFigures
    flips: tuple[Flip, ...] = ()
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
    flips_at_server_price_usd: float | None = None
    """Price of a server, if whole servers are bought instead of cards."""
    flips_at_rent_usd_per_gpu_hour: float | None
    horizon_years: float
    oldest_price_date: str | None
    undated: tuple[str, ...] = ()


class Machines(Spec):
    """The machines that a job needs at once: groups of cards that each run the plan."""

    groups: int
    cards_per_group: int
    cards: int
    rented: int | None
    """Machines to rent; None without an offer."""
    owned: int | None
    """Servers to own; None if the cost of owning is unknown."""
    power_watts: float | None
    """Board power of all cards; None if unknown."""


class RentalMode(Spec):
    """Cost of the job in one rental mode, at the offer that is cheapest in it or was named."""

    mode: RentMode
    provider: str
    offer_id: str
    price_date: str | None
    usd: float
    """Cost of one run; for services and daily hours, of one month."""
    month_usd: float | None
    """Payments of an average month; None for a run that is done once."""
    usd_per_gpu_hour: float
    horizon_usd: float | None
    """Present value of renting over the horizon; None if the cost of owning is unknown."""


class Blocked(Spec):
    """The reason why a plan cannot run, so that it is no question whether to rent or buy its cards."""

    code: Literal["does-not-fit", "not-supported", "speed-unknown"]
    sentence: str
    needed_bytes: int | None = None
    """Memory that the plan needs on its fullest card."""
    usable_bytes: int | None = None
    """Memory that is usable on that card."""


class CostResult(Spec):
    """Costs of renting and owning for one job; a plan that cannot run is `blocked` and has no answer."""

    rent: RentCost | None
    own: OwnCost | None
    break_even: BreakEven | None
    curve: tuple[CostPoint, ...] = ()
    answer: Decision | None = None
    blocked: Blocked | None = None
    machines: Machines | None = None
    rental_modes: tuple[RentalMode, ...] = ()
    """The job in every rental mode that is offered, whichever mode is chosen."""
    unsupported: str | None = None
    notes: tuple[str, ...] = ()


def figure_symbol(name: str, figure: Figure, meaning: str) -> MoneySymbol:
    """Return the symbol `name` with the value and source of `figure`."""
    return MoneySymbol(name, figure.value, meaning, figure.source, figure.date)
