"""Hardware options for a job, the limits on them, and their ranking."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.cost.terms import RentMode
from planner.memory.result import Verdict
from planner.performance.result import Basis, Bound

Acquisition = Literal["rent", "own"]


class Wish(Spec):
    """Limits on hardware options; `None` means no limit. Cost and time are per run, for services per month."""

    budget_usd: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False)
    deadline_hours: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    power_limit_watts: float | None = Field(
        default=None, gt=0, le=1e8, allow_inf_nan=False, description="board power of all cards together"
    )
    having: tuple[Acquisition, ...] = Field(default=("rent", "own"), min_length=1, description="rent, own, or either")
    modes: tuple[RentMode, ...] = Field(default=("on-demand",), min_length=1, description="rental modes")
    counts: tuple[Annotated[int, Field(ge=1, le=4_096)], ...] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of cards to consider"
    )
    vendors: tuple[str, ...] = Field(default=(), description="only these makers; empty: all of them")
    include_tight: bool = Field(default=False, description="include tight fits")


Award = Literal["cheapest", "fastest", "best value"]


class HardwareOption(Spec):
    """A hardware option: cards that the plan fits on, rented or owned, with throughput, job time and job cost.

    `usd` and `hours` are per `period`: a run, or a month of a service or daily hours. Rented cards cost what is billed,
    owned ones their share of all costs over the horizon. `comparable` options may be ranked as the cheapest.
    """

    gpu: str
    count: int
    having: Acquisition
    period: Literal["run", "month"]
    sharing: str = ""
    """Name of the sharding across the cards; empty if the model is not sharded."""
    verdict: Verdict
    free_bytes: int
    fit_probability: float | None
    tokens_per_second: float | None
    samples_per_second: float | None
    bound: Bound | None
    basis: Basis
    hours: float
    low_hours: float
    high_hours: float
    usd: float
    low_usd: float
    high_usd: float
    power_watts: float | None
    offer: str | None = None
    provider: str | None = None
    mode: RentMode | None = None
    price_date: str | None = None
    comparable: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the option's key, which identifies it in a recommendation."""
        return f"{self.count}×{self.gpu}·{self.offer or self.having}·{self.mode or ''}"

    @property
    def slowness(self) -> float:
        """Return the time for ranking by speed: hours of a run, else seconds per token or sample."""
        throughput = self.tokens_per_second or self.samples_per_second
        return self.hours if self.period == "run" or not throughput else 1 / throughput


class ExcludedCount(Spec):
    """Number of cards or offers excluded for the same reason."""

    reason: str
    count: int


class Recommendation(Spec):
    """All options within the limits, the cheapest first, the best three, and the excluded counts.

    `pareto` are the keys of the options on the Pareto front of time and cost. If nothing is within the limits,
    `nearest` is the option that exceeds them least.
    """

    wish: Wish
    period: Literal["run", "month"]
    """Period that cost and time refer to."""
    options: tuple[HardwareOption, ...]
    cheapest: HardwareOption | None
    fastest: HardwareOption | None
    best_value: HardwareOption | None
    pareto: tuple[str, ...]
    left_out: tuple[ExcludedCount, ...]
    nearest: HardwareOption | None = None
    oldest_price_date: str | None = None


_NO_POWER: Final = "its power is unknown"
_OVER_BUDGET: Final = "over the budget"
_AFTER_DEADLINE: Final = "after the deadline"
_OVER_POWER_LIMIT: Final = "over the power limit"


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


def rank_options(
    allowed: Sequence[HardwareOption],
    candidates: Sequence[HardwareOption],
    wish: Wish,
    period: Literal["run", "month"],
    left_out: Counter[str],
) -> Recommendation:
    """Rank the options: comparable options first, then by cost; and select the best three."""
    in_order = sorted(allowed, key=lambda option: (not option.comparable, option.usd, option.hours))
    sure = [option for option in in_order if option.comparable]
    others = [option for option in candidates if option.comparable]
    dates = [option.price_date for option in in_order if option.price_date]
    return Recommendation(
        wish=wish,
        period=period,
        options=tuple(in_order),
        cheapest=sure[0] if sure else None,
        fastest=min(sure, key=lambda option: (option.slowness, option.usd), default=None),
        best_value=min(sure, key=lambda option: option.usd * option.slowness, default=None),
        pareto=tuple(option.key for option in _pareto_front(sure)),
        left_out=tuple(ExcludedCount(reason=reason, count=count) for reason, count in left_out.most_common() if count),
        nearest=min(others, key=lambda option: _excess_factor(option, wish), default=None) if not sure else None,
        oldest_price_date=min(dates, default=None),
    )


def _pareto_front(cheapest_first: Sequence[HardwareOption]) -> Iterator[HardwareOption]:
    """Yield the options that no other option beats in both time and cost."""
    fastest = float("inf")
    for option in cheapest_first:
        if option.slowness < fastest:
            fastest = option.slowness
            yield option


def _excess_factor(option: HardwareOption, wish: Wish) -> float:
    """Return the product of the factors by which an option exceeds the limits in `wish`."""
    limits = (
        (option.usd, wish.budget_usd),
        (option.hours, wish.deadline_hours),
        (option.power_watts or float("inf"), wish.power_limit_watts),
    )
    times = 1.0
    for value, limit in limits:
        times *= 1.0 if limit is None else max(1.0, value / limit)
    return times
