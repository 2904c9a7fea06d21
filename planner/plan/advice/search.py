"""Search for changes that make a plan fit.

Sets of changes that do not fit yet grow one change at a time, so that those that fit are minimal: no subset of them is
enough.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from planner.base import Spec, Stop
from planner.errors import SpecError
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.plan.advice.change import ChangeSequence, PlanChange
from planner.plan.catalog import Catalog
from planner.plan.evaluate import resolved_fit
from planner.plan.plan import Plan
from planner.plan.solve import MinimumVerdict, meets

_MAX_CHANGES: Final = 3
# Larger sets are made from the smaller ones that need the least: the table may grow without the time doing so.
_BEAM: Final = 10
_SEQUENCE_BASES: Final = 5


class ChangedPlan(NamedTuple):
    """A plan after some changes, with its memory verdict."""

    changes: tuple[PlanChange, ...]
    plan: Plan
    fit: CardFit

    @property
    def used_bytes(self) -> int:
        """Return the memory used on the GPU after the changes, including the memory used by other programs."""
        return self.fit.total_bytes + self.plan.workload.other_processes_bytes


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """Search for changes to a plan: the catalog, the model's architecture, and the plan that it starts from.

    Once `stop` returns true, nothing more is found.
    """

    catalog: Catalog
    architecture: Architecture
    start: ChangedPlan
    stop: Stop

    @classmethod
    def for_plan(cls, plan: Plan, catalog: Catalog, architecture: Architecture, stop: Stop) -> "ChangeSearch":
        """Return a search for changes to `plan`, whose model is `architecture`."""
        return cls(catalog, architecture, ChangedPlan((), plan, resolved_fit(plan, catalog, architecture).fit), stop)

    def evaluate(self, base: ChangedPlan, change: PlanChange) -> ChangedPlan | None:
        """Return the plan `base` with one more change, evaluated, or None if the workload does not allow it."""
        if self.stop():
            return None
        try:
            plan = apply_change(base.plan, change)
            fit = resolved_fit(plan, self.catalog, self.architecture).fit
        except SpecError:
            return None
        return ChangedPlan((*base.changes, change), plan, fit)


def apply_change(plan: Plan, change: PlanChange) -> Plan:
    """Return `plan` with `change` applied.

    Raises:
        SpecError: If the workload does not allow it.
    """
    settings = {
        name: _merge_settings(getattr(plan.workload, name, None), value) for name, value in change.settings.items()
    }
    return plan.evolve(workload=plan.workload.evolve(**settings), **change.hardware)


def _merge_settings(old: object, new: object) -> object:
    if not (isinstance(old, Spec) and isinstance(new, dict)):
        return new
    return {**{name: getattr(old, name) for name in old.model_fields_set}, **new}


def find_changes(
    search: ChangeSearch, offered: Iterable[PlanChange], change_sequences: Iterable[ChangeSequence]
) -> Iterator[tuple[ChangedPlan, ...]]:
    """Yield all sets of changes evaluated so far, after each round; a set that fits is not extended.

    A change from a sequence stands alone or ends a set, with the mildest value with which the set fits, or is tight. A
        change that takes much time is combined with at most one other, so that sets without it are found too.
    """
    singles = [
        candidate
        for candidate in (search.evaluate(search.start, change) for change in offered)
        if candidate is not None
    ]
    changes = [candidate.changes[0] for candidate in singles]
    evaluated, level = list(singles), _nearest_not_fitting(singles)
    yield tuple(evaluated)
    sequences = tuple(change_sequences)
    evaluated.extend(_apply_sequences(search, [search.start, *level[:_SEQUENCE_BASES]], sequences))
    more_cards = tuple(sequence for sequence in sequences if sequence.lever == "cards")
    evaluated.extend(_apply_sequences(search, _cheap_not_fitting(singles, level[:_SEQUENCE_BASES]), more_cards))
    yield tuple(evaluated)
    for size in range(2, _MAX_CHANGES + 1):
        level = _extend_sets(
            search, level, changes, [candidate for candidate in evaluated if meets(candidate.fit, "fits")]
        )
        evaluated.extend(level)
        level = _nearest_not_fitting(candidate for candidate in level if not _takes_much_time(candidate))
        if size < _MAX_CHANGES:
            evaluated.extend(_apply_sequences(search, level[:_SEQUENCE_BASES], sequences))
        yield tuple(evaluated)


def _nearest_not_fitting(candidates: Iterable[ChangedPlan]) -> list[ChangedPlan]:
    """Return the sets of changes that do not fit yet, the nearest to fitting first."""
    return sorted(
        (changed for changed in candidates if not meets(changed.fit, "fits")), key=lambda changed: changed.used_bytes
    )[:_BEAM]


def _cheap_not_fitting(singles: Iterable[ChangedPlan], except_for: list[ChangedPlan]) -> list[ChangedPlan]:
    """Return the changes that do not fit yet, but cost no work and risk nothing: with them fewer GPUs are enough."""
    return [
        changed
        for changed in singles
        if changed not in except_for
        and not meets(changed.fit, "fits")
        and changed.changes[0].cost in ("none", "time")
        and changed.changes[0].risk == "none"
    ]


def _extend_sets(
    search: ChangeSearch, level: list[ChangedPlan], changes: list[PlanChange], enough: list[ChangedPlan]
) -> list[ChangedPlan]:
    """Return the sets in `level` with one more change each, except supersets of `enough`, the sets that already fit."""
    done = {frozenset(change.name for change in changed.changes) for changed in enough}
    grown: dict[frozenset[str], ChangedPlan] = {}
    for base in level:
        for change in changes:
            names = frozenset((change.name, *(changed.name for changed in base.changes)))
            if names in grown or _excludes(base, change.lever, change.excludes) or any(part < names for part in done):
                continue
            candidate = search.evaluate(base, change)
            if candidate is not None:
                grown[names] = candidate
    return list(grown.values())


def _apply_sequences(
    search: ChangeSearch, bases: list[ChangedPlan], sequences: tuple[ChangeSequence, ...]
) -> Iterator[ChangedPlan]:
    """Yield each of `bases` with one change from each sequence: the mildest that fits."""
    for base in bases:
        for sequence in sequences:
            candidate = None if _excludes(base, sequence.lever) else _mildest_fit(search, base, sequence)
            if candidate is not None:
                yield candidate


def _mildest_fit(search: ChangeSearch, base: ChangedPlan, sequence: ChangeSequence) -> ChangedPlan | None:
    """Return `base` with the mildest value of `sequence` that fits, else that fits tightly, else with the strongest."""
    hardest = search.evaluate(base, sequence.change(sequence.values[-1]))
    if hardest is None:
        return None
    at_worst: MinimumVerdict = "fits" if meets(hardest.fit, "fits") else "tight"
    if not meets(hardest.fit, at_worst):
        return hardest
    low, high, best = -1, len(sequence.values) - 1, hardest
    while high - low > 1:
        middle = (low + high) // 2
        candidate = search.evaluate(base, sequence.change(sequence.values[middle]))
        if candidate is not None and meets(candidate.fit, at_worst):
            high, best = middle, candidate
        else:
            low = middle
    return best


def _takes_much_time(base: ChangedPlan) -> bool:
    return any(change.cost == "much-time" for change in base.changes)


def _excludes(base: ChangedPlan, lever: str, excluded: tuple[str, ...] = ()) -> bool:
    """Return whether a change of `base` cannot be combined with one of `lever`, which excludes those of `excluded`."""
    return any(change.lever in (lever, *excluded) or lever in change.excludes for change in base.changes)
