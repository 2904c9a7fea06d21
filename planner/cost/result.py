"""Results of cost estimates: each amount with its formula, symbols, source and date."""

from dataclasses import dataclass
from typing import Literal

from planner.base import Spec
from planner.cost.figure import Certainty, Figure
from planner.cost.owning.accounting import OwnedMonth
from planner.cost.renting.offer import Currency
from planner.cost.terms import RentMode, Side

SymbolValue = float | int | str
WorkUnitName = Literal["run", "million output tokens", "1,000 requests", "GPU-hour"]


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
    """A cost term with its derivation and range."""

    name: str
    """What is paid for, such as machines, GPUs or energy."""
    usd: float
    """Central amount in USD."""
    formula: str
    """Formula in symbols; its value is `usd`."""
    symbols: tuple[MoneySymbol, ...]
    """The formula's variables with their values, sources and dates."""
    source: str
    """Where the price comes from."""
    certainty: Certainty
    """Whether the amount is published, assumed or the user's own."""
    date: str | None
    """Day of the price; None if unknown."""
    low_usd: float
    """Lower end of the amount's range."""
    high_usd: float
    """Upper end of the amount's range."""


class RentCost(Spec):
    """Cost of renting one offer for one job; for services and daily hours, for one month."""

    offer_id: str
    """Id of the offer in the catalog."""
    provider: str
    """Company or marketplace that rents the machines out."""
    region: str | None
    """Region of the offer; None if the source does not state it."""
    billed_currency: Currency | None
    """Currency of the bill; None if the source does not state it."""
    mode: RentMode
    """On demand, spot, or reserved for one or three years."""
    instances: int
    """Machines that are rented at once."""
    gpu_count: float
    """GPUs in one machine."""
    hours: float
    """Hours of work of one run or month."""
    low_hours: float
    """Hours if the work goes faster than expected, in one case in ten."""
    high_hours: float
    """Hours if the work goes slower than expected, in one case in ten."""
    billed_hours: float
    """Hours that are billed, with setup, interruptions and rounding."""
    billing_increment_seconds: int
    """Unit of time to which hours are rounded up."""
    states_increment: bool
    """Whether the offer states its billing increment, which otherwise is that of the terms."""
    usd: float
    """Cost of one run; for services and daily hours, of one month."""
    low_usd: float
    """Lower end of the cost's range."""
    high_usd: float
    """Upper end of the cost's range."""
    usd_per_gpu_hour: float
    """Price of one GPU for an hour of work."""
    terms: tuple[MoneyTerm, ...]
    """Parts of the cost, which sum to `usd`."""
    oldest_price_date: str | None
    """Day of the oldest price used; None if none has a date."""
    usd_per_million_tokens: float | None = None
    """Cost of a million tokens; None for work that is not counted in tokens."""
    checkpoint_interval_hours: float | None = None
    """Best time between two checkpoints of a spot machine; None for other rentals."""
    commitments: "tuple[Commitment, ...]" = ()
    """Reservations with the utilization above which each is cheaper than on demand."""
    carbon: "Footprint | None" = None
    """Electricity and emissions of one run or month; None if unknown."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""


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
    """Catalog id of the GPU."""
    count: int
    """GPUs that are owned."""
    upfront_usd: float
    """Price of the purchase, network and installation included."""
    upfront: tuple[MoneyTerm, ...]
    """Parts of the purchase, which sum to `upfront_usd`."""
    borrowed_usd: float
    """Borrowed part of the purchase, repaid with interest by `loan_usd_per_month`."""
    loan_usd_per_month: float
    """Monthly payment for the borrowed part of the purchase."""
    monthly_cash_usd: float
    """Running costs per month, without the loan; of a run that is done once, all that it causes."""
    monthly: tuple[MoneyTerm, ...]
    """Parts of the running costs, which sum to `monthly_cash_usd`."""
    resale_usd: float
    """Expected selling price at the horizon."""
    low_resale_usd: float
    """Lower end of the selling price's range."""
    high_resale_usd: float
    """Upper end of the selling price's range."""
    resale_source: str
    """Where the loss of value comes from."""
    sale_today_usd: float | None = None
    """Second-hand price of owned GPUs today, which is not counted; None if unknown, or if they are not owned."""
    present_value_usd: float
    """All costs over the horizon in today's money, less the resale value."""
    equivalent_usd_per_year: float
    """Equal yearly payment with the same present value."""
    usd_per_gpu_hour: float
    """All costs for an hour of use of one GPU."""
    usd_per_period: float
    """Share of all costs per run; for services and daily hours, per month."""
    usd_per_million_tokens: float | None
    """All costs for a million tokens; None for work that is not counted in tokens."""
    amortised_usd_per_gpu_hour: float
    """Hourly loss of value of a new system on the price trend, as in research on training costs."""
    rate_of_return: float | None
    """Yearly rate of return from buying instead of renting."""
    books: OwnedMonth
    """Average month from the accounting view."""
    depreciation_usd_by_year: tuple[float, ...]
    """Loss of value in the books, year by year."""
    carbon: Footprint
    """Footprint per month; of a run that is done once, of that run."""
    oldest_price_date: str | None
    """Day of the oldest price used; None if none has a date."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""


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
    """All costs for one `unit` of work; owned GPUs lose their value over the horizon."""
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
    """A fraction of the time, USD for one GPU or server, or USD per GPU-hour."""
    now: float
    """Value of the input in the plan."""
    direction: Literal["under", "over"]
    """Side of `value` on which the other side is cheaper."""
    field: str | None = None
    """Field of the plan, such as `cost.job.hours_per_day`; None if no single field would try it."""
    try_value: float | None = None
    """Value of `field` that is a little beyond the flip."""


class Decision(Spec):
    """The decision to rent or to buy, with the figures behind it."""

    decision: Side
    """Cheaper side of the central estimate."""
    verdict: Literal["rent", "buy", "too-close"]
    """`decision` if enough of the draws agree with it, else too close to call."""
    confidence: float
    """Share of the draws in which `more_often_cheaper` is cheaper."""
    more_often_cheaper: Side
    """Side that is cheaper in more of the draws."""
    draws: int
    """Number of draws of the uncertain inputs."""
    owned: bool = False
    """Whether the GPUs are owned already; "buy" then means to use them."""
    chosen: Side | None = None
    """Side that the plan chooses; None if it leaves this to the decision."""
    rent_figures: SideFigures
    """Costs of renting by month, at the start and per unit of work."""
    own_figures: SideFigures
    """Costs of owning by month, at the start and per unit of work."""
    flips: tuple[Flip, ...] = ()
    """Values of single inputs at which the cheaper side changes."""
    provider: str
    """Provider of the rental."""
    region: str | None
    """Region of the rental; None if the source does not state it."""
    offer_id: str
    """Id of the rental's offer."""
    gpu: str
    """Catalog id of the GPU."""
    count: int
    """GPUs that the job needs at once."""
    planned_gpu_hours: float
    """Hours of use of all GPUs over the horizon."""
    planned_utilization_fraction: float
    """Share of the time in which the GPUs are used."""
    break_even_gpu_hours: float | None
    """Hours of use from which owning is cheaper; None if there is no such number."""
    break_even_reason: str | None
    """Why there is no break-even."""
    rent_usd: float
    """Cost of renting over the horizon in today's money."""
    own_usd: float
    """Cost of owning over the horizon in today's money."""
    saves_usd: float
    """What the cheaper side saves over the horizon."""
    flips_at_utilization_fraction: float | None
    """Share of the time in use at which the cheaper side changes."""
    flips_at_card_price_usd: float | None
    """Price of a GPU at which the cheaper side changes."""
    flips_at_server_price_usd: float | None = None
    """Price of a server, if whole servers are bought instead of GPUs."""
    flips_at_rent_usd_per_gpu_hour: float | None
    """Rental price at which the cheaper side changes."""
    horizon_years: float
    """Time over which both sides are compared."""
    oldest_price_date: str | None
    """Day of the oldest price used; None if none has a date."""
    undated: tuple[str, ...] = ()
    """Names of the cost terms whose prices have no date."""

    @property
    def side_in_use(self) -> Side:
        """Return the chosen side, else the cheaper one; if the decision is too close to call, renting."""
        return self.chosen or ("buy" if self.verdict == "buy" else "rent")


