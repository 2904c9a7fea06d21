"""Questions around a plan: memory over one of its numbers, and the largest number that still fits."""

from typing import Final, Literal

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan

Field = Literal["micro_batch", "sequence_length", "batch", "context_length", "prompt_length"]

_LIMIT: Final = 1 << 24


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
    return tuple(_point(value, _at(plan, catalog, field, value)) for value in values)


def largest_that_fits(plan: Plan, catalog: Catalog, field: Field) -> int | None:
    """Return the largest `field` with which `plan` fits on its card (tight counts), or none if not even 1 does.

    Found by doubling and bisection on the whole estimate, which never falls as the field grows. None, too, without a
    card or where the card cannot run the workload.

    Raises:
        SpecError: If the workload has no such field, or the model was traced.
    """
    most = min(_LIMIT, largest_allowed(plan, field))
    if not _fits(plan, catalog, field, 1):
        return None
    low = 1
    while 2 * low <= most and _fits(plan, catalog, field, 2 * low):
        low *= 2
    high = min(2 * low, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(plan, catalog, field, middle):
            low = middle
        else:
            high = middle
    return low


def largest_allowed(plan: Plan, field: Field) -> int:
    """Return the largest value that the workload takes for `field`, whether it fits or not.

    Raises:
        SpecError: If the workload has no such field.
    """
    limits = (getattr(limit, "le", None) for limit in _spec(plan, field).metadata)
    return next((limit for limit in limits if isinstance(limit, int)), _LIMIT)


def _spec(plan: Plan, field: Field) -> FieldInfo:
    try:
        return type(plan.workload).model_fields[field]
    except KeyError:
        raise SpecError(field, f"a {plan.workload.task} workload has no such field") from None


def _fits(plan: Plan, catalog: Catalog, field: Field, value: int) -> bool:
    return _at(plan, catalog, field, value).verdict in ("fits", "tight")


def _at(plan: Plan, catalog: Catalog, field: Field, value: int) -> MemoryResult:
    _spec(plan, field)
    changes = {field: value}
    if field == "context_length" and plan.workload.task == "inference" and plan.workload.prompt_length is not None:
        changes["prompt_length"] = min(plan.workload.prompt_length, value)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    try:
        workload = plan.workload.evolve(**changes)
    except ValidationError as error:
        raise SpecError.from_validation(error) from error
    return estimate_memory(
        architecture_of(plan, catalog),
        workload,
        gpu,
        catalog.hardware.usable_memory(gpu) if gpu else None,
        plan.count,
    )


def _point(value: int, result: MemoryResult) -> CurvePoint:
    return CurvePoint(
        value=value, total_bytes=result.total_bytes, low_bytes=result.low_bytes, high_bytes=result.high_bytes
    )
