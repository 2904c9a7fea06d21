"""Advice that makes a plan fit: single changes and short combinations, each fully estimated, ranked by cost."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Final

from pydantic import Field

from planner.base import Spec, Stop
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.plan.advice.change import COSTS, RISKS, Cost, PlanChange, Risk
from planner.plan.advice.change_sequences import plan_sequences, sharing_changes
from planner.plan.advice.inference_changes import INFERENCE_CHANGES, PIPELINE_CHANGES, faster_program
from planner.plan.advice.search import ChangedPlan, ChangeSearch, apply_change, find_changes
from planner.plan.advice.software import PROGRAM_CHANGES
from planner.plan.advice.training_changes import ALIGNMENT_CHANGES, SHARING_CHANGES, TRAINING_CHANGES
from planner.plan.catalog import Catalog
from planner.plan.evaluate import (
    architecture_of,
    cards_of,
    find_fits,
    fits_among,
    smallest_first,
    with_resolved_sharing,
)
from planner.plan.plan import Plan
from planner.plan.sharing import tensor_domain
from planner.units import GIB
from planner.workload.defaults import with_defaults

_SDPA: Final = PlanChange(
    name="SDPA attention",
    lever="attention",
    sentence="Use PyTorch's fused attention kernels, which never store the full score matrix.",
    source="PyTorch scaled_dot_product_attention: the same result without the full score matrix",
    settings={"attention": "sdpa"},
    applies={"attention": ("eager", "flash")},
    keeps="the mathematical result",
)
CHANGES: Final[tuple[PlanChange, ...]] = (
    _SDPA,
    *TRAINING_CHANGES,
    *ALIGNMENT_CHANGES,
    *SHARING_CHANGES,
    *INFERENCE_CHANGES,
    *PIPELINE_CHANGES,
    *PROGRAM_CHANGES,
)
"""All memory-saving changes that set plan fields to fixed values; a new change is one more record in these tables."""


def larger_card(plan: Plan, catalog: Catalog) -> tuple[PlanChange, CardFit] | None:
    """Return the change to the smallest GPU that `plan` fits on, with the memory verdict there, or None.

    A larger slice (MIG) of the same GPU takes precedence, then GPUs of the same maker with at least the same compute
    capability. Announced GPUs come last.
    """
    if plan.gpu is None:
        return None
    present = catalog.hardware.gpu(plan.gpu)
    if (slice_fit := _larger_slice(plan, present, catalog)) is not None:
        return _card_change(catalog.hardware.gpu(slice_fit.gpu_id), slice_fit), slice_fit
    fits = [
        (card, fit)
        for fit in find_fits(plan, catalog)
        if fit.verdict == "fits" and (card := catalog.hardware.gpu(fit.gpu_id)) != present
    ]
    # Stable sorting keeps the smallest first.
    fits.sort(key=lambda found: (found[0].preliminary, not _is_as_capable(found[0], present)))
    return next(((_card_change(*found), found[1]) for found in fits), None)


def _larger_slice(plan: Plan, present: Gpu, catalog: Catalog) -> CardFit | None:
    """Return the verdict for the smallest slice of the GPU of which `present` is a slice that `plan` fits on."""
    if present.mig_slice is None:
        return None
    slices = catalog.hardware.slices(catalog.hardware.gpu(present.mig_slice.gpu))
    fits = fits_among(plan, catalog, tuple(each.id for each in slices), plan.count).values()
    return next((fit for fit in smallest_first(fits, catalog) if fit.verdict == "fits"), None)


def _is_as_capable(card: Gpu, present: Gpu) -> bool:
    """Return whether `card` runs what `present` runs: same vendor and kind of memory, no lower compute capability."""
    if card.vendor != present.vendor or card.unified_memory != present.unified_memory:
        return False
    return _capability_or_year(card) >= _capability_or_year(present)


def _capability_or_year(card: Gpu) -> float:
    """Return the compute capability of an NVIDIA GPU; for other makers, the year of release."""
    if card.vendor == "NVIDIA" and card.compute_capability:
        return float(card.compute_capability)
    return card.year or 0


def _card_change(card: Gpu, fit: CardFit) -> PlanChange:
    """Return the change to `card`, with the memory verdict `fit` there."""
    kind = "GPU" if card.mig_slice is None else "slice (MIG) of the GPU"
    return PlanChange(
        name=f"{card.name} instead",
        lever="card",
        sentence=f"Use the smallest {kind} that the plan fits on, with {(fit.capacity_bytes or 0) / GIB:.1f} GiB.",
        source="this plan, estimated on every GPU in the catalog",
        hardware={"gpu": card.id},
        cost="hardware",
        slower_by_about=None,
        costs=f"another {'GPU' if card.mig_slice is None else 'slice'}",
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
    """One change in a piece of advice: name, instruction, lever (what it acts on), and the source for its cost.

    `slower_by_about` is its own slowdown as a factor, None if unknown.
    """

    name: str
    lever: str
    sentence: str
    source: str
    slower_by_about: float | None = Field(default=1.0, exclude=True)


class ChangedSetting(Spec):
    """New value of a plan field, by the field's JSON name."""

    field: str
    value: bool | int | float | str | tuple[int, ...] | None


