"""Conflict resolution after an edit: fields that conflict with the edit are adjusted and reported.

The command line rejects conflicting options, since all were set at once. A form edits one field at a time,
and the last edit wins.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.errors import PlannerError, SpecError
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.editing.draft import WORKLOAD, WorkloadDraft
from planner.plan.evaluate import architecture_of, evaluate
from planner.plan.plan import Plan
from planner.workload.rules import ALL_RULES, check_given
from planner.workload.workload import Inference, Training

_MAX_ROUNDS = 8


class ResolvedPlan(NamedTuple):
    """A plan that can be evaluated, and the workload fields that were adjusted after an edit, by name."""

    plan: Plan
    adjustments: tuple[str, ...] = ()


def resolve_conflicts(plan: Plan, edits: Mapping[str, object], catalog: Catalog) -> ResolvedPlan:
    """Return `plan` with the fields in `edits` changed, and conflicting fields set to allowed values.

    Fields of the workload have names such as `workload.lora.rank`, those of the plan their own. If a new model cannot
    be trained, the task becomes inference.

    Raises:
        SpecError: If the edit itself is not allowed; edited fields are never adjusted.
        PlannerError: If the plan cannot be evaluated.
    """
    try:
        return _resolve_fields(plan, edits, catalog)
    except SpecError as error:
        if error.field != "task" or "model" not in edits or not isinstance(plan.workload, Training):
            raise
        held = {name: getattr(plan.workload, name) for name in ("gpus", "other_processes_bytes")}
        run = plan.evolve(workload=Inference().evolve(**held), count=plan.count)
        resolved = _resolve_fields(run, edits, catalog)
        return resolved._replace(adjustments=("task", *resolved.adjustments))


def _resolve_fields(plan: Plan, edits: Mapping[str, object], catalog: Catalog) -> ResolvedPlan:
    """Return the edited plan, with fields that conflict with the edits adjusted."""
    plan_edits = {name: value for name, value in edits.items() if not name.startswith(WORKLOAD)}
    edited = {name.removeprefix(WORKLOAD): value for name, value in edits.items() if name.startswith(WORKLOAD)}
    architecture = _edited_architecture(plan, plan_edits, catalog)
    context = {"count": plan_edits.get("count", plan.count), "model": architecture}
    draft = WorkloadDraft(plan.workload, edited, context, plan_fields=plan_edits.keys())
    _check_draft(draft)
    if plan.workload.gpus and plan_edits.keys() & {"gpu", "count"} and "gpus" not in edited:
        draft.adjust_field("gpus", ())
        plan_edits = {"gpu": plan.workload.gpus[0].id, "count": plan.count} | plan_edits
    if _starts_qlora(plan, edited):
        # As PEFT's prepare_model_for_kbit_training does by default (use_gradient_checkpointing=True).
        draft.adjust_field("activation_checkpointing", "full")
    _apply_rules(draft)
    while True:
        changed = _build_plan(plan, plan_edits, draft)
        try:
            check_given(changed.workload, architecture)
            evaluate(changed, catalog)
        except SpecError as error:
            # Each time another field goes back to its default, until none is left that could.
            draft.reset_rejected_field(error)
        else:
            return ResolvedPlan(changed, draft.adjustments)


def _starts_qlora(plan: Plan, edited: Mapping[str, object]) -> bool:
    """Return whether the edit changes the method to QLoRA in a plan whose checkpointing the person left open."""
    workload = plan.workload
    if not isinstance(workload, Training) or edited.get("method") != "qlora" or workload.method == "qlora":
        return False
    return "activation_checkpointing" not in workload.model_fields_set


def _apply_rules(draft: WorkloadDraft) -> None:
    """Apply the remedies of broken rules to `draft` until all rules hold or nothing more can be adjusted."""
    rounds = 0
    while rounds < _MAX_ROUNDS and [rule for rule in ALL_RULES if draft.apply_remedy(rule)]:
        rounds += 1


def _edited_architecture(plan: Plan, plan_edits: Mapping[str, object], catalog: Catalog) -> Architecture | None:
    """Return the edited plan's architecture, or None for a traced module or an unreadable model."""
    try:
        return architecture_of(
            plan.evolve(**{name: plan_edits[name] for name in ("model",) if name in plan_edits}), catalog
        )
    except (PlannerError, ValidationError):
        return None


def _check_draft(draft: WorkloadDraft) -> None:
    """Reject a draft with an edited value that is invalid on its own."""
    try:
        draft.check()
    except ValidationError as error:
        raise _spec_error(error) from None


def _build_plan(plan: Plan, plan_edits: Mapping[str, object], draft: WorkloadDraft) -> Plan:
    """Return `plan` with the edited fields in `plan_edits` and the workload in `draft`."""
    try:
        return plan.evolve(**plan_edits, workload=draft.build())
    except ValidationError as error:
        raise _spec_error(error) from None


def _spec_error(error: ValidationError) -> SpecError:
    """Return the pydantic error as a `SpecError` whose field has the same name as in edits."""
    problem = SpecError.from_validation(error)
    place = problem.field if problem.field in Plan.model_fields else f"{WORKLOAD}{problem.field}".removesuffix(".")
    return SpecError(place, problem.reason, problem.hint)


_MAX_RESULTS: Final = 8
_MAX_DEGREE: Final = 64


def possible_degrees(plan: Plan, name: str, catalog: Catalog) -> tuple[int, ...]:
    """Return the possible degrees of one form of parallelism, such as `parallel.tensor`, in ascending order."""
    return tuple(_valid_values(plan, f"{WORKLOAD}{name}", _divisors(plan.count), catalog))


def possible_counts(plan: Plan, wanted: int, catalog: Catalog) -> tuple[int, ...]:
    """Return the card counts near `wanted` that the plan's parallelism allows."""
    shards = plan.workload.parallel.model_shards * plan.workload.parallel.expert
    below = wanted // shards * shards
    return tuple(_valid_values(plan, "count", (count for count in (below, below + shards) if count), catalog))


def _divisors(count: int) -> Iterator[int]:
    return (number for number in range(1, min(count, _MAX_DEGREE) + 1) if count % number == 0)


def _valid_values(plan: Plan, name: str, candidates: Iterator[int], catalog: Catalog) -> list[int]:
    """Return the values in `candidates` that the plan accepts for the field `name`."""
    possible_values: list[int] = []
    for number in candidates:
        try:
            resolve_conflicts(plan, {name: number}, catalog)
        except PlannerError:
            continue
        possible_values.append(number)
    return possible_values[:_MAX_RESULTS]
