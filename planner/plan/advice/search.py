"""Search for changes that make a plan fit.

Sets of changes that do not fit yet grow one change at a time, so that those that fit are minimal: no subset of them is
enough.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.plan.advice.change import Ladder, PlanChange
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.solve import MinimumVerdict, assess_fit, meets

_MAX_CHANGES: Final = 3
# Larger sets are made from the smaller ones that need the least: the table may grow without the time doing so.
_BEAM: Final = 10
_LADDER_BASES: Final = 5


class ChangedPlan(NamedTuple):
    """A plan after some changes, and its verdict."""

    changes: tuple[PlanChange, ...]
    plan: Plan
    fit: CardFit

    @property
    def held_bytes(self) -> int:
        """Return the memory that is then used on the card, including that of other programs."""
        return self.fit.total_bytes + self.plan.workload.other_processes_bytes


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """The catalog, architecture and starting point of a search."""

    catalog: Catalog
    architecture: Architecture
    start: ChangedPlan

    @classmethod
    def of(cls, plan: Plan, catalog: Catalog, architecture: Architecture) -> "ChangeSearch":
        """Return the search for changes of `plan`, whose model is `architecture`."""
        return cls(catalog, architecture, ChangedPlan((), plan, assess_fit(plan, catalog, architecture)))

    def evaluate(self, base: ChangedPlan, change: PlanChange) -> ChangedPlan | None:
        """Return `base` with one more change, or None if the workload does not allow it."""
        try:
            plan = apply_change(base.plan, change)
            fit = assess_fit(plan, self.catalog, self.architecture)
        except (ValidationError, SpecError):
            return None
        return ChangedPlan((*base.changes, change), plan, fit)


def apply_change(plan: Plan, change: PlanChange) -> Plan:
    """Return `plan` with `change` applied.

    Raises:
        pydantic.ValidationError: If the workload does not allow it.
    """
    settings = {name: _merge(getattr(plan.workload, name, None), value) for name, value in change.settings.items()}
    return plan.evolve(workload=plan.workload.evolve(**settings), **change.hardware)


def _merge(old: object, new: object) -> object:
    if not (isinstance(old, Spec) and isinstance(new, dict)):
        return new
    return {**{name: getattr(old, name) for name in old.model_fields_set}, **new}


def find_changes(
    search: ChangeSearch, offered: Iterable[PlanChange], numbers: Iterable[Ladder]
) -> tuple[ChangedPlan, ...]:
    """Return every set of changes that was evaluated; a set that fits is not extended.

    A ladder stands alone or ends a set: its value is the mildest with which the set fits, or is tight if none fits. A
    change that takes much time is combined with at most one other, so that sets without it are found too.
    """
    singles = [
        candidate
        for candidate in (search.evaluate(search.start, change) for change in offered)
        if candidate is not None
    ]
    changes = [candidate.changes[0] for candidate in singles]
    found, level = list(singles), _not_fitting(singles)
    ladders = tuple(numbers)
    found.extend(_apply_ladders(search, [search.start, *level[:_LADDER_BASES]], ladders))
    for size in range(2, _MAX_CHANGES + 1):
        level = _extend(search, level, changes, [one for one in found if meets(one.fit, "fits")])
        found.extend(level)
        level = _not_fitting(one for one in level if not _takes_much_time(one))
        if size < _MAX_CHANGES:
            found.extend(_apply_ladders(search, level[:_LADDER_BASES], ladders))
    return tuple(found)


def _not_fitting(candidate: Iterable[ChangedPlan]) -> list[ChangedPlan]:
    """Return the most promising sets that do not fit yet, the nearest first."""
    return sorted((one for one in candidate if not meets(one.fit, "fits")), key=lambda one: one.held_bytes)[:_BEAM]


def _extend(
    search: ChangeSearch, level: list[ChangedPlan], changes: list[PlanChange], enough: list[ChangedPlan]
) -> list[ChangedPlan]:
    """Return the sets with one more change, except supersets of those that already fit."""
    done = {frozenset(change.name for change in one.changes) for one in enough}
    grown: dict[frozenset[str], ChangedPlan] = {}
    for base in level:
        for change in changes:
            names = frozenset((change.name, *(one.name for one in base.changes)))
            if names in grown or _same_lever(base, change.lever) or any(part < names for part in done):
                continue
            candidate = search.evaluate(base, change)
            if candidate is not None:
                grown[names] = candidate
    return list(grown.values())


def _apply_ladders(
    search: ChangeSearch, bases: list[ChangedPlan], ladders: tuple[Ladder, ...]
) -> Iterator[ChangedPlan]:
    for base in bases:
        for ladder in ladders:
            candidate = None if _same_lever(base, ladder.lever) else _mildest_fit(search, base, ladder)
            if candidate is not None:
                yield candidate


def _mildest_fit(search: ChangeSearch, base: ChangedPlan, ladder: Ladder) -> ChangedPlan | None:
    """Return `base` with the mildest value that makes it fit, or else tight, or else with the strongest value."""
    hardest = search.evaluate(base, ladder.change(ladder.values[-1]))
    if hardest is None:
        return None
    at_worst: MinimumVerdict = "fits" if meets(hardest.fit, "fits") else "tight"
    if not meets(hardest.fit, at_worst):
        return hardest
    low, high, best = -1, len(ladder.values) - 1, hardest
    while high - low > 1:
        middle = (low + high) // 2
        candidate = search.evaluate(base, ladder.change(ladder.values[middle]))
        if candidate is not None and meets(candidate.fit, at_worst):
            high, best = middle, candidate
        else:
            low = middle
    return best


def _takes_much_time(base: ChangedPlan) -> bool:
    return any(change.cost == "much-time" for change in base.changes)


def _same_lever(base: ChangedPlan, lever: str) -> bool:
    return any(change.lever == lever for change in base.changes)