class Advice(Spec):
    """Changes that make a plan need less memory or give it more, and their effects.

    `saved_bytes` is the reduction per GPU. `verdict` is the one after the changes; None without a GPU, or if the GPU
    cannot run the plan, which `needs` then explains. `slower_by_about` is the known slowdown as a factor, below 1 for a
    faster plan, None if unknown; `costs` describes other costs. `kept` is the fraction of the requested work that is
    still done. `plan` is the plan after the changes.
    """

    name: str
    steps: tuple[AdviceStep, ...]
    settings: tuple[ChangedSetting, ...]
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
    """Return up to eight pieces of advice that make `plan` fit, the best first; only `changes` are permitted.

    Each advice is minimal: without one of its changes the plan would not fit. If only other hardware makes it fit, the
    changes that come nearest to fitting are returned, too. For a plan that fits or has no GPU, these are the changes
    that each save at least 1 % of its memory, the largest saving first, after a program that generates text faster. A
    traced plan can only move to another GPU.

    **Formula** Ranked by the verdict, the cost (none, time, less work, much time, hardware; a real risk to quality
    counts as less work), the risk, and the number of changes.
    """
    *_, best = advise_in_rounds(plan, catalog, changes)
    return best


def advise_in_rounds(
    plan: Plan,
    catalog: Catalog,
    changes: tuple[PlanChange, ...] = CHANGES,
    stop: Stop = lambda: False,
) -> Iterator[tuple[Advice, ...]]:
    """Yield the best advice found so far after each round of `advise`, the final one last.

    Other hardware and single changes come first, then combinations. Once `stop` returns true, nothing more is found.
    """
    if plan.model.trace is not None:
        yield tuple(_hardware_advice(plan, catalog))
        return
    search = ChangeSearch.for_plan(plan, catalog, architecture_of(plan, catalog), stop)
    workload = with_defaults(with_resolved_sharing(plan, catalog).workload, search.architecture, plan.count)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    domain = tensor_domain((kind.gpu for kind in cards_of(plan, catalog)), plan.timing)
    offered = [change for change in changes if change.applies_to(workload, gpu)]
    if not _needs_advice(search.start):
        offered.extend(sharing_changes(plan, workload, search.architecture, domain))
        savings = sorted(_saving_advice(search, offered), key=lambda advice: -advice.saved_bytes)
        faster = (_build_advice(search.start, changed) for changed in faster_program(search, workload))
        yield (*faster, *_first_with_sharing(savings, savings))[:_MAX_ADVICE]
        return
    hardware = tuple(_hardware_advice(plan, catalog))
    candidates: tuple[ChangedPlan, ...] = ()
    pieces: list[Advice] = []
    for candidates in find_changes(search, offered, plan_sequences(plan, workload, search.architecture, domain)):
        improving = (changed for changed in candidates if _improves_fit(search.start, changed))
        pieces = [*(_build_advice(search.start, changed) for changed in improving), *hardware]
        yield _best_advice(pieces)
    if all(advice.cost == "hardware" for advice in pieces):
        yield _best_advice([*pieces, *_nearest_advice(search.start, candidates)])


def _needs_advice(start: ChangedPlan) -> bool:
    return bool(start.fit.unsupported) or start.fit.verdict in ("tight", "does-not-fit")