class Machines(Spec):
    """The machines that a job needs at once: groups of GPUs that each run the plan."""

    groups: int
    cards_per_group: int
    cards: int
    rented: int | None
    """Machines to rent; None without an offer."""
    owned: int | None
    """Servers to own; None if the cost of owning is unknown."""
    power_watts: float | None
    """Board power of all GPUs; None if unknown."""


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
    """The reason why a plan cannot run, so that there is nothing to decide between renting and buying its GPUs."""

    code: Literal["does-not-fit", "not-supported", "speed-unknown"]
    sentence: str
    needed_bytes: int | None = None
    """Memory that the plan needs on its fullest GPU."""
    usable_bytes: int | None = None
    """Memory that is usable on that GPU."""


class CostResult(Spec):
    """Costs of renting and owning for one job; a plan that cannot run is `blocked` and has no answer."""

    rent: RentCost | None
    """Cost of renting; None without an offer."""
    own: OwnCost | None
    """Cost of owning; None if it is unknown."""
    break_even: BreakEven | None
    """Use and time from which owning is cheaper."""
    curve: tuple[CostPoint, ...] = ()
    """Cumulative costs of both sides over time."""
    answer: Decision | None = None
    """The decision; None if one side has no price, or if the plan cannot run."""
    blocked: Blocked | None = None
    """Why the plan cannot run; None if it can."""
    machines: Machines | None = None
    """GPUs and machines that the job needs at once."""
    rental_modes: tuple[RentalMode, ...] = ()
    """The job in every rental mode that is offered, whichever mode is chosen."""
    unsupported: str | None = None
    """Reason if the job has no cost at all."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""


def figure_symbol(name: str, figure: Figure, meaning: str) -> MoneySymbol:
    """Return the symbol `name` with the value and source of `figure`."""
    return MoneySymbol(name, figure.value, meaning, figure.source, figure.date)
