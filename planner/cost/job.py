"""What is to be done: a run, a service, or hours of a day."""

import math
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec

WorkUnit = Literal["tokens", "samples", "epochs", "steps", "hours"]
HOURS_PER_YEAR: Final = 8_766.0
"""Hours of a year of 365.25 days."""
_HOURS_PER_DAY: Final = 24


class Run(Spec):
    """A training or a batch of work that ends, once or several times a year."""

    kind: Literal["run"] = "run"
    amount: float = Field(gt=0, le=1e18, allow_inf_nan=False, description="of the unit")
    unit: WorkUnit = "hours"
    dataset_samples: float | None = Field(default=None, gt=0, description="samples of an epoch")
    repeats_per_year: float | None = Field(default=None, gt=0, le=1e6, description="none: once, and not again")
    checkpoint_seconds: float = Field(default=0.0, ge=0, le=86_400, description="to write one, while nothing else runs")
    checkpoint_interval_hours: float | None = Field(default=None, gt=0, le=10_000, description="none: the best one")
    restart_seconds: float = Field(default=0.0, ge=0, le=86_400, description="until it runs again after a stop")
    evaluation_fraction: float = Field(default=0.0, ge=0, le=10, description="of the training time, on top of it")
    checkpoint_gb: float = Field(default=0.0, ge=0, le=1e9, description="of all checkpoints that are kept")
    dataset_gb: float = Field(default=0.0, ge=0, le=1e9)
    egress_gb: float = Field(default=0.0, ge=0, le=1e9, description="taken out of the cloud, each time")


class Service(Spec):
    """Requests that arrive day and night."""

    kind: Literal["service"] = "service"
    requests_per_day: float = Field(gt=0, le=1e12, allow_inf_nan=False)
    prompt_tokens: float = Field(default=1_000, ge=0, le=1e8)
    output_tokens: float = Field(default=300, gt=0, le=1e8)
    peak_factor: float = Field(default=2.0, ge=1, le=1_000, description="the busiest moment over the average")
    busy_fraction: float = Field(
        default=0.8, gt=0, le=1, description="of what the cards could answer; beyond it requests wait ever longer"
    )
    hourly_shares: tuple[float, ...] = Field(
        default=(), description="requests of each hour of the day, as shares of any sum; instead of the peak factor"
    )
    scales_down: bool = Field(default=False, description="rented machines are given back while demand is low")
    model_gb: float = Field(default=0.0, ge=0, le=1e9, description="stored all the time")
    egress_gb_per_month: float = Field(default=0.0, ge=0, le=1e9)

    @model_validator(mode="after")
    def _knows_every_hour(self) -> Self:
        shares = self.hourly_shares
        if shares and (len(shares) != _HOURS_PER_DAY or min(shares) < 0 or not 0 < sum(shares) < math.inf):
            raise ValueError("hourly_shares needs 24 numbers that are not negative, and not all zero")
        return self


class DailyHours(Spec):
    """Cards that are simply in use for some hours of a day."""

    kind: Literal["daily-hours"] = "daily-hours"
    hours_per_day: float = Field(gt=0, le=24)
    days_per_week: float = Field(default=5.0, gt=0, le=7)
    stored_gb: float = Field(default=0.0, ge=0, le=1e9)


Job = Annotated[Run | Service | DailyHours, Field(discriminator="kind")]