def _saving_advice(search: ChangeSearch, offered: Iterable[PlanChange]) -> Iterator[Advice]:
    """Yield advice that saves memory in a plan that fits or has no GPU."""
    least = _MIN_SAVING * search.start.used_bytes
    for change in offered:
        candidate = search.evaluate(search.start, change)
        if candidate is not None and search.start.used_bytes - candidate.used_bytes >= least:
            yield _build_advice(search.start, candidate)


def _improves_fit(start: ChangedPlan, candidate: ChangedPlan) -> bool:
    """Return whether `candidate` fits, is likelier to fit, or would fit if its GPU could run it."""
    fit = candidate.fit
    if fit.unsupported:
        has_room = fit.free_bytes is not None and fit.free_bytes >= 0
        return len(candidate.changes) == 1 and not start.fit.unsupported and has_room
    return fit.verdict == "fits" or (fit.likely and not start.fit.likely)


def _nearest_advice(start: ChangedPlan, candidates: Iterable[ChangedPlan]) -> Iterator[Advice]:
    """Yield the candidates that come nearest to fitting, each with a different combination of levers."""
    seen: list[frozenset[str]] = []
    for changed in sorted(candidates, key=lambda changed: (changed.used_bytes, len(changed.changes))):
        levers = frozenset(change.lever for change in changed.changes)
        if changed.fit.likely or changed.used_bytes >= start.used_bytes:
            continue
        if len(seen) < _NEAREST and not any(part <= levers for part in seen):
            seen.append(levers)
            yield _build_advice(start, changed)


def _hardware_advice(plan: Plan, catalog: Catalog) -> Iterator[Advice]:
    """Yield the advice to use another GPU, the only advice for traced plans."""
    before = None if plan.gpu is None else fits_among(plan, catalog, (plan.gpu,), plan.count)[plan.gpu]
    other = larger_card(plan, catalog)
    if before is None or other is None or before.verdict == "fits":
        return
    change, fit = other
    yield _build_advice(ChangedPlan((), plan, before), ChangedPlan((change,), apply_change(plan, change), fit))


def _build_advice(start: ChangedPlan, candidate: ChangedPlan) -> Advice:
    """Return the advice that leads from the plan `start` to the changed plan `candidate`."""
    changes = candidate.changes
    return Advice(
        name=" + ".join(change.name for change in changes),
        steps=tuple(
            AdviceStep(
                name=one.name,
                lever=one.lever,
                sentence=one.sentence,
                source=one.source,
                slower_by_about=one.slower_by_about,
            )
            for one in changes
        ),
        settings=tuple(_changed_settings(start.plan, candidate.plan)),
        verdict=candidate.fit.verdict,
        saved_bytes=start.used_bytes - candidate.used_bytes,
        total_bytes=candidate.fit.total_bytes,
        free_bytes=candidate.fit.free_bytes,
        fit_probability=candidate.fit.fit_probability,
        cost=max((change.cost for change in changes), key=COSTS.index),
        slower_by_about=_combined_slowdown([change.slower_by_about for change in changes]),
        costs=_unique_texts(change.costs for change in changes),
        kept=prod(change.kept for change in changes),
        risk=max((change.risk for change in changes), key=RISKS.index),
        needs=_unique_texts((*(change.needs for change in changes), *candidate.fit.unsupported)),
        keeps=_unique_texts(change.keeps for change in changes) if all(change.keeps for change in changes) else (),
        plan=candidate.plan,
    )


def _combined_slowdown(factors: list[float | None]) -> float | None:
    """Return the product of the known slowdown factors; None if every slowdown is unknown."""
    known = prod(factor for factor in factors if factor is not None)
    return None if known == 1 and None in factors else known


def _unique_texts(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))


def _changed_settings(old: Plan, new: Plan) -> Iterator[ChangedSetting]:
    """Yield the plan settings that differ between the plans, with the new values."""
    for name in ("gpu", "count"):
        if getattr(old, name) != getattr(new, name):
            yield ChangedSetting(field=name, value=getattr(new, name))
    yield from _changed_fields(old.workload, new.workload, "workload")


