"""The plan as it stands, on other hardware."""

from dataclasses import dataclass
from datetime import date

from planner.errors import PlannerError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate, moved_to
from planner.plan.money import PlanCost, evaluate_cost
from planner.plan.plan import Plan


@dataclass(frozen=True, eq=False)
class Tried:
    """What the plan comes to on some cards, or why that is not known."""

    evaluation: Evaluation | None
    cost: PlanCost | None = None
    reason: str = ""


def try_on(plan: Plan, gpu_id: str, count: int, catalog: Catalog, today: date) -> Tried:
    """Return what `plan` needs, takes and costs on `count` cards of one kind; its time is worked out here, not later.

    A degree of parallelism that does not divide `count` is a reason, not an error: the plan is shared as it says.
    """
    try:
        evaluation = evaluate(moved_to(plan, gpu_id, count), catalog)
        return Tried(evaluation, evaluate_cost(evaluation, catalog, today))
    except PlannerError as error:
        return Tried(None, reason=error.message)
