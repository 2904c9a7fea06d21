"""Hardware options for a job, the limits on them, and their ranking."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.cost.terms import RentMode
from planner.memory.result import Verdict
from planner.performance.result import Basis, Bound

Acquisition = Literal["rent", "own"]


class Wish(Spec):
    """Limits on hardware options; `None` means no limit. Cost and time are per run, for services per month."""

    budget_usd: float | None = Field(
        default=None, gt=0, le=1e9, allow_inf_nan=False, description="highest cost of the run, or per month without one"
    )
    max_price_usd: float | None = Field(
        default=None, gt=0, le=1e9, allow_inf_nan=False, description="purchase price of all owned GPUs together"
    )
    deadline_hours: float | None = Field(
        default=None, gt=0, le=1e6, allow_inf_nan=False, description="longest duration of a run"
    )
    power_limit_watts: float | None = Field(
        default=None, gt=0, le=1e8, allow_inf_nan=False, description="board power of all GPUs together"
    )
    having: tuple[Acquisition, ...] = Field(default=("rent", "own"), min_length=1, description="rent, own, or either")
    modes: tuple[RentMode, ...] = Field(default=("on-demand",), min_length=1, description="rental modes")
    counts: tuple[Annotated[int, Field(ge=1, le=4_096)], ...] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of GPUs to consider"
    )
    vendors: tuple[str, ...] = Field(default=(), description="only these makers; empty: all of them")
    include_tight: bool = Field(default=False, description="include tight fits")
    min_tokens_per_second: float | None = Field(
        default=None, gt=0, le=1e12, allow_inf_nan=False, description="of a run in total, otherwise of one answer"
    )
    min_samples_per_second: float | None = Field(
        default=None, gt=0, le=1e12, allow_inf_nan=False, description="of all GPUs together"
    )
    change_plan: bool = Field(
        default=True, description="where the plan does not fit, try changes that cost nothing but speed"
    )
    quantize: bool = Field(default=False, description="such changes may also store the weights in fewer bits")


Award = Literal["cheapest", "fastest", "best value"]


class HardwareOption(Spec):
    """A hardware option: GPUs that the plan fits on, rented or owned, with throughput, job time and job cost."""

    gpu: str
    """Catalog id of the GPU."""
    count: int
    """GPUs of one copy of the model."""
    having: Acquisition
    """Whether the GPUs are rented or owned."""
    period: Literal["run", "month"]
    """What `usd` and `hours` are for: a run, or a month of a service or daily hours."""
    sharing: str = ""
    """Name of the sharding across the GPUs; empty if the model is not sharded."""
    changes: tuple[str, ...] = ()
    """Changes of the plan with which it fits."""
    copies: int = 1
    """Copies of the model that the job needs."""
    machines: int = 1
    """Machines that hold the GPUs of all copies."""
    cards_per_machine: int = 1
    """Most GPUs in one machine."""
    network_bytes_per_s: float | None = None
    """Network that each GPU needs, if the GPUs of a copy are in several machines; else None."""
    network_usd: float | None = None
    """The network's part of an owner's cost."""
    verdict: Verdict
    """Whether the plan fits on the GPUs."""
    free_bytes: int
    """Memory that is left on the fullest GPU."""
    fit_probability: float | None
    """Probability that it fits, from 0 to 1."""
    tokens_per_second: float | None
    """Tokens of all GPUs of a copy together; None for work that is not counted in tokens."""
    samples_per_second: float | None
    """Sequences, images or requests of a copy."""
    output_token_seconds: float | None = None
    """Seconds between two tokens of one answer."""
    bound: Bound | None
    """Resource that takes most of the time."""
    basis: Basis
    """What the speed is based on."""
    hours: float
    """Duration of a run, or hours of use in a month."""
    low_hours: float
    """Hours if the work goes faster than expected, in one case in ten."""
    high_hours: float
    """Hours if the work goes slower than expected, in one case in ten."""
    usd: float
    """What is billed for rented GPUs; the share of all costs over the horizon for owned ones."""
    low_usd: float
    """Lower end of the cost's range."""
    high_usd: float
    """Upper end of the cost's range."""
    power_watts: float | None
    """Board power of all GPUs together, the rated maximum; None if unknown."""
    purchase_usd: float | None = None
    """Price of all GPUs that are bought, or of the servers if these have one price; None for rented or owned GPUs."""
    upfront_usd: float | None = None
    """All that is paid at the start for GPUs that are bought, with hosts and network."""
    offer: str | None = None
    """Id of the rental offer; None for owned GPUs."""
    provider: str | None = None
    """Provider of the rental; None for owned GPUs."""
    mode: RentMode | None = None
    """Rental type; None for owned GPUs."""
    price_date: str | None = None
    """Day of the price; None if unknown."""
    comparable: bool = True
    """Whether the option may be ranked as the cheapest."""
    current: bool = True
    """Whether a rental price has a date and is not older than three months; others do not lead."""
    remarks: tuple[str, ...] = ()
    """What to know about the price, as phrases."""

    @property
    def key(self) -> str:
        """Return the option's key, which identifies it in a recommendation."""
        return f"{self.count}×{self.gpu}·{self.sharing}·{self.offer or self.having}·{self.mode or ''}"

    @property
    def cards(self) -> int:
        """Return the number of GPUs of all copies."""
        return self.count * self.copies

    @property
    def relevant_tokens_per_second(self) -> float | None:
        """Return the tokens per second that a person waits for: all of a run, one answer of a service or daily hours.

        More copies answer more requests, but none of them sooner.
        """
        if self.period == "run" or self.output_token_seconds is None:
            return self.tokens_per_second
        return 1 / self.output_token_seconds

    @property
    def slowness(self) -> float:
        """Return the time for ranking by speed: hours of a run, else seconds per token or sample."""
        speed = self.relevant_tokens_per_second or self.samples_per_second
        return self.hours if self.period == "run" or not speed else 1 / speed


