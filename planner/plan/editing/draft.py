"""A workload during an edit, as field values by dotted name."""

from collections.abc import Collection, Mapping
from typing import Final

from pydantic import ValidationError

from planner.base import Spec
from planner.errors import SpecError
from planner.workload.rules import RESET, FieldValue, WorkloadRule, nest_fields
from planner.workload.training import Lora
from planner.workload.workload import Workload

WORKLOAD: Final = "workload."


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
            pydantic.ValidationError: If a value is not allowed.
        """
        try:
            self._kind.model_validate(nest_fields(self._edited))
        except ValidationError as error:
            # A conflict with default values is not an error of the edit itself.
            place = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            if any(place == name or place.startswith(f"{name}.") for name in self._edited):
                raise

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
            pydantic.ValidationError: If a value is not allowed.
        """
        return self._kind.model_validate(nest_fields(self._fields))

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
        """Return whether a field may be adjusted: it was not edited."""
        return not any(edited == name or edited.startswith(f"{name}.") for edited in self._edited)

    def _field_value(self, name: str, fields: Mapping[str, object]) -> FieldValue:
        if name in self._context:
            return self._context[name]
        return _nested_fields(fields, name) or fields.get(name, self._default_value(name))

    def _default_value(self, name: str) -> FieldValue:
        """Return the default value of the field `name`."""
        outer, _, inner = name.partition(".")
        if not inner:
            return getattr(self._fresh, outer, None)
        part = Lora() if outer == "lora" else getattr(self._fresh, outer, None)
        return getattr(part, inner, None)


def _flat_fields(workload: Workload) -> dict[str, object]:
    """Return a workload's fields by dotted name."""
    fields: dict[str, object] = {}
    for name in workload.model_fields_set:
        value = getattr(workload, name)
        if isinstance(value, Spec):
            fields |= {f"{name}.{inner}": getattr(value, inner) for inner in value.model_fields_set}
        else:
            fields[name] = value
    return fields


def _nested_fields(fields: Mapping[str, object], part: str) -> dict[str, object]:
    """Return the fields nested in the group `part`, without its prefix."""
    return {name: value for name, value in fields.items() if name.startswith(f"{part}.")}


def _updated_fields(fields: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Return `fields` with `changes` applied; a new value for a whole group replaces all its fields."""
    remaining = {name: value for name, value in fields.items() if name.partition(".")[0] not in changes}
    return {**remaining, **changes}
