"""What is to be done: a run, a service, or hours of a day; and how many hours it takes at a given pace."""

import math
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.errors import SpecError
from planner.workload.workload import Inference, Workload

if TYPE_CHECKING:
    from planner.performance.result import TimeResult

WorkUnit = Literal["tokens", "samples", "epochs", "steps", "hours"]
HOURS_PER_YEAR: Final = 8_766.0
"""Hours of a year of 365.25 days."""
_SECONDS_PER_HOUR: Final = 3_600.0
_HOURS_PER_DAY: Final = 24
_MILLION: Final = 1_000_000


class Pace(Spec):
    """How fast the chosen cards work, all together, as `planner.performance` estimates it or a person measured it."""

    tokens_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    samples_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    steps_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    concurrent_requests: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="worked on at once")
    prompt_token_seconds: float | None = Field(default=None, ge=0, description="of a request, for each token read")
    output_token_seconds: float | None = Field(default=None, gt=0, description="of a request, for each token written")
    low_time_factor: float = Field(default=1.0, gt=0, le=1, description="one time in ten is shorter, of that expected")
    high_time_factor: float = Field(default=1.0, ge=1, le=100, description="one time in ten is longer")
    source: str = Field(default="the estimate of the plan", min_length=3)

    @classmethod
    def of_result(cls, time: "TimeResult", workload: Workload | None = None) -> Self | None:
        """Return the pace that an estimate of time says, or None where it says none.

        With the `workload` that it is of, requests of other lengths can be told too.
        """
        if time.seconds is None:
            return None
        prompt = workload.prompt_length if isinstance(workload, Inference) else None
        samples = time.samples_per_second
        reading = time.first_token_seconds / prompt if time.first_token_seconds is not None and prompt else None
        low, high = time.low_seconds or time.seconds, time.high_seconds or time.seconds
        return cls(
            tokens_per_second=time.tokens_per_second,
            samples_per_second=samples,
            steps_per_second=1 / time.seconds if time.kind == "step" else None,
            # Little's law: as many are on the way as arrive while one is.
            concurrent_requests=samples * time.seconds if samples else None,
            prompt_token_seconds=reading,
            output_token_seconds=time.output_token_seconds,
            low_time_factor=min(low / time.seconds, 1.0),
            high_time_factor=max(high / time.seconds, 1.0),
            source=f"the estimate of time ({time.basis})",
        )

    def requests_per_second(self, prompt_tokens: float, output_tokens: float) -> float | None:
        """Return how many requests of these lengths are answered in a second, or None where that is not known.

        **Formula** n / (prompt · s_read + output · s_write) with n at once; else the samples a second of the estimate,
        whatever their lengths; else tokens a second over those of an answer.
        **Assumes** that the time to read a prompt grows in proportion to its length.
        """
        at_once, reading, writing = self.concurrent_requests, self.prompt_token_seconds, self.output_token_seconds
        if at_once is not None and reading is not None and writing is not None:
            return at_once / (prompt_tokens * reading + output_tokens * writing)
        if self.samples_per_second is not None or self.tokens_per_second is None:
            return self.samples_per_second
        return self.tokens_per_second / output_tokens

    def per_second(self, unit: WorkUnit) -> float | None:
        """Return how many of `unit` are done in a second, or None where that is not known."""
        match unit:
            case "tokens":
                return self.tokens_per_second
            case "samples":
                return self.samples_per_second
            case "steps":
                return self.steps_per_second
            case _:
                return None


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


class RunHours(Spec):
    """How long one run takes without interruptions, and what the hours are for."""

    work_hours: float
    checkpoint_hours: float
    evaluation_hours: float
    start_hours: float
    total_hours: float
    low_hours: float
    high_hours: float


def run_hours(run: Run, pace: Pace | None) -> RunHours:
    """Return the hours of one run, with the range of the pace; hours that were given are certain.

    Checkpoints are written every `checkpoint_interval_hours` of work; without one, only at the end.

    Raises:
        SpecError: If the pace in the run's unit is not known, or an epoch has no size.
    """
    work = _work_hours(run, pace)
    given = run.unit == "hours"
    written = work / run.checkpoint_interval_hours if run.checkpoint_interval_hours else 1.0
    checkpoint = written * run.checkpoint_seconds / _SECONDS_PER_HOUR
    evaluation = work * run.evaluation_fraction
    start = run.restart_seconds / _SECONDS_PER_HOUR
    total = work + checkpoint + evaluation + start
    low, high = (1.0, 1.0) if given or pace is None else (pace.low_time_factor, pace.high_time_factor)
    return RunHours(
        work_hours=work,
        checkpoint_hours=checkpoint,
        evaluation_hours=evaluation,
        start_hours=start,
        total_hours=total,
        low_hours=total * low,
        high_hours=total * high,
    )


def _work_hours(run: Run, pace: Pace | None) -> float:
    if run.unit == "hours":
        return run.amount
    amount, unit = run.amount, run.unit
    if unit == "epochs":
        if run.dataset_samples is None:
            raise SpecError("job.dataset_samples", "an epoch has no size", "Say how many samples the data set has.")
        amount, unit = amount * run.dataset_samples, "samples"
    per_second = pace.per_second(unit) if pace else None
    if per_second is None:
        hint = "Give the job in hours, or put a measured speed in."
        raise SpecError("job.unit", f"how many {unit} a second these cards do is not known", hint)
    return amount / per_second / _SECONDS_PER_HOUR


def usd_per_million_tokens(usd_per_hour: float, pace: Pace | None) -> float | None:
    """Return what a million tokens cost at this price of a busy hour, or None where no tokens are counted.

    **Formula** p / (tokens/s · 3600) · 10⁶
    """
    if pace is None or pace.tokens_per_second is None:
        return None
    return usd_per_hour / (pace.tokens_per_second * _SECONDS_PER_HOUR) * _MILLION
