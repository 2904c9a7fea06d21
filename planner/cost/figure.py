"""Input figures of cost estimates with their uncertainty and source: published constants and egress tariffs, too."""

import math
from collections.abc import Iterable
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec

Certainty = Literal["quoted", "measured", "derived", "assumed", "yours"]
"""quoted: a published price or rate; derived: by a formula; yours: entered by the user."""
DATE: Final = r"^\d{4}-\d{2}-\d{2}$"
PARTIAL_DATE: Final = r"^\d{4}(-\d{2}(-\d{2})?)?$"
USER_SOURCE: Final = "your own figure"


class Figure(Spec):
    """A value with its 90 % range, source and date; a value without a range is exact."""

    value: float = Field(allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False, description="5th percentile")
    high: float | None = Field(default=None, allow_inf_nan=False, description="95th percentile")
    source: str = Field(min_length=3)
    date: str | None = Field(default=None, pattern=PARTIAL_DATE, description="a day, month or year; none: not stated")
    certainty: Certainty = "quoted"

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if not self.lowest <= self.value <= self.highest:
            raise ValueError(f"{self.value:g} is not between {self.lowest:g} and {self.highest:g}")
        return self

    @classmethod
    def own(cls, value: float) -> Self:
        """Return an exact figure entered by the user."""
        return cls(value=value, source=USER_SOURCE, certainty="yours")

    @property
    def lowest(self) -> float:
        """Return the low end of the range."""
        return self.value if self.low is None else self.low

    @property
    def highest(self) -> float:
        """Return the high end of the range."""
        return self.value if self.high is None else self.high

    def quantile(self, deviations: float) -> float:
        """Return the value at a number of standard deviations from the median, which is `value`.

        **Formula** value · (bound / value)^(|z| / 1.645), with the bound on that side: a log-normal distribution on
        each side, and a single one if the range is symmetric in its logarithm.

        **Source** Epoch AI, training-cost-trends: log-normals from 90 % ranges.

        **Assumes** a linear spread instead for ranges that reach zero and for negative figures.
        """
        return quantiles(self.value, self.lowest, self.highest, (deviations,))[0]


def quantiles(value: float, low: float, high: float, deviations: Iterable[float]) -> list[float]:
    """Return the values at each number of standard deviations from the median `value`, as `Figure.quantile` does."""
    if value > 0 < low:
        falling, rising = math.log(value / low) / NINETY_PERCENT, math.log(high / value) / NINETY_PERCENT
        return [value * math.exp(z * (rising if z > 0 else falling)) for z in deviations]
    return [_quantile_on_its_side(value, high if z > 0 else low, abs(z) / NINETY_PERCENT) for z in deviations]


def _quantile_on_its_side(value: float, bound: float, share: float) -> float:
    if bound > 0 < value:
        return value * math.exp(share * math.log(bound / value))
    return value + share * (bound - value)


NINETY_PERCENT: Final = 1.6448536269514722
"""Standard deviations on either side of the mean that include 90 % of a normal distribution."""
TEN_TO_NINETY: Final = 1.2815515655446004
"""Standard deviations from the median to its 90th percentile."""


class Constant(Spec):
    """One published number, with its source."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    kind: str = Field(min_length=2)
    name: str = Field(min_length=2)
    value: float = Field(ge=0, allow_inf_nan=False)
    unit: str = Field(min_length=1)
    date: str | None = Field(default=None, pattern=PARTIAL_DATE, description="a day, month or year; none: not stated")
    source: str = Field(min_length=3)
    notes: tuple[str, ...] = ()

    @property
    def figure(self) -> Figure:
        """Return the constant as a cost figure."""
        return Figure(value=self.value, source=self.source, date=self.date)


class EgressTier(Spec):
    """Egress price per gigabyte up to a monthly total; the last tier has no bound."""

    up_to_gb: float | None
    usd_per_gb: float


class EgressTariff(Spec):
    """One provider's monthly egress tariff."""

    provider: str
    free_gb: float
    tiers: tuple[EgressTier, ...]
    source: str
    date: str | None

    def usd(self, gigabytes: float) -> float:
        """Return the price of `gigabytes` of egress in one month.

        **Formula** the free gigabytes, then each tier up to its bound.

        **Assumes** that bounds include the free gigabytes.
        """
        paid, total = min(self.free_gb, gigabytes), 0.0
        for tier in self.tiers:
            bound = gigabytes if tier.up_to_gb is None else min(tier.up_to_gb, gigabytes)
            total += max(bound - paid, 0.0) * tier.usd_per_gb
            paid = max(paid, bound)
        return total


def egress_tariffs(constants: tuple[Constant, ...]) -> dict[str, EgressTariff]:
    """Return the egress tariffs by provider, from the constants of kind `egress`."""
    free = {constant.name: constant for constant in constants if constant.kind == "egress_free"}
    return {provider: _egress_tariff(provider, allowance, constants) for provider, allowance in free.items()}


def _egress_tariff(provider: str, allowance: Constant, constants: tuple[Constant, ...]) -> EgressTariff:
    named = [each for each in constants if each.kind == "egress" and each.name.startswith(f"{provider} ")]
    tiers = [EgressTier(up_to_gb=_tier_bound_gb(each.name), usd_per_gb=each.value) for each in named]
    return EgressTariff(
        provider=provider,
        free_gb=allowance.value,
        tiers=tuple(sorted(tiers, key=lambda tier: tier.up_to_gb or float("inf"))),
        source=allowance.source,
        date=allowance.date,
    )


def _tier_bound_gb(name: str) -> float | None:
    """Return the bound in GB from a name such as `AWS to 10000 GB`; `AWS above` has none."""
    words = name.split()
    return float(words[-2]) if words[-1] == "GB" else None
