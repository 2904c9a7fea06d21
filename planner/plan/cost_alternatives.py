"""Alternatives beside a cost estimate: a rental faster than the owned GPUs, and a program that needs fewer GPUs."""

from datetime import date

from planner.base import Spec, Stop
from planner.cost.estimate import CostEstimate
from planner.cost.terms import RentMode, Service
from planner.plan.advice.inference_changes import CONTINUOUS_BATCHING
from planner.plan.advice.search import apply_change
from planner.plan.catalog import Catalog
from planner.plan.cost import evaluate_cost, job_by_gpu, plan_throughput
from planner.plan.evaluate import Evaluation, evaluate


class FasterRental(Spec):
    """A rental with a shorter time for one run than the owned GPUs, with time and cost of rental and owned GPUs."""

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
    stop: Stop = lambda: False,
) -> FasterRental | None:
    """Return the cheapest offer, of any kind of GPU in the plan's number, on which a run of the plan is faster.

    Returns None if there is none, if `stop` returns true, if the costs of owning are unknown, or if the job is not a
    run: the hours of other jobs are given and not shortened by a faster GPU.
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


class BatchedService(Spec):
    """A program that answers `at_once` requests at a time on each group of GPUs, and what the service then needs.

    `present_at_once` and `present_cards` are those of the plan's own program; `rent_usd_per_month` is the rent of
    `cards` GPUs, None without an offer.
    """

    profile: str
    at_once: int
    cards: int
    rent_usd_per_month: float | None
    present_at_once: int
    present_cards: int


def find_batched_service(
    evaluation: Evaluation, estimate: CostEstimate, catalog: Catalog, today: date
) -> BatchedService | None:
    """Return the program that serves the plan's requests with fewer GPUs than the plan's own.

    None if there is none, if the job is not a service, or if a measured speed was entered, which holds for one program.
    """
    plan, machines, speed = evaluation.plan, estimate.result.machines, plan_throughput(evaluation)
    if machines is None or speed is None or speed.concurrent_requests is None or plan.timing.measured is not None:
        return None
    if not isinstance(plan.cost.job, Service) or not CONTINUOUS_BATCHING.applies_to(evaluation.workload, None):
        return None
    changed = evaluate(apply_change(plan, CONTINUOUS_BATCHING), catalog)
    batched, cost = plan_throughput(changed), evaluate_cost(changed, catalog, today).estimate
    needed = None if cost is None or cost.result.blocked else cost.result.machines
    answers_at_once = None if batched is None else batched.concurrent_requests
    if cost is None or needed is None or answers_at_once is None or needed.cards >= machines.cards:
        return None
    return BatchedService(
        profile=changed.workload.profile or "",
        at_once=answers_at_once,
        cards=needed.cards,
        rent_usd_per_month=None if cost.result.rent is None else cost.result.rent.usd,
        present_at_once=speed.concurrent_requests,
        present_cards=machines.cards,
    )
