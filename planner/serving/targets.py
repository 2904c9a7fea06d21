"""Targets of a service: how long its users wait at most, as percentiles, and the share of good answers."""

import re
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.errors import SpecError

Latency = Literal["ttft", "itl", "tpot", "e2e"]
"""Times of a request: to its first token; between two tokens; between tokens in the mean of a request; to its end."""
LATENCY_TITLES: Final[dict[Latency, str]] = {
    "ttft": "time to first token",
    "itl": "time between tokens",
    "tpot": "mean time between tokens of a request",
    "e2e": "time to the last token",
}
_TARGET: Final = re.compile(
    r"\s*(?:(?:p(?P<percent>\d\d?(?:\.\d+)?)|(?P<mean>mean))\s*=\s*)?(?P<value>\d*\.?\d+)\s*(?P<unit>ms|s)\s*"
)


class LatencyTarget(Spec):
    """A limit on a percentile of a time, or on its mean where `percentile` is None."""

    latency: Latency
    percentile: float | None = Field(default=95.0, gt=0, lt=100, description="none: the mean")
    seconds: float = Field(gt=0, le=1e6, allow_inf_nan=False)

    @property
    def title(self) -> str:
        """Return the target's figure in words: `p95 time to first token`."""
        which = "mean" if self.percentile is None else f"p{self.percentile:g}"
        return f"{which} {LATENCY_TITLES[self.latency]}"


def parse_latency_target(latency: Latency, text: str) -> LatencyTarget:
    """Return the target on `latency` that is written as `p95=1s`, `p99=50ms` or `mean=0.2s`; `1s` is `p95=1s`.

    Raises:
        SpecError: If the text is not such a target.
    """
    found = _TARGET.fullmatch(text)
    if found is None:
        reason = f"{text!r} is not a target such as p95=1s, p99=50ms or mean=0.2s"
        hint = "Write a percentile below 100 or mean, then =, then a time with its unit, s or ms; 1s means p95=1s."
        raise SpecError(latency, reason, hint)
    seconds = float(found["value"]) * (1e-3 if found["unit"] == "ms" else 1.0)
    percentile = None if found["mean"] else float(found["percent"] or 95)
    return LatencyTarget(latency=latency, percentile=percentile, seconds=seconds)


class Goodput(Spec):
    """A share of all requests that must meet all of these limits; the other requests may be slower."""

    share: float = Field(default=0.95, gt=0, le=1)
    ttft_seconds: float | None = Field(default=None, gt=0, le=1e6)
    tpot_seconds: float | None = Field(default=None, gt=0, le=1e6)
    e2e_seconds: float | None = Field(default=None, gt=0, le=1e6)


class Targets(Spec):
    """Latency targets of a service: limits on percentiles of its times, and on the share of good answers."""

    limits: tuple[LatencyTarget, ...] = ()
    goodput: Goodput | None = None

    @model_validator(mode="after")
    def _check_distinct(self) -> Self:
        keys = [(limit.latency, limit.percentile) for limit in self.limits]
        if len(set(keys)) != len(keys):
            raise ValueError("each percentile of a time can have one limit only")
        return self
