"""Time and cost of the plan's job on each card, as text."""

from collections.abc import Mapping
from typing import Final

from planner.plan.job_costs import CardJob
from planner.present import format as fmt
from planner.present.catalog.gpu_row import JobSummary
from planner.present.cost.prices import RENT_MODE_TITLES, age_text
from planner.present.cost.time import pace_phrase, time_view

_SECONDS_PER_HOUR: Final = 3_600
_NO_OFFER: Final = "no offer"


def job_summaries(jobs: Mapping[str, CardJob]) -> dict[str, JobSummary]:
    """Return the summary of the job on each card, by card id."""
    return {gpu_id: _job_summary(job) for gpu_id, job in jobs.items()}


def _job_summary(job: CardJob) -> JobSummary:
    """Return a run's duration, or the pace of a job without an end, with the cost at the cheapest offer."""
    runs = job.period == "run"
    view = time_view(job.time)
    return JobSummary(
        hours=job.hours,
        slowness=job.slowness,
        time=fmt.duration(job.hours * _SECONDS_PER_HOUR)
        if runs
        else pace_phrase(job.time).replace("tokens/s", "tok/s"),
        time_origin="\n".join(part for part in (view.answer, view.reason) if part),
        usd=job.usd,
        cost=_NO_OFFER if job.usd is None else f"{fmt.money(job.usd)}{'' if runs else '/mo'}",
        cost_origin=_cost_origin(job),
        usd_per_million_tokens=job.usd_per_million_tokens,
    )


def _cost_origin(job: CardJob) -> str:
    """Return the offer behind the cost, with the price's date and source."""
    row = job.offer
    if row is None:
        return "No comparable offer for this card."
    where = f"{row.offer.provider}, {row.offer.region or 'unknown region'}"
    machines = f"{fmt.count_of(row.instances, row.offer.instance)}, {RENT_MODE_TITLES[row.mode]}"
    price = f"{fmt.money(row.usd)} per {job.period}, {fmt.money(row.usd_per_gpu_hour)} per GPU-hour"
    dated = f"price of {fmt.date(row.price_date, fmt.NO_DATE)}, {age_text(row.age_days)}"
    return "\n".join((where, machines, price, dated, row.offer.source, *row.remarks))
