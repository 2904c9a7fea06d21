"""Demand of a job at a given throughput: number of groups, hours and frequency."""

from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

from pydantic import Field

from planner.base import Spec
from planner.cost.finance import ceil_with_tolerance
from planner.cost.terms import HOURS_PER_YEAR, DailyHours, Job, Run, Service, WorkUnit
from planner.errors import SpecError
from planner.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from planner.workload.workload import Inference, Workload

if TYPE_CHECKING:
    from planner.performance.result import TimeResult


HOURS_PER_MONTH: Final = HOURS_PER_YEAR / 12
_DAYS_PER_MONTH: Final = HOURS_PER_MONTH / 24
TRAINS: Final = "a service needs a plan for inference, and this plan trains"
_LOAD_SAMPLES: Final = 240
"""Number of samples in a load profile: enough for a mean that is exact to a thousandth."""
_DAYS_PER_WEEK: Final = 7
_MILLION: Final = 1_000_000


class Throughput(Spec):
    """Speed of all chosen GPUs together, estimated by `planner.performance` or measured."""

    tokens_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    samples_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    steps_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    concurrent_requests: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="requests processed at once"
    )
    prompt_token_seconds: float | None = Field(default=None, ge=0, description="per prompt token of a request")
    output_token_seconds: float | None = Field(default=None, gt=0, description="per output token of a request")
    low_time_factor: float = Field(
        default=1.0, gt=0, le=1, description="10th percentile of the time, relative to the estimate"
    )
    high_time_factor: float = Field(
        default=1.0, ge=1, le=100, description="90th percentile of the time, relative to the estimate"
    )
    source: str = Field(default="the estimate of the plan", min_length=3)

    @classmethod
    def of_result(cls, time: "TimeResult", workload: Workload | None = None) -> Self | None:
        """Return the throughput from a time estimate, or None if unknown.

        With its `workload`, the throughput for requests of other lengths can be derived too.
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
            # Little's law: concurrency = arrival rate × duration.
            concurrent_requests=samples * time.seconds if samples else None,
            prompt_token_seconds=reading,
            output_token_seconds=time.output_token_seconds,
            low_time_factor=min(low / time.seconds, 1.0),
            high_time_factor=max(high / time.seconds, 1.0),
            source=f"the estimate of time ({time.basis})",
        )

    def requests_per_second(self, prompt_tokens: float, output_tokens: float) -> float | None:
        """Return the answered requests per second, for these prompt and output lengths, or None if unknown.

        **Formula** n / (prompt · s_read + output · s_write) with n concurrent requests; else the samples per second of
        the estimate, regardless of lengths; else tokens per second over output tokens.

        **Assumes** that the prefill time is proportional to the prompt length.
        """
        at_once, reading, writing = self.concurrent_requests, self.prompt_token_seconds, self.output_token_seconds
        if at_once is not None and reading is not None and writing is not None:
            return at_once / (prompt_tokens * reading + output_tokens * writing)
        if self.samples_per_second is not None or self.tokens_per_second is None:
            return self.samples_per_second
        return self.tokens_per_second / output_tokens

    def per_second(self, unit: WorkUnit) -> float | None:
        """Return the number of `unit` processed per second, or None if unknown."""
        per_second: float | None = getattr(self, f"{unit}_per_second", None)
        return per_second


class RunHours(NamedTuple):
    """Hours of one run without interruptions, by purpose."""

    work_hours: float
    checkpoint_hours: float
    evaluation_hours: float
    start_hours: float
    total_hours: float
    low_hours: float
    high_hours: float


class Demand(Spec):
    """Demand of one period: one run, or one month of a service or of daily hours.

    A group is the plan's number of GPUs; a service may need several groups at once.
    """

    period: Literal["run", "month"]
    groups: int = 1
    sessions: float = 1.0
    busy_hours: float
    """Group-hours of work."""
    low_busy_hours: float
    high_busy_hours: float
    rented_hours: float
    """Group-hours that the job holds its machines, from start to stop: all hours of a service that is always on.

    A GPU-hour, wherever hours and prices are given per GPU-hour, is such an hour of one GPU.
    """
    work_hours: float
    start_hours: float = 0.0
    checkpoint_hours: float = 0.0
    interval_hours: float | None = None
    periods_per_year: float | None
    """Periods per year; None for a run that is done once."""
    stored_gb: float = 0.0
    stored_months: float = 1.0
    egress_gb: float = 0.0
    always_on: bool = False
    """Whether machines run day and night, regardless of the load."""
    peak_wait_seconds: float | None = None
    """Mean time that a request waits for a slot at peak load; None if unknown."""

    @property
    def rented_hours_per_busy_hour(self) -> float:
        """Return the group-hours that the job holds its machines for each group-hour of work."""
        return self.rented_hours / self.busy_hours

    def per_year(self, horizon_years: float) -> float:
        """Return the periods per year; a run that is done once is spread over the horizon."""
        return 1 / horizon_years if self.periods_per_year is None else self.periods_per_year


def demand_of(job: Job, throughput: Throughput | None) -> Demand:
    """Return the demand of `job` at the given throughput.

    Raises:
        SpecError: If the duration of the job cannot be derived from the throughput, or it is a service of a plan that
            trains.
    """
    if isinstance(job, Run):
        return _run_demand(job, throughput)
    if isinstance(job, Service):
        return _service_demand(job, throughput)
    return _daily_demand(job)


def load_exceeded_for(share_of_time: float, peak_factor: float) -> float:
    """Return the load, relative to the average, that is exceeded for the fraction `share_of_time` of the time.

    **Formula** f · (1 − x)^(f − 1): its mean is 1 and its peak f, for every f

    **Assumes** this shape; only the mean and the peak are known.
    """
    return float(peak_factor * (1 - share_of_time) ** (peak_factor - 1))


def load_profile(job: Service, average_groups: float) -> tuple[float, ...]:
    """Return the groups needed in equal parts of the time, by hour of the day or from the peak factor, highest first.

    **Assumes** the shape of `load_exceeded_for` if only the peak factor is known.
    """
    if job.hourly_shares:
        total = sum(job.hourly_shares)
        return tuple(average_groups * share * len(job.hourly_shares) / total for share in job.hourly_shares)
    middles = ((part + 0.5) / _LOAD_SAMPLES for part in range(_LOAD_SAMPLES))
    return tuple(average_groups * load_exceeded_for(each, job.peak_factor) for each in middles)


def required_groups(job: Service, throughput: Throughput) -> float:
    """Return the number of groups for the average load at the planned utilization.

    Raises:
        SpecError: If the requests per second of a group are unknown.
    """
    return job.requests_per_day / SECONDS_PER_DAY / _answered_per_second(job, throughput) / job.busy_fraction


def _answered_per_second(job: Service, throughput: Throughput) -> float:
    per_second = throughput.requests_per_second(job.prompt_tokens, job.output_tokens)
    if per_second is None:
        hint = "Enter a measured speed."
        raise SpecError("job", "the requests per second of these GPUs are unknown", hint)
    return per_second


def _run_demand(run: Run, throughput: Throughput | None) -> Demand:
    hours = run_hours(run, throughput)
    return Demand(
        period="run",
        busy_hours=hours.total_hours,
        low_busy_hours=hours.low_hours,
        high_busy_hours=hours.high_hours,
        rented_hours=hours.total_hours,
        work_hours=hours.work_hours + hours.evaluation_hours,
        start_hours=hours.start_hours,
        checkpoint_hours=run.checkpoint_seconds / SECONDS_PER_HOUR,
        interval_hours=run.checkpoint_interval_hours,
        periods_per_year=run.repeats_per_year,
        stored_gb=run.checkpoint_gb + run.dataset_gb,
        stored_months=hours.total_hours / HOURS_PER_MONTH,
        egress_gb=run.egress_gb,
    )


def _service_demand(job: Service, throughput: Throughput | None) -> Demand:
    if throughput is not None and throughput.steps_per_second is not None:
        raise SpecError("job", TRAINS, "Set the task to inference, or enter the job as a run or as hours per day.")
    average = required_groups(job, throughput or Throughput())
    loads = load_profile(job, average)
    peak = max(loads) if job.hourly_shares else average * job.peak_factor
    groups = max(ceil_with_tolerance(peak), 1)
    busy = average * job.busy_fraction * HOURS_PER_MONTH
    rented = HOURS_PER_MONTH * (fmean(map(ceil_with_tolerance, loads)) if job.scales_down else groups)
    return Demand(
        period="month",
        groups=groups,
        busy_hours=busy,
        low_busy_hours=busy * (throughput.low_time_factor if throughput else 1.0),
        high_busy_hours=min(busy * (throughput.high_time_factor if throughput else 1.0), groups * HOURS_PER_MONTH),
        rented_hours=max(rented, busy),
        work_hours=busy,
        periods_per_year=12.0,
        stored_gb=job.model_gb,
        egress_gb=job.egress_gb_per_month,
        always_on=not job.scales_down,
        peak_wait_seconds=_peak_wait_seconds(job, throughput or Throughput(), groups, peak),
    )


def _peak_wait_seconds(job: Service, throughput: Throughput, groups: int, peak: float) -> float | None:
    """Return the mean wait in seconds at the peak load of `peak` groups at the planned utilization."""
    if throughput.concurrent_requests is None:
        return None
    each = _answered_per_second(job, throughput)
    return wait_seconds(
        peak * job.busy_fraction * each, groups * each, max(int(groups * throughput.concurrent_requests), 1)
    )


def _daily_demand(job: DailyHours) -> Demand:
    days = _DAYS_PER_MONTH * job.days_per_week / _DAYS_PER_WEEK
    busy = job.hours_per_day * days
    return Demand(
        period="month",
        sessions=days,
        busy_hours=busy,
        low_busy_hours=busy,
        high_busy_hours=busy,
        rented_hours=busy,
        work_hours=busy,
        periods_per_year=12.0,
        stored_gb=job.stored_gb,
    )


def run_hours(run: Run, throughput: Throughput | None) -> RunHours:
    """Return the hours of one run, with the uncertainty of the throughput; a run stated in hours is exact.

    Checkpoints are written every `checkpoint_interval_hours` of work; without an interval, only at the end.

    Raises:
        SpecError: If the throughput in the run's unit is unknown, or the size of an epoch is missing.
    """
    work = _work_hours(run, throughput)
    is_exact = run.unit == "hours"
    written = work / run.checkpoint_interval_hours if run.checkpoint_interval_hours else 1.0
    checkpoint = written * run.checkpoint_seconds / SECONDS_PER_HOUR
    evaluation = work * run.evaluation_fraction
    start = run.restart_seconds / SECONDS_PER_HOUR
    total = work + checkpoint + evaluation + start
    low, high = (
        (1.0, 1.0) if is_exact or throughput is None else (throughput.low_time_factor, throughput.high_time_factor)
    )
    return RunHours(
        work_hours=work,
        checkpoint_hours=checkpoint,
        evaluation_hours=evaluation,
        start_hours=start,
        total_hours=total,
        low_hours=total * low,
        high_hours=total * high,
    )


def _work_hours(run: Run, throughput: Throughput | None) -> float:
    if run.unit == "hours":
        return run.amount
    amount, unit = run.amount, run.unit
    if unit == "epochs":
        if run.dataset_samples is None:
            raise SpecError(
                "job.dataset_samples", "the size of an epoch is missing", "Enter the number of samples in the dataset."
            )
        amount, unit = amount * run.dataset_samples, "samples"
    per_second = throughput.per_second(unit) if throughput else None
    if per_second is None:
        hint = "Enter the job in hours, or a measured speed."
        raise SpecError("job.unit", f"the {unit} per second of these GPUs are unknown", hint)
    return amount / per_second / SECONDS_PER_HOUR


def usd_per_million_tokens(usd_per_hour: float, throughput: Throughput | None) -> float | None:
    """Return the cost of a million tokens at a price per busy hour, or None if tokens are not counted.

    **Formula** p / (tokens/s · 3600) · 10⁶
    """
    if throughput is None or throughput.tokens_per_second is None:
        return None
    return usd_per_hour / (throughput.tokens_per_second * SECONDS_PER_HOUR) * _MILLION


_MAX_SLOTS: Final = 4_096
"""Number of slots above which the wait counts as 0: at 95 % utilization it is a millionth of a request's time (Erlang's
C formula)."""


def wait_seconds(arrivals_per_second: float, answered_per_second: float, slots: int) -> float | None:
    """Return the mean wait for one of `slots` in seconds, or None if the queue grows because arrivals exceed capacity.

    **Formula**: C(c, a) · s ÷ (c − a), a = c · arrivals ÷ answered, s = c ÷ answered.

    **Source**: A. K. Erlang, 1917 (M/M/c), by the recursion of the B formula.

    **Assumes** Poisson arrivals, and requests that take exponentially distributed times.
    """
    if arrivals_per_second >= answered_per_second:
        return None
    if slots > _MAX_SLOTS:
        return 0.0
    offered = slots * arrivals_per_second / answered_per_second
    blocked = 1.0
    for slot in range(1, slots + 1):
        blocked = offered * blocked / (slot + offered * blocked)
    waits = blocked / (1 - offered / slots * (1 - blocked))
    return waits * slots / answered_per_second / (slots - offered)
