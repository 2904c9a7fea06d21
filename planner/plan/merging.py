"""Merging of two versions of a document that were changed independently since a common earlier version."""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from planner.plan.plan import Plan

_ABSENT: Final = object()


class MergedValue(NamedTuple):
    """Merged JSON value, and the dotted names of fields that both changed differently, for which ours was taken."""

    value: Any
    conflicts: tuple[str, ...]


class MergedPlan(NamedTuple):
    """Merged plan, or None if both versions changed the same fields, whose dotted names are the `conflicts`."""

    plan: Plan | None
    conflicts: tuple[str, ...]


def merge_plans(base: Plan, ours: Plan, theirs: Plan) -> MergedPlan:
    """Merge two plans that were changed since `base`, field by field.

    Changes that are each valid, but not together, conflict, too.
    """
    before, mine, other = (plan.model_dump(mode="json") for plan in (base, ours, theirs))
    value, conflicts = merge_values(before, mine, other)
    if conflicts:
        return MergedPlan(None, conflicts)
    try:
        return MergedPlan(Plan.model_validate(value), ())
    except ValidationError:
        return MergedPlan(None, changed_fields(ours, theirs))


def changed_fields(plan: Plan, other: Plan) -> tuple[str, ...]:
    """Return the dotted names of the fields in which two plans differ."""
    return merge_values(None, plan.model_dump(mode="json"), other.model_dump(mode="json")).conflicts


def merge_values(base: object, ours: object, theirs: object, sets: Collection[str] = (), name: str = "") -> MergedValue:
    """Merge two JSON values that were changed since `base`: each field as the side has it that changed it.

    Args:
        base: The value from before both changes.
        ours: The value that wins where both sides changed the same field.
        theirs: The other value.
        sets: Dotted names of lists without order, of which additions and removals of both sides are kept.
        name: Dotted name of the value in its document.
    """
    if ours == theirs or theirs == base:
        return MergedValue(ours, ())
    if ours == base:
        return MergedValue(theirs, ())
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return _merge_fields(base if isinstance(base, Mapping) else {}, ours, theirs, sets, name)
    if name in sets and isinstance(ours, list) and isinstance(theirs, list):
        before = base if isinstance(base, list) else []
        added = [item for item in ours if item not in before]
        kept = [item for item in theirs if item not in added and (item in ours or item not in before)]
        return MergedValue([*added, *kept], ())
    return MergedValue(ours, (name,))


def _merge_fields(
    base: Mapping[str, object],
    ours: Mapping[str, object],
    theirs: Mapping[str, object],
    sets: Collection[str],
    name: str,
) -> MergedValue:
    fields: dict[str, object] = {}
    conflicts: list[str] = []
    for key in {**theirs, **ours}:
        before, mine, other = (version.get(key, _ABSENT) for version in (base, ours, theirs))
        value, unclear = merge_values(before, mine, other, sets, f"{name}.{key}" if name else key)
        conflicts.extend(unclear)
        if value is not _ABSENT:
            fields[key] = value
    return MergedValue(fields, tuple(conflicts))
