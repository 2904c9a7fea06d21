"""Jobs: runs, services, and daily hours of use."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec

WorkUnit = Literal["tokens", "samples", "epochs", "steps", "hours"]
HOURS_PER_YEAR: Final = 8_766.0
"""Hours in a year of 365.25 days."""
_HOURS_PER_DAY: Final = 24


class Run(Spec):
    """A training or batch job that ends, done once or several times a year."""

    kind: Literal["run"] = "run"
    amount: float = Field(gt=0, le=1e18, allow_inf_nan=False, description="in the unit")
    unit: WorkUnit = "hours"
    dataset_samples: float | None = Field(default=None, gt=0, description="samples per epoch")
    repeats_per_year: float | None = Field(default=None, gt=0, le=1e6, description="none: once only")
    checkpoint_seconds: float = Field(
        default=0.0, ge=0, le=86_400, description="to write a checkpoint, while training pauses"
    )
    checkpoint_interval_hours: float | None = Field(default=None, gt=0, le=10_000, description="none: the optimal one")
    restart_seconds: float = Field(default=0.0, ge=0, le=86_400, description="to resume after an interruption")
    evaluation_fraction: float = Field(
        default=0.0, ge=0, le=10, description="evaluation time as a fraction of the training time"
    )
    checkpoint_gb: float = Field(default=0.0, ge=0, le=1e9, description="size of all stored checkpoints")
    dataset_gb: float = Field(default=0.0, ge=0, le=1e9)
    egress_gb: float = Field(default=0.0, ge=0, le=1e9, description="transferred out of the cloud in each run")


class Service(Spec):
    """A service with requests day and night."""

    kind: Literal["service"] = "service"
    requests_per_day: float = Field(gt=0, le=1e12, allow_inf_nan=False)
    prompt_tokens: float = Field(default=1_000, ge=0, le=1e8)
    output_tokens: float = Field(default=300, gt=0, le=1e8)
    peak_factor: float = Field(default=2.0, ge=1, le=1_000, description="peak load divided by the average load")
    busy_fraction: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="planned utilization of the cards at peak load; higher values make requests wait",
    )
    hourly_shares: tuple[float, ...] = Field(
        default=(), description="relative load of each hour of the day, instead of the peak factor"
    )
    scales_down: bool = Field(default=False, description="rented machines are released while demand is low")
    traffic_preset: str | None = Field(
        default=None,
        max_length=100,
        description="kind of service whose lengths, common beginnings and conversations the requests have; none: all "
        "requests have the same lengths",
    )
    burstiness: float = Field(
        default=1.0, gt=0, le=100, description="1: requests arrive at random; lower: in bursts; higher: evenly spread"
    )
    latency_percentile: float = Field(
        default=95.0, ge=50, lt=100, description="percentage of the requests that the latency targets hold for"
    )
    ttft_seconds: float | None = Field(default=None, gt=0, le=1e6, description="latest first token; none: no target")
    tpot_seconds: float | None = Field(
        default=None, gt=0, le=1e6, description="longest mean time between the tokens of an answer"
    )
    e2e_seconds: float | None = Field(default=None, gt=0, le=1e6, description="latest end of an answer")
    model_gb: float = Field(default=0.0, ge=0, le=1e9, description="size of the stored model")
    egress_gb_per_month: float = Field(default=0.0, ge=0, le=1e9)

    @model_validator(mode="after")
    def _check_hourly_shares(self) -> Self:
        shares = self.hourly_shares
        if shares and (len(shares) != _HOURS_PER_DAY or min(shares) < 0 or not 0 < sum(shares) < math.inf):
            raise ValueError("hourly_shares needs 24 non-negative numbers that are not all zero")
        return self


class DailyHours(Spec):
    """Cards that are in use for a number of hours per day."""

    kind: Literal["daily-hours"] = "daily-hours"
    hours_per_day: float = Field(gt=0, le=24)
    days_per_week: float = Field(default=5.0, gt=0, le=7)
    stored_gb: float = Field(default=0.0, ge=0, le=1e9)


Job = Annotated[Run | Service | DailyHours, Field(discriminator="kind")]

DEFAULT_JOBS: Final[Mapping[str, Job]] = MappingProxyType(
    {
        "run": Run(amount=50_000_000, unit="tokens"),
        "service": Service(requests_per_day=10_000),
        "daily-hours": DailyHours(hours_per_day=8.0),
    }
)
"""The default job of each kind."""
