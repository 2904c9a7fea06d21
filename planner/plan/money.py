"""What a plan costs: its job at the estimated pace, rented and owned."""

from dataclasses import dataclass
from datetime import date

from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.job import Pace
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation


@dataclass(frozen=True, eq=False)
class PlanCost:
    """The answer about money, or why there is none; `field` is the plan's that would have to change.

    `error` is what stands behind the reason, where it lies in the plan's terms.
    """

    estimate: CostEstimate | None
    reason: str = ""
    field: str = ""
    error: SpecError | None = None


def evaluate_cost(evaluation: Evaluation, catalog: Catalog, today: date) -> PlanCost:
    """Return what the plan of `evaluation` costs on `today`, by the offers of `catalog`."""
    plan = evaluation.plan
    if plan.workload.gpus:
        return PlanCost(None, "Cards of several kinds are not rented or bought as one thing.", "workload.gpus")
    if plan.gpu is None:
        return PlanCost(None, "There is no card to pay for.", "gpu")
    gpu = catalog.hardware.gpu(plan.gpu)
    try:
        return PlanCost(estimate_cost(plan.cost, gpu, plan.count, pace_of(evaluation), catalog.cost, today))
    except SpecError as error:
        return PlanCost(None, error.explained, f"cost.{error.field}", error)


def pace_of(evaluation: Evaluation) -> Pace | None:
    """Return how fast the plan's cards work, or None where that is not known."""
    return None if evaluation.time is None else Pace.of_result(evaluation.time, evaluation.workload)
