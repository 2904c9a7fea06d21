"""Advice that makes a plan fit: single changes and short combinations, each fully estimated, ranked by cost."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.plan.advice.change import COSTS, RISKS, Cost, PlanChange, Risk
from planner.plan.advice.inference_changes import INFERENCE_CHANGES
from planner.plan.advice.ladders import plan_ladders
from planner.plan.advice.pipeline_changes import PIPELINE_CHANGES
from planner.plan.advice.search import ChangedPlan, ChangeSearch, apply_change, find_changes
from planner.plan.advice.software.lookup import PROGRAM_CHANGES
from planner.plan.advice.training_changes import SHARING_CHANGES, TRAINING_CHANGES
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, find_fits, fits_by_gpu
from planner.plan.plan import Plan
from planner.units import GIB
from planner.workload.defaults import with_defaults

_SDPA: Final = PlanChange(
    name="SDPA attention",
    lever="attention",
    sentence="Use PyTorch's fused attention kernels, which never store the full score matrix.",
    source="PyTorch scaled_dot_product_attention: the same result without the full score matrix",
    settings={"attention": "sdpa"},
    applies={"attention": ("eager", "flash")},
    keeps="the mathematics",
)
CHANGES: Final[tuple[PlanChange, ...]] = (
    _SDPA,
    *TRAINING_CHANGES,
    *SHARING_CHANGES,
    *INFERENCE_CHANGES,
    *PIPELINE_CHANGES,
    *PROGRAM_CHANGES,
)
"""Every change that is one value for another: another way to save memory is another record in one of these tables."""


def larger_card(plan: Plan, catalog: Catalog) -> tuple[PlanChange, CardFit] | None:
    """Return the smallest card that `plan` fits on as a change, with its verdict, or None.

    Cards of the same maker with at least the same compute capability take precedence.
    """
    if plan.gpu is None:
        return None
    present = catalog.hardware.gpu(plan.gpu)
    fits = [fit for fit in find_fits(plan, catalog) if fit.verdict == "fits" and fit.gpu_id != plan.gpu]
    alike = (fit for fit in fits if _is_as_capable(catalog.hardware.gpu(fit.gpu_id), present))
    fit = next(alike, next(iter(fits), None))
    return None if fit is None else (_card_change(catalog.hardware.gpu(fit.gpu_id), fit), fit)


def _is_as_capable(card: Gpu, present: Gpu) -> bool:
    if card.vendor != present.vendor or card.unified_memory != present.unified_memory:
        return False
    return _capability(card) >= _capability(present)


def _capability(card: Gpu) -> float:
    """Return NVIDIA's compute capability; for other makers, the year of release."""
    if card.vendor == "NVIDIA" and card.compute_capability:
        return float(card.compute_capability)
    return card.year or 0


def _card_change(card: Gpu, fit: CardFit) -> PlanChange:
    return PlanChange(
        name=f"{card.name} instead",
        lever="card",
        sentence=f"Use the smallest card that the plan fits on, with {(fit.capacity_bytes or 0) / GIB:.1f} GiB.",
        source="this plan, estimated on every card of the catalog",
        hardware={"gpu": card.id},
        cost="hardware",
        slower_by_about=None,
        costs="another card",
        keeps="everything else",
    )


_MAX_ADVICE: Final = 8
_NEAREST: Final = 3
_MAX_SIMILAR: Final = 2
_MIN_SAVING: Final = 0.01
# A simpler advice wins if it keeps at least this fraction of the work that the other one keeps.
_SIMILAR_WORK: Final = 0.75
_VERDICT_ORDER: Final[tuple[Verdict | None, ...]] = ("fits", "tight", None, "does-not-fit")


class AdviceStep(Spec):
    """One change of an advice: its name, instruction, lever, and the source for its cost."""

    name: str
    lever: str
    sentence: str
    source: str


class Setting(Spec):
    """A field of the plan, by its JSON name, and its new value."""

    field: str
    value: bool | int | float | str | tuple[int, ...] | None