def _changed_fields(old: Spec, new: Spec, place: str) -> Iterator[ChangedSetting]:
    for name in type(new).model_fields:
        field, after = type(new).model_fields[name], getattr(new, name)
        before = getattr(old, name, field.get_default(call_default_factory=True))  # another program has other settings
        if isinstance(before, Spec) and isinstance(after, Spec):
            yield from _changed_fields(before, after, f"{place}.{name}")
        elif before != after:
            yield ChangedSetting(field=f"{place}.{name}", value=after)


def _best_advice(pieces: Iterable[Advice]) -> tuple[Advice, ...]:
    """Return the best pieces of advice, without those that simpler ones match, and few with the same levers.

    One piece that shares the model between GPUs is always among them, if there is any, and at most one that adds GPUs
    for it: the one that risks least, then the one with the fewest GPUs.
    """
    every = tuple(pieces)
    sharing_more_cards = sorted((one for one in every if _adds_cards(one) and _shares_model(one)), key=_cards_key)
    ranked = sorted((advice for advice in every if advice not in sharing_more_cards[1:]), key=_ranking_key)
    chosen: list[Advice] = []
    for advice in ranked:
        alike = sum(1 for other in chosen if _advice_levers(other) == _advice_levers(advice))
        simpler = any(_is_simpler(other, advice) for other in ranked)
        if not simpler and alike < (_MAX_SIMILAR if len(advice.steps) == 1 else 1):
            chosen.append(advice)
    return _first_with_sharing(chosen, ranked)


def _first_with_sharing(chosen: Sequence[Advice], ranked: Iterable[Advice]) -> tuple[Advice, ...]:
    """Return the first pieces of advice, the last one being the best that shares the model if no other one does."""
    first, shares = chosen[:_MAX_ADVICE], next(filter(_shares_model, ranked), None)
    if shares is None or any(map(_shares_model, first)):
        return tuple(first)
    return (*first[: _MAX_ADVICE - 1], shares)


def _adds_cards(advice: Advice) -> bool:
    return any(setting.field == "count" for setting in advice.settings)


def _cards_key(advice: Advice) -> tuple[object, ...]:
    """Return the sort key of a piece of advice that adds GPUs: verdict, risk, GPUs, number of changes, slowdown."""
    return (
        _VERDICT_ORDER.index(advice.verdict),
        RISKS.index(advice.risk),
        advice.plan.count,
        len(advice.steps),
        _slowdown_key(advice),
    )


def _shares_model(advice: Advice) -> bool:
    parallel = advice.plan.workload.parallel
    changes_cards = not _advice_levers(advice).isdisjoint(("sharing", "cards"))
    return changes_cards and (parallel.model_shards > 1 or parallel.zero > 0)


def _ranking_key(advice: Advice) -> tuple[object, ...]:
    """Return the sort key of a piece of advice: verdict, cost, kept work, slowdown, risk, number of changes."""
    return (
        _VERDICT_ORDER.index(advice.verdict),
        _cost_rank(advice),
        -advice.kept,
        _slowdown_key(advice),
        RISKS.index(advice.risk),
        len(advice.steps),
        -advice.saved_bytes,
    )


def _cost_rank(advice: Advice) -> int:
    """Return the rank of an advice's cost; a real risk to quality ranks like less work."""
    return max(COSTS.index(advice.cost), COSTS.index("less") if advice.risk == "real" else 0)


def _slowdown_key(advice: Advice) -> tuple[float, bool]:
    """Return the sort key for the slowdown; unknown slowdowns come before known slowdowns."""
    return (advice.slower_by_about or 1.0, advice.slower_by_about is None)


def _advice_levers(advice: Advice) -> frozenset[str]:
    return frozenset(step.lever for step in advice.steps)


def _is_simpler(advice: Advice, other: Advice) -> bool:
    """Return whether `advice` has fewer changes than the `other` advice, about the same effect, and no higher cost."""
    return (
        len(advice.steps) < len(other.steps)
        and _VERDICT_ORDER.index(advice.verdict) <= _VERDICT_ORDER.index(other.verdict)
        and _cost_rank(advice) <= _cost_rank(other)
        and (advice.slower_by_about or 1.0) <= (other.slower_by_about or 1.0)
        and RISKS.index(advice.risk) <= RISKS.index(other.risk)
        and advice.kept >= _SIMILAR_WORK * other.kept
    )