class ExcludedCount(Spec):
    """Number of GPUs or offers excluded for the same reason."""

    reason: str
    count: int


class Recommendation(Spec):
    """All options within the limits, the best three of them, and how many were left out."""

    wish: Wish
    """The limits that were asked for."""
    period: Literal["run", "month"]
    """Period that cost and time refer to."""
    options: tuple[HardwareOption, ...]
    """All options within the limits, the cheapest first."""
    cheapest: HardwareOption | None
    """The cheapest option that may be recommended."""
    fastest: HardwareOption | None
    """The cheapest of the options that are as fast as the fastest."""
    best_value: HardwareOption | None
    """The option with the lowest product of cost and time."""
    pareto: tuple[str, ...]
    """Keys of the options on the Pareto front of time and cost."""
    left_out: tuple[ExcludedCount, ...]
    """Reasons for leaving options out, with their numbers."""
    nearest: HardwareOption | None = None
    """The option that exceeds the limits least, if none is within them."""
    oldest_price_date: str | None = None
    """Day of the oldest price used; None if none has a date."""


_NO_POWER: Final = "its power is unknown"
_OVER_BUDGET: Final = "over the budget"
_OVER_PRICE: Final = "over the highest purchase price"
_AFTER_DEADLINE: Final = "after the deadline"
_OVER_POWER_LIMIT: Final = "over the power limit"
_TOO_SLOW: Final = "slower than the minimum speed"
_AS_FAST: Final = 1.1
"""Times that differ by less are called the same: four of five estimates lie within a factor of 1.22."""
_DEAREST_VALUE: Final = 2.0
"""The best value costs at most this many times the least: a fleet that works twice as fast at twice the cost is as good
by the product of both, whatever it costs."""


def is_within_limits(option: HardwareOption, wish: Wish, left_out: Counter[str]) -> bool:
    """Return whether `option` is within every limit; otherwise count the first limit that it exceeds."""
    reason = next(_exceeded_limits(option, wish), None)
    if reason is not None:
        left_out[reason] += 1
    return reason is None


def _exceeded_limits(option: HardwareOption, wish: Wish) -> Iterator[str]:
    if wish.power_limit_watts is not None and option.power_watts is None:
        yield _NO_POWER
    if wish.power_limit_watts is not None and (option.power_watts or 0) > wish.power_limit_watts:
        yield _OVER_POWER_LIMIT
    if wish.deadline_hours is not None and option.hours > wish.deadline_hours:
        yield _AFTER_DEADLINE
    if wish.budget_usd is not None and option.usd > wish.budget_usd:
        yield _OVER_BUDGET
    if wish.max_price_usd is not None and (option.purchase_usd or 0.0) > wish.max_price_usd:
        yield _OVER_PRICE
    if any(_shortfall(speed, least) > 1 for speed, least in _speeds(option, wish)):
        yield _TOO_SLOW