class Advice(Spec):
    """Changes that reduce the memory of a plan or provide more, and their effects.

    `saved_bytes` is the reduction per card. `verdict` is the one after the changes; None without a card, or if the card
    cannot run the plan, which `needs` then explains. `slower_by_about` is the known slowdown as a factor, None if
    unknown; `costs` describes other costs. `kept` is the fraction of the requested work that is still done. `plan` is
    the plan after the changes.
    """

    name: str
    steps: tuple[AdviceStep, ...]
    settings: tuple[Setting, ...]
    verdict: Verdict | None
    saved_bytes: int
    total_bytes: int
    free_bytes: int | None
    fit_probability: float | None
    cost: Cost
    slower_by_about: float | None
    costs: tuple[str, ...]
    kept: float
    risk: Risk
    needs: tuple[str, ...]
    keeps: tuple[str, ...]
    plan: Plan = Field(exclude=True, repr=False)


def advise(plan: Plan, catalog: Catalog, changes: tuple[PlanChange, ...] = CHANGES) -> tuple[Advice, ...]:
    """Return up to eight pieces of advice that make `plan` fit, the best first; `changes` are the permitted ones.

    Each advice is minimal: without one of its changes the plan would not fit. If only other hardware makes it fit, the
    changes that come nearest are returned as well. For a plan that fits or has no card, they are the single changes
    that save at least 1 % of its memory, the largest saving first. A traced plan can only move to another card.

    **Formula** Ranked by the verdict, the cost (none, time, less work, much time, hardware; a real risk to quality
    counts as less work), the risk, and the number of changes.
    """
    if plan.model.trace is not None:
        return tuple(_hardware_advice(plan, catalog))
    search = ChangeSearch.of(plan, catalog, architecture_of(plan, catalog))
    workload = with_defaults(plan.workload, search.architecture, plan.count)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    offered = [change for change in changes if change.applies_to(workload, gpu)]
    if not _needs_advice(search.start):
        return tuple(sorted(_savings(search, offered), key=lambda advice: -advice.saved_bytes)[:_MAX_ADVICE])
    candidate = find_changes(search, offered, plan_ladders(plan, workload, search.architecture))
    found = [_advice(search.start, one) for one in candidate if _helps(search.start, one)]
    found.extend(_hardware_advice(plan, catalog))
    if all(advice.cost == "hardware" for advice in found):
        found.extend(_nearest(search.start, candidate))
    return _best(found)


def _needs_advice(start: ChangedPlan) -> bool:
    return bool(start.fit.unsupported) or start.fit.verdict in ("tight", "does-not-fit")


def _savings(search: ChangeSearch, offered: Iterable[PlanChange]) -> Iterator[Advice]:
    least = _MIN_SAVING * search.start.held_bytes
    for change in offered:
        candidate = search.evaluate(search.start, change)
        if candidate is not None and search.start.held_bytes - candidate.held_bytes >= least:
            yield _advice(search.start, candidate)


def _helps(start: ChangedPlan, candidate: ChangedPlan) -> bool:
    """Return whether the plan then fits, becomes likely to fit, or would fit if its card could run it."""
    fit = candidate.fit
    if fit.unsupported:
        has_room = fit.free_bytes is not None and fit.free_bytes >= 0
        return len(candidate.changes) == 1 and not start.fit.unsupported and has_room
    return fit.verdict == "fits" or (fit.likely and not start.fit.likely)


def _nearest(start: ChangedPlan, candidate: Iterable[ChangedPlan]) -> Iterator[Advice]:
    """Yield the candidates that come nearest to fitting, each with a different combination of levers."""
    seen: list[frozenset[str]] = []
    for one in sorted(candidate, key=lambda one: (one.held_bytes, len(one.changes))):
        levers = frozenset(change.lever for change in one.changes)
        if one.fit.likely or one.held_bytes >= start.held_bytes:
            continue
        if len(seen) < _NEAREST and not any(part <= levers for part in seen):
            seen.append(levers)
            yield _advice(start, one)


def _hardware_advice(plan: Plan, catalog: Catalog) -> Iterator[Advice]:
    """Yield the advice to use another card, the only one for traced plans."""
    before = None if plan.gpu is None else fits_by_gpu(plan, catalog)[plan.gpu]
    other = larger_card(plan, catalog)
    if before is None or other is None or before.verdict == "fits":
        return
    change, fit = other
    yield _advice(ChangedPlan((), plan, before), ChangedPlan((change,), apply_change(plan, change), fit))


