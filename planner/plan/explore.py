"""Memory over one number of a plan."""

from planner.base import Spec
from planner.memory.estimate import estimate_on
from planner.memory.result import MemoryResult
from planner.plan.cards import cards_of
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.solve import Field, with_value


class CurvePoint(Spec):
    """Memory at one value of the field."""

    value: int
    total_bytes: int
    low_bytes: int
    high_bytes: int


def memory_curve(plan: Plan, catalog: Catalog, field: Field, values: tuple[int, ...]) -> tuple[CurvePoint, ...]:
    """Return the memory of `plan` with `field` of its workload at each of `values`.

    Raises:
        SpecError: If the workload has no such field, or does not take one of the values, or the model was traced.
    """
    return tuple(_point(value, _estimate(with_value(plan, field, value), catalog)) for value in values)


def _estimate(plan: Plan, catalog: Catalog) -> MemoryResult:
    return estimate_on(architecture_of(plan, catalog), plan.workload, cards_of(plan, catalog), plan.corrections)


def _point(value: int, result: MemoryResult) -> CurvePoint:
    return CurvePoint(
        value=value, total_bytes=result.total_bytes, low_bytes=result.low_bytes, high_bytes=result.high_bytes
    )
