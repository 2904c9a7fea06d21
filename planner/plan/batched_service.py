"""The program with which a service needs fewer cards, since it answers many requests at once."""

from datetime import date

from planner.base import Spec
from planner.cost.estimate import CostEstimate
from planner.cost.terms import Service
from planner.plan.advice.faster_program import CONTINUOUS_BATCHING
from planner.plan.advice.search import apply_change
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.money import evaluate_cost, plan_throughput


class BatchedService(Spec):
    """A program that answers `at_once` requests at a time on each group of cards, and what the service then needs.

    `present_at_once` and `present_cards` are those of the plan's own program; `rent_usd_per_month` is the rent of
    `cards` cards, None without an offer.
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
    """Return the program that serves the plan's requests with fewer cards than the plan's own.

    None if there is none, if the job is no service, or if a measured speed was entered, which holds for one program.
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