def _advice(start: ChangedPlan, candidate: ChangedPlan) -> Advice:
    changes = candidate.changes
    return Advice(
        name=" + ".join(change.name for change in changes),
        steps=tuple(
            AdviceStep(name=one.name, lever=one.lever, sentence=one.sentence, source=one.source) for one in changes
        ),
        settings=tuple(_settings(start.plan, candidate.plan)),
        verdict=candidate.fit.verdict,
        saved_bytes=start.held_bytes - candidate.held_bytes,
        total_bytes=candidate.fit.total_bytes,
        free_bytes=candidate.fit.free_bytes,
        fit_probability=candidate.fit.fit_probability,
        cost=max((change.cost for change in changes), key=COSTS.index),
        slower_by_about=_combined_slowdown([change.slower_by_about for change in changes]),
        costs=_unique(change.costs for change in changes),
        kept=prod(change.kept for change in changes),
        risk=max((change.risk for change in changes), key=RISKS.index),
        needs=_unique((*(change.needs for change in changes), *candidate.fit.unsupported)),
        keeps=_unique(change.keeps for change in changes),
        plan=candidate.plan,
    )


def _combined_slowdown(factors: list[float | None]) -> float | None:
    known = prod(factor for factor in factors if factor is not None)
    return None if known == 1 and None in factors else known


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    """Return the non-empty texts without duplicates."""
    return tuple(dict.fromkeys(word for word in words if word))


def _settings(old: Plan, new: Plan) -> Iterator[Setting]:
    for name in ("gpu", "count"):
        if getattr(old, name) != getattr(new, name):
            yield Setting(field=name, value=getattr(new, name))
    yield from _changed_fields(old.workload, new.workload, "workload")


def _changed_fields(old: Spec, new: Spec, place: str) -> Iterator[Setting]:
    for name in type(new).model_fields:
        before, after = getattr(old, name, None), getattr(new, name)  # another program has other settings
        if isinstance(before, Spec) and isinstance(after, Spec):
            yield from _changed_fields(before, after, f"{place}.{name}")
        elif before != after:
            yield Setting(field=f"{place}.{name}", value=after)


def _best(found: Iterable[Advice]) -> tuple[Advice, ...]:
    """Return the best advice: nothing that a simpler one matches, and few of one kind."""
    ranked = sorted(found, key=_rank)
    kept: list[Advice] = []
    for advice in ranked:
        alike = sum(1 for other in kept if _levers(other) == _levers(advice))
        simpler = any(_is_simpler(other, advice) for other in ranked)
        if not simpler and alike < (_MAX_SIMILAR if len(advice.steps) == 1 else 1):
            kept.append(advice)
    return tuple(kept[:_MAX_ADVICE])


def _rank(advice: Advice) -> tuple[object, ...]:
    return (
        _VERDICT_ORDER.index(advice.verdict),
        _burden(advice),
        -advice.kept,
        _slowness(advice),
        RISKS.index(advice.risk),
        len(advice.steps),
        -advice.saved_bytes,
    )


def _burden(advice: Advice) -> int:
    """Return the rank of the cost; a real risk to quality counts as less work."""
    return max(COSTS.index(advice.cost), COSTS.index("less") if advice.risk == "real" else 0)


def _slowness(advice: Advice) -> tuple[float, bool]:
    """Return the sort key for time; an unknown slowdown comes before the known ones."""
    return (advice.slower_by_about or 1.0, advice.slower_by_about is None)


def _levers(advice: Advice) -> frozenset[str]:
    return frozenset(step.lever for step in advice.steps)


def _is_simpler(one: Advice, other: Advice) -> bool:
    """Return whether `one` needs fewer changes than `other` for about the same result at no higher cost."""
    return (
        len(one.steps) < len(other.steps)
        and _VERDICT_ORDER.index(one.verdict) <= _VERDICT_ORDER.index(other.verdict)
        and _burden(one) <= _burden(other)
        and (one.slower_by_about or 1.0) <= (other.slower_by_about or 1.0)
        and RISKS.index(one.risk) <= RISKS.index(other.risk)
        and one.kept >= _SIMILAR_WORK * other.kept
    )
