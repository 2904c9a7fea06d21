"""Edits of a plan: a workload that may break rules, their remedies, and the goals with which plans start."""

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.base import Spec
from planner.cost.terms import DEFAULT_JOBS, CostTerms
from planner.errors import PlannerError, SpecError
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, evaluate
from planner.plan.plan import Plan
from planner.plan.sharing import divisors
from planner.workload.choices import Checkpointing, Goal, Method, Task
from planner.workload.rules import (
    ALL_RULES,
    RESET,
    FieldValue,
    WorkloadRule,
    check_given,
    field_reader,
    is_offered,
    nest_fields,
)
from planner.workload.training import Lora
from planner.workload.workload import Training, Workload

WORKLOAD: Final = "workload."
_MAX_ROUNDS: Final = 8
TASK_OF_GOAL: Final[Mapping[Goal, Task]] = MappingProxyType(
    {"run": "inference", "fine-tune": "training", "train": "training"}
)
_METHODS: Final[tuple[Method, ...]] = ("lora", "qlora")
_CHECKPOINTING: Final[tuple[Checkpointing, ...]] = ("none", "full")
_MICRO_BATCHES: Final = (4, 2, 1)
"""Sizes to try: a GPU is busy with the 8,192 tokens of four usual sequences, and more only need more memory."""


class WorkloadDraft:
    """Workload fields during an edit, by dotted name; `edited` fields keep their values, others may be adjusted.

    `context` has the other values that rules read: the number of GPUs and the model. `plan_fields` names
    the edited fields of the plan.
    """

    def __init__(
        self,
        workload: Workload,
        edited: Mapping[str, object],
        context: Mapping[str, object],
        plan_fields: Collection[str] = (),
    ) -> None:
        self._kind = type(workload)
        self._fresh = self._kind()
        self._task = workload.task
        self._context = context
        self._edited = edited
        self._all_edited = {*edited, *plan_fields}
        self._before = _flat_fields(workload)
        self._fields = {**self._before, **edited}
        self._adjusted: dict[str, None] = {}

    @property
    def adjustments(self) -> tuple[str, ...]:
        """Return the names of the adjusted fields: fields that were not edited, but differ from before the edit."""
        return tuple(
            name for name in self._adjusted if self.value(name) != self._before.get(name, self._default_value(name))
        )

    def check(self) -> None:
        """Validate each edited value on its own, independent of the other fields.

        Raises:
            SpecError: If a value is not allowed.
        """
        try:
            self._kind.model_validate(nest_fields(self._edited))
        except ValidationError as error:
            # A conflict with default values is not an error of the edit itself.
            place = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            if any(place == name or place.startswith(f"{name}.") for name in self._edited):
                raise _placed_in_plan(SpecError.from_validation(error)) from None

    def value(self, name: str) -> FieldValue:
        """Return the value of the field `name`; for a group such as `lora`, a mapping of its fields, or None."""
        return self._field_value(name, self._fields)

    def adjust_field(self, name: str, value: object) -> None:
        """Set the field `name`, unless the user edited it."""
        if self._is_adjustable(name) and self.value(name) != value:
            self._fields = _updated_fields(self._fields, {name: value})
            if not _nested_fields(self._before, name):
                self._adjusted.setdefault(name)

    def apply_remedy(self, rule: WorkloadRule) -> bool:
        """Apply the first of a rule's remedies after which `rule` holds; return whether any field was adjusted."""
        if not self._rule_applies(rule):
            return False
        values = rule.values(self.value)
        if rule.holds(*values):
            return False
        for remedy in rule.remedies:
            made = remedy(*values) if callable(remedy) else remedy
            changes = {name: self._default_value(name) if value is RESET else value for name, value in made.items()}
            if self._satisfies_rule(rule, changes):
                for name, value in changes.items():
                    self.adjust_field(name, value)
                return True
        return False

    def reset_rejected_field(self, error: SpecError) -> None:
        """Reset the field that validation rejected with `error` to its default.

        Raises:
            SpecError: The same error, if that field was edited or the error blames a group of fields.
        """
        name = error.field.removeprefix(WORKLOAD)
        default = self._default_value(name)
        if not self._is_adjustable(name) or _nested_fields(self._fields, name) or self.value(name) == default:
            raise error
        self.adjust_field(name, default)

    def build(self) -> Workload:
        """Return the validated workload.

        Raises:
            SpecError: If a value is not allowed.
        """
        try:
            return self._kind.model_validate(nest_fields(self._fields))
        except ValidationError as error:
            raise _placed_in_plan(SpecError.from_validation(error)) from None

    def _rule_applies(self, rule: WorkloadRule) -> bool:
        """Return whether to check a rule in this draft, by the task and the edited fields."""
        if not rule.concerns(self._task) or (self._context["model"] is None and "model" in rule.fields):
            return False
        triggered = not rule.after or bool(self._all_edited.intersection(rule.after))
        return triggered and not self._all_edited.intersection(rule.yields_to)

    def _satisfies_rule(self, rule: WorkloadRule, changes: Mapping[str, object]) -> bool:
        """Return whether `rule` holds after `changes`, none of which may change an edited field."""
        if any(self.value(name) != value and not self._is_adjustable(name) for name, value in changes.items()):
            return False
        changed = _updated_fields(self._fields, changes)
        return rule.holds(*rule.values(lambda name: self._field_value(name, changed)))

    def _is_adjustable(self, name: str) -> bool:
        return not any(edited == name or edited.startswith(f"{name}.") for edited in self._edited)

    def _field_value(self, name: str, fields: Mapping[str, object]) -> FieldValue:
        if name in self._context:
            return self._context[name]
        return _nested_fields(fields, name) or fields.get(name, self._default_value(name))

    def _default_value(self, name: str) -> FieldValue:
        outer, _, inner = name.partition(".")
        if not inner:
            return getattr(self._fresh, outer, None)
        part = Lora() if outer == "lora" else getattr(self._fresh, outer, None)
        return getattr(part, inner, None)


