"""Comparison of two plans: their settings, memory terms and phases."""

from collections.abc import Iterator

from planner.base import Spec
from planner.memory.result import MemoryResult, PhaseName, TermName
from planner.parsing import flattened
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan

Value = bool | int | float | str | None


class SettingDifference(Spec):
    """A plan or workload field with a different value in each plan."""

    field: str
    value: Value
    other: Value


class TermDifference(Spec):
    """Size of a memory term at the peak of each plan, in bytes; 0 if a plan does not have the term."""

    name: TermName
    bytes: int
    other_bytes: int
    difference_bytes: int


class PhaseDifference(Spec):
    """Memory of each plan in one phase, in bytes; None if a plan does not have the phase."""

    name: PhaseName
    bytes: int | None
    other_bytes: int | None


class PlanComparison(Spec):
    """Comparison of a plan with another; differences are positive where the first plan needs more memory."""

    other: Evaluation
    settings: tuple[SettingDifference, ...]
    terms: tuple[TermDifference, ...]
    phases: tuple[PhaseDifference, ...]
    total_difference_bytes: int


def versus(plan: Plan, other: Plan, catalog: Catalog) -> PlanComparison:
    """Compare the settings, memory terms and phases of `plan` with those of `other`.

    Raises:
        SpecError: If one of them cannot be evaluated.
    """
    return compare_evaluations(evaluate(plan, catalog), evaluate(other, catalog))


def compare_evaluations(evaluation: Evaluation, other: Evaluation) -> PlanComparison:
    """Compare the settings and memory of two evaluated plans."""
    memory, other_memory = evaluation.memory, other.memory
    return PlanComparison(
        other=other,
        settings=tuple(_setting_differences(evaluation, other)),
        terms=tuple(_term_differences(memory, other_memory)),
        phases=tuple(_phase_differences(memory, other_memory)),
        total_difference_bytes=memory.total_bytes - other_memory.total_bytes,
    )


def _setting_differences(evaluation: Evaluation, other: Evaluation) -> Iterator[SettingDifference]:
    mine, theirs = _plan_fields(evaluation), _plan_fields(other)
    for field, value in mine.items():
        # A field that only one plan has follows from a difference above it: the task or the method.
        if field in theirs and theirs[field] != value:
            yield SettingDifference(field=field, value=value, other=theirs[field])


def _plan_fields(evaluation: Evaluation) -> dict[str, Value]:
    plan = evaluation.plan
    workload = evaluation.workload.model_dump(mode="json", exclude={"gpus"})
    cards: Value = " + ".join(f"{kind.count} × {kind.id}" for kind in plan.workload.gpus) or None
    own_fields: dict[str, Value] = {"model": plan.model.id, "gpu": cards or plan.gpu, "count": plan.count}
    if evaluation.traced is not None:
        return own_fields
    # Replicas follow from the number of GPUs unless the plan says otherwise.
    if plan.workload.parallel.data is None:
        workload["parallel"].pop("data")
    flat = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in flattened(workload)
    }
    return {**own_fields, **flat, "corrections": len(plan.corrections)}


def _term_differences(memory: MemoryResult, other: MemoryResult) -> Iterator[TermDifference]:
    mine, theirs = ({term.name: term.bytes for term in one.terms} for one in (memory, other))
    for name in dict.fromkeys((*mine, *theirs)):
        mine_bytes, other_bytes = mine.get(name, 0), theirs.get(name, 0)
        yield TermDifference(
            name=name, bytes=mine_bytes, other_bytes=other_bytes, difference_bytes=mine_bytes - other_bytes
        )


def _phase_differences(memory: MemoryResult, other: MemoryResult) -> Iterator[PhaseDifference]:
    mine, theirs = ({phase.name: phase.bytes for phase in one.phases} for one in (memory, other))
    for name in dict.fromkeys((*mine, *theirs)):
        yield PhaseDifference(name=name, bytes=mine.get(name), other_bytes=theirs.get(name))
