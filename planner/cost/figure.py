"""Input figures of cost estimates, with their uncertainty and source."""

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