def _flat_fields(workload: Workload) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name in workload.model_fields_set:
        value = getattr(workload, name)
        if isinstance(value, Spec):
            fields |= {f"{name}.{inner}": getattr(value, inner) for inner in value.model_fields_set}
        else:
            fields[name] = value
    return fields


def _nested_fields(fields: Mapping[str, object], part: str) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name.startswith(f"{part}.")}


def _updated_fields(fields: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Return `fields` with `changes` applied; a new value for a whole group replaces all its fields."""
    remaining = {name: value for name, value in fields.items() if name.partition(".")[0] not in changes}
    return {**remaining, **changes}


class ResolvedPlan(NamedTuple):
    """A plan that can be evaluated, and the workload fields that were adjusted after an edit, by name."""

    plan: Plan
    adjustments: tuple[str, ...] = ()


def resolve_conflicts(plan: Plan, edits: Mapping[str, object], catalog: Catalog) -> ResolvedPlan:
    """Return `plan` with the fields in `edits` changed, and conflicting fields set to allowed values.

    Fields of the workload have names such as `workload.lora.rank`, those of the plan their own.

    Raises:
        SpecError: If the edit itself is not allowed; edited fields are never adjusted.
        PlannerError: If the plan cannot be evaluated.
    """
    plan_edits = {name: value for name, value in edits.items() if not name.startswith(WORKLOAD)}
    edited = {name.removeprefix(WORKLOAD): value for name, value in edits.items() if name.startswith(WORKLOAD)}
    architecture = _edited_architecture(plan, plan_edits, catalog)
    context = {"count": plan_edits.get("count", plan.count), "model": architecture}
    draft = WorkloadDraft(plan.workload, edited, context, plan_fields=plan_edits.keys())
    draft.check()
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
    except PlannerError:
        return None


def _build_plan(plan: Plan, plan_edits: Mapping[str, object], draft: WorkloadDraft) -> Plan:
    """Return `plan` with the edited fields in `plan_edits` and the workload in `draft`."""
    workload = draft.build()
    try:
        return plan.evolve(**plan_edits, workload=workload)
    except SpecError as error:
        if error.field in Plan.model_fields:
            raise
        raise _placed_in_plan(error) from None


def _placed_in_plan(error: SpecError) -> SpecError:
    """Return the error about a workload with the name that its field has in edits."""
    return SpecError(f"{WORKLOAD}{error.field}".removesuffix("."), error.reason, error.hint)


_MAX_RESULTS: Final = 8
_MAX_DEGREE: Final = 64


def possible_degrees(plan: Plan, name: str, catalog: Catalog) -> tuple[int, ...]:
    """Return the possible degrees of one form of parallelism, such as `parallel.tensor`, in ascending order."""
    degrees = (degree for degree in divisors(plan.count) if degree <= _MAX_DEGREE)
    return tuple(_valid_values(plan, f"{WORKLOAD}{name}", degrees, catalog))


def possible_counts(plan: Plan, wanted: int, catalog: Catalog) -> tuple[int, ...]:
    """Return the GPU counts near `wanted` that the plan's parallelism allows."""
    shards = plan.workload.parallel.model_shards * plan.workload.parallel.expert
    below = wanted // shards * shards
    return tuple(_valid_values(plan, "count", (count for count in (below, below + shards) if count), catalog))


def _valid_values(plan: Plan, name: str, candidates: Iterator[int], catalog: Catalog) -> list[int]:
    possible_values: list[int] = []
    for number in candidates:
        try:
            resolve_conflicts(plan, {name: number}, catalog)
        except PlannerError:
            continue
        possible_values.append(number)
    return possible_values[:_MAX_RESULTS]


def goal_fields(plan: Plan, goal: Goal, catalog: Catalog) -> dict[str, object]:
    """Return the fields of the workload, such as `workload.method`, with which `goal` starts.

    The workload of `plan` has the task of the goal. Training starts with all parameters. Fine-tuning starts with the
    first adapter that fits the GPUs, from LoRA without checkpointing to QLoRA with a micro-batch of one (a pipeline
    has no QLoRA), or with the last if none fits; without a GPU, with plain LoRA. A workload that trains a part of the
    model and may fit stays.

    Raises:
        PlannerError: If the plan cannot be evaluated, for example because its model cannot be trained.
    """
    if goal == "run":
        return {}
    if goal == "train":
        return {f"{WORKLOAD}method": "full", f"{WORKLOAD}trainable": ()}
    is_adapted = isinstance(plan.workload, Training) and plan.workload.trains_part
    if is_adapted and evaluate(plan, catalog).memory.verdict != "does-not-fit":
        return {}
    if plan.gpu is None and not plan.workload.gpus:
        return _adapter_fields("lora")  # a GPU would decide between the others
    return _first_adapter_that_fits(plan, catalog)


def goal_terms(terms: CostTerms, goal: Goal) -> CostTerms:
    """Return `terms` with the usual job for `goal`: training is a run that ends; a job of the person's own stays."""
    if goal == "run":
        return terms.evolve(job=DEFAULT_JOBS["daily-hours"]) if terms.job == DEFAULT_JOBS["run"] else terms
    return terms if terms.job.kind == "run" else terms.evolve(job=DEFAULT_JOBS["run"])


def _first_adapter_that_fits(plan: Plan, catalog: Catalog) -> dict[str, object]:
    """Return the fields of the first adapter that fits, or of the one that needs the least memory."""
    variants: list[dict[str, object]] = []
    read = field_reader(plan.workload, model=architecture_of(plan, catalog), count=plan.count)
    methods = [method for method in _METHODS if is_offered("method", method, read, "training")]
    for method, checkpointing in product(methods, _CHECKPOINTING):
        # Left unset where LoRA fits without it, since nobody chose it: a later change to QLoRA then turns it on.
        is_open = method == "lora" and not _checkpoints(plan) and checkpointing == "none"
        checkpoints = {} if is_open else {f"{WORKLOAD}activation_checkpointing": checkpointing}
        variants = [
            {**_adapter_fields(method), **checkpoints, f"{WORKLOAD}micro_batch": size} for size in _MICRO_BATCHES
        ]
        if _fits(plan, variants[-1], catalog):
            return next(variant for variant in variants if _fits(plan, variant, catalog))
    return variants[-1]


def _checkpoints(plan: Plan) -> bool:
    return isinstance(plan.workload, Training) and plan.workload.activation_checkpointing != "none"


def _adapter_fields(method: Method) -> dict[str, object]:
    return {f"{WORKLOAD}method": method, f"{WORKLOAD}weights": None, f"{WORKLOAD}trainable": ()}


def _fits(plan: Plan, fields: Mapping[str, object], catalog: Catalog) -> bool:
    try:
        changed = resolve_conflicts(plan, fields, catalog).plan
    except SpecError:
        return False
    return evaluate(changed, catalog).memory.verdict == "fits"
