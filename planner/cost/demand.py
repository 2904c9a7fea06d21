"""What a job asks of machines: how many at once, for how many hours, and how often."""

from statistics import fmean
from typing import Final, Literal

from planner.base import Spec
from planner.cost.finance import ceiling
from planner.cost.job import HOURS_PER_YEAR, DailyHours, Job, Pace, Run, Service, run_hours
from planner.errors import SpecError
from planner.performance.inference.waiting import wait_seconds

HOURS_PER_MONTH: Final = HOURS_PER_YEAR / 12
_DAYS_PER_MONTH: Final = HOURS_PER_MONTH / 24
_PARTS: Final = 240
"""Parts of the time that a load is told in: so many that its mean is right to a thousandth."""
_DAYS_PER_WEEK: Final = 7
_SECONDS_PER_DAY: Final = 86_400
_SECONDS_PER_HOUR: Final = 3_600


class Demand(Spec):
    """What one period asks for: one run, or one month of a service or of daily hours.

    A group is the cards that the plan names; a service may need several of them at once.
    """

    period: Literal["run", "month"]
    groups: int = 1
    sessions: float = 1.0
    busy_hours: float
    """Group-hours of work."""
    low_busy_hours: float
    high_busy_hours: float
    rented_hours: float
    """Group-hours between the start and the stop of machines that are paid by the hour."""
    work_hours: float
    start_hours: float = 0.0
    checkpoint_hours: float = 0.0
    interval_hours: float | None = None
    periods_per_year: float | None
    """None: once, and not again."""
    stored_gb: float = 0.0
    stored_months: float = 1.0
    egress_gb: float = 0.0
    always_on: bool = False
    """Machines run day and night, however much there is to do."""
    peak_wait_seconds: float | None = None
    """How long a request waits for a place at the busiest moment, on average; None where it is not known."""

    def per_year(self, horizon_years: float) -> float:
        """Return the periods of a year; a run that is done once is spread over the horizon."""
        return 1 / horizon_years if self.periods_per_year is None else self.periods_per_year


def demand_of(job: Job, pace: Pace | None) -> Demand:
    """Return what `job` asks for at `pace`.

    Raises:
        SpecError: If the pace does not say how long the job takes.
    """
    if isinstance(job, Run):
        return _run_demand(job, pace)
    if isinstance(job, Service):
        return _service_demand(job, pace)
    return _daily_demand(job)


def load_at(share_of_time: float, peak_factor: float) -> float:
    """Return the load, over its average, that is exceeded for `share_of_time` of the time.

    **Formula** f · (1 − x)^(f − 1): its mean is 1 and its peak f, for every f
    **Assumes** that shape; only the mean and the peak are known.
    """
    return float(peak_factor * (1 - share_of_time) ** (peak_factor - 1))


def loads_of(job: Service, average_groups: float) -> tuple[float, ...]:
    """Return the groups that are needed in equal parts of the time: of each hour, or by the peak factor, highest first.

    **Assumes** the shape of `load_at` where only the peak factor is known.
    """
    if job.hourly_shares:
        total = sum(job.hourly_shares)
        return tuple(average_groups * share * len(job.hourly_shares) / total for share in job.hourly_shares)
    middles = ((part + 0.5) / _PARTS for part in range(_PARTS))
    return tuple(average_groups * load_at(each, job.peak_factor) for each in middles)


def groups_of(job: Service, pace: Pace) -> float:
    """Return how many groups the average load takes, each as busy as is planned with.

    Raises:
        SpecError: If it is not known how many requests a group answers.
    """
    return job.requests_per_day / _SECONDS_PER_DAY / _answered_per_second(job, pace) / job.busy_fraction


def _answered_per_second(job: Service, pace: Pace) -> float:
    per_second = pace.requests_per_second(job.prompt_tokens, job.output_tokens)
    if per_second is None:
        hint = "Put a measured speed in."
        raise SpecError("job", "how many requests a second these cards answer is not known", hint)
    return per_second


def _run_demand(run: Run, pace: Pace | None) -> Demand:
    hours = run_hours(run, pace)
    return Demand(
        period="run",
        busy_hours=hours.total_hours,
        low_busy_hours=hours.low_hours,
        high_busy_hours=hours.high_hours,
        rented_hours=hours.total_hours,
        work_hours=hours.work_hours + hours.evaluation_hours,
        start_hours=hours.start_hours,
        checkpoint_hours=run.checkpoint_seconds / _SECONDS_PER_HOUR,
        interval_hours=run.checkpoint_interval_hours,
        periods_per_year=run.repeats_per_year,
        stored_gb=run.checkpoint_gb + run.dataset_gb,
        stored_months=hours.total_hours / HOURS_PER_MONTH,
        egress_gb=run.egress_gb,
    )


def _service_demand(job: Service, pace: Pace | None) -> Demand:
    average = groups_of(job, pace or Pace())
    loads = loads_of(job, average)
    peak = max(loads) if job.hourly_shares else average * job.peak_factor
    groups = max(ceiling(peak), 1)
    busy = average * job.busy_fraction * HOURS_PER_MONTH
    rented = HOURS_PER_MONTH * (fmean(map(ceiling, loads)) if job.scales_down else groups)
    return Demand(
        period="month",
        groups=groups,
        busy_hours=busy,
        low_busy_hours=busy * (pace.low_time_factor if pace else 1.0),
        high_busy_hours=min(busy * (pace.high_time_factor if pace else 1.0), groups * HOURS_PER_MONTH),
        rented_hours=max(rented, busy),
        work_hours=busy,
        periods_per_year=12.0,
        stored_gb=job.model_gb,
        egress_gb=job.egress_gb_per_month,
        always_on=not job.scales_down,
        peak_wait_seconds=_wait(job, pace or Pace(), groups, peak),
    )


def _wait(job: Service, pace: Pace, groups: int, peak: float) -> float | None:
    """Return the mean wait at the busiest moment, whose load takes `peak` groups of the planned busyness."""
    if pace.concurrent_requests is None:
        return None
    each = _answered_per_second(job, pace)
    return wait_seconds(peak * job.busy_fraction * each, groups * each, max(int(groups * pace.concurrent_requests), 1))


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
