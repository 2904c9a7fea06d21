"""The cheapest rental that is faster than the cards that someone owns."""

from collections.abc import Callable
from datetime import date

from planner.base import Spec
from planner.cost.estimate import CostEstimate
from planner.cost.terms import RentMode
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.job_costs import job_by_gpu


class FasterRental(Spec):
    """A rental with a shorter time for one run than the owned cards, with time and cost of rental and owned cards."""

    gpu: str
    count: int
    provider: str
    offer_id: str
    mode: RentMode
    hours: float
    usd: float
    own_hours: float
    own_usd: float
    usd_per_hour_saved: float
    """Extra cost of each hour that the run ends earlier; negative if the rental is cheaper, too."""


def find_faster_rental(
    evaluation: Evaluation,
    estimate: CostEstimate,
    catalog: Catalog,
    today: date,
    stop: Callable[[], bool] = lambda: False,
) -> FasterRental | None:
    """Return the cheapest offer, of any kind of card in the plan's number, on which a run of the plan is faster.

    Returns None if there is none, if `stop` returns true, if the costs of owning are unknown, or if the job is no run:
    the hours of other jobs are given and not shortened by a faster card.
    """
    own, own_hours = estimate.result.own, estimate.demand.busy_hours
    if own is None or estimate.demand.period != "run":
        return None
    jobs = job_by_gpu(evaluation.plan, catalog, today, stop) or {}
    faster = [
        (gpu_id, job.hours, job.offer)
        for gpu_id, job in jobs.items()
        if job.offer is not None and job.hours < own_hours
    ]
    if not faster:
        return None
    gpu_id, hours, row = min(faster, key=lambda each: each[2].usd)
    return FasterRental(
        gpu=gpu_id,
        count=evaluation.plan.count,
        provider=row.offer.provider,
        offer_id=row.offer.id,
        mode=row.mode,
        hours=hours,
        usd=row.usd,
        own_hours=own_hours,
        own_usd=own.usd_per_period,
        usd_per_hour_saved=(row.usd - own.usd_per_period) / (own_hours - hours),
    )