def _speeds(option: HardwareOption, wish: Wish) -> tuple[tuple[float | None, float | None], ...]:
    return (
        (option.relevant_tokens_per_second, wish.min_tokens_per_second),
        (option.samples_per_second, wish.min_samples_per_second),
    )


def _shortfall(speed: float | None, least: float | None) -> float:
    """Return the factor by which a speed misses its minimum, at least 1; infinity if the speed is unknown."""
    if least is None:
        return 1.0
    return max(1.0, least / speed) if speed else float("inf")


def rank_options(
    allowed: Sequence[HardwareOption],
    candidates: Sequence[HardwareOption],
    wish: Wish,
    period: Literal["run", "month"],
    left_out: Counter[str],
) -> Recommendation:
    """Rank the options: comparable options first, then by cost; and select the best three.

    The best are selected among those whose speed was measured on their family of GPUs, if there are any.
    """
    in_order = sorted(allowed, key=_rank)
    sure = sure_options(in_order)
    others = sure_options(candidates)
    dates = [option.price_date for option in sure if option.price_date]
    return Recommendation(
        wish=wish,
        period=period,
        options=tuple(in_order),
        cheapest=sure[0] if sure else None,
        fastest=_fastest(sure),
        best_value=_best_value(sure),
        pareto=tuple(option.key for option in _pareto_front(sure)),
        left_out=tuple(ExcludedCount(reason=reason, count=count) for reason, count in left_out.most_common() if count),
        nearest=min(others, key=lambda option: _excess_factor(option, wish), default=None) if not sure else None,
        oldest_price_date=min(dates, default=None),
    )


def _rank(option: HardwareOption) -> tuple[bool, float, float, int]:
    """Return the sort key: comparable options by cost, to the cent; then the faster, then the fewer GPUs at once."""
    return not option.comparable, round(option.usd, 2), option.slowness, option.count


def sure_options(options: Sequence[HardwareOption]) -> list[HardwareOption]:
    """Return the options that may be recommended: comparable, of measured families, at current prices.

    Where there are none, first the age of the price is no matter, then the family.
    """
    comparable = [option for option in options if option.comparable]
    measured = [option for option in comparable if option.basis != "unmeasured"] or comparable
    return [option for option in measured if option.current] or measured


def _fastest(cheapest_first: Sequence[HardwareOption]) -> HardwareOption | None:
    """Return the cheapest of the options that are as fast as the fastest, within the uncertainty of the estimates."""
    least = min((option.slowness for option in cheapest_first), default=0.0)
    return next((option for option in cheapest_first if option.slowness <= _AS_FAST * least), None)


def _best_value(cheapest_first: Sequence[HardwareOption]) -> HardwareOption | None:
    """Return the option with the lowest product of cost and time, among those that cost up to twice the least."""
    affordable = [option for option in cheapest_first if option.usd <= _DEAREST_VALUE * cheapest_first[0].usd]
    return min(affordable, key=lambda option: option.usd * option.slowness, default=None)


def _pareto_front(cheapest_first: Sequence[HardwareOption]) -> Iterator[HardwareOption]:
    """Yield the options that no other option beats in both time and cost."""
    fastest = float("inf")
    for option in cheapest_first:
        if option.slowness < fastest:
            fastest = option.slowness
            yield option


def excess_factors(option: HardwareOption, wish: Wish) -> Iterator[tuple[str, float]]:
    """Yield each limit that an option exceeds, with the factor by which it does; for speeds, the minimum over it."""
    factors = (
        ("the budget", _excess(option.usd, wish.budget_usd)),
        ("the highest purchase price", _excess(option.purchase_usd or 0.0, wish.max_price_usd)),
        ("the deadline", _excess(option.hours, wish.deadline_hours)),
        ("the power limit", _excess(option.power_watts, wish.power_limit_watts)),
        ("too slow", max(_shortfall(speed, least) for speed, least in _speeds(option, wish))),
    )
    return ((limit, factor) for limit, factor in factors if factor > 1)


def _excess(value: float | None, limit: float | None) -> float:
    """Return the factor by which a value exceeds its limit, at least 1; infinity if the value is unknown."""
    if limit is None:
        return 1.0
    return float("inf") if value is None else max(1.0, value / limit)


def _excess_factor(option: HardwareOption, wish: Wish) -> float:
    """Return the product of the factors by which an option exceeds the limits in `wish`."""
    return prod(factor for _limit, factor in excess_factors(option, wish))
