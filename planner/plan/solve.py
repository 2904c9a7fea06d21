"""The largest number, the fewest cards and the smallest card with which a plan fits.

Each is found by repeating the whole estimate: it never falls as a number of the workload grows, so that bisection finds
the last one that fits.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field as ModelField
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, estimate_on, fits_on
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.models.architecture import Architecture
from planner.plan.cards import cards_of
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, find_fits
from planner.plan.plan import Plan
from planner.plan.sharing import usual_sharing
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import field_owner

AtWorst = Literal["fits", "tight"]


def judge(plan: Plan, catalog: Catalog, architecture: Architecture) -> CardFit:
    """Return the verdict of the whole estimate of `plan`, whose model is `architecture`.

    Raises:
        SpecError: If the workload does not go with the model or the number of cards.
    """
    if plan.workload.gpus:
        return _fullest(plan, catalog, architecture)
    if plan.gpu is None:
        memory = estimate_memory(architecture, plan.workload, count=plan.count, corrections=plan.corrections)
        return CardFit("", None, memory.total_bytes, None, None, ())
    gpu = catalog.hardware.gpu(plan.gpu)
    card = [(gpu, catalog.hardware.usable_memory(gpu))]
    return next(iter(fits_on(architecture, plan.workload, card, plan.count, plan.corrections)))


def _fullest(plan: Plan, catalog: Catalog, architecture: Architecture) -> CardFit:
    """Return the verdict on the card that has the least left of several kinds."""
    memory = estimate_on(architecture, plan.workload, cards_of(plan, catalog), plan.corrections)
    fullest = memory.per_gpu[memory.fullest]
    return CardFit(
        fullest.gpu or "",
        memory.verdict,
        memory.total_bytes,
        memory.capacity_bytes,
        memory.free_bytes,
        memory.unsupported,
        memory.fit_probability,
    )


def is_good(fit: CardFit, at_worst: AtWorst) -> bool:
    """Return whether `fit` is at least as good as `at_worst`."""
    return fit.verdict == "fits" or (at_worst == "tight" and fit.likely)


Field = Literal["micro_batch", "sequence_length", "batch", "context_length", "prompt_length", "gpu_layers"]
Bound = Literal["memory", "model", "workload"]

LENGTHS: Final = ("sequence_length", "context_length", "prompt_length")
_MOST: Final = 1 << 24
_MOST_CARDS: Final = 1 << 16


class Solved(Spec):
    """What was asked for, a field of the workload, `count` or `gpu`, and the value found.

    `bounded_by` says what keeps a number from being larger: the card's memory, the tokens that the model is made for,
    or what a workload may ask. `how` says how cards share the network, where the plan does not. Without a value,
    `reason` says why. `plan` is the plan with the value in it.
    """

    asked: Field | Literal["count", "gpu"]
    value: int | str | None = None
    verdict: Verdict | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    fit_probability: float | None = None
    bounded_by: Bound | None = None
    how: str = ""
    reason: str = ""
    plan: Plan | None = ModelField(default=None, exclude=True, repr=False)


def largest_that_fits(plan: Plan, catalog: Catalog, field: Field, at_worst: AtWorst = "fits") -> Solved:
    """Return the largest `field` with which `plan` fits on its card.

    With `at_worst` "tight" what is tight counts as well.

    Lengths end at what the model is made for.

    Raises:
        SpecError: If the workload has no such field, or the model was traced.
    """
    _spec(plan, field)
    architecture = architecture_of(plan, catalog)
    if field in LENGTHS and not architecture.takes_lengths:
        fixed = architecture.fixed_length
        reason = "a pipeline that makes images has no such length"
        if fixed is not None:
            reason = f"each input has {fixed:,} tokens, whatever is asked"
        return Solved(asked=field, reason=reason)
    workload = with_defaults(plan.workload, architecture, plan.count)
    owner = field_owner(field)
    if owner is not None and owner.name != workload.profile:
        return Solved(asked=field, reason=f"only {owner.title} leaves layers in RAM, and the profile is another")

    def fit(value: int) -> CardFit:
        return judge(with_value(plan, field, value), catalog, architecture)

    most, bound = _most(plan, field, architecture)
    least = fit(1)
    if not is_good(least, at_worst):
        return Solved(asked=field, reason=_why_none(least))
    value, found = _largest(fit, at_worst, most, least)
    return _solved(field, value, with_value(plan, field, value), found, bound if value == most else "memory")


def fewest_cards(plan: Plan, catalog: Catalog, at_worst: AtWorst = "fits") -> Solved:
    """Return how many cards of its kind `plan` takes.

    A plan that is spread in its own way stays so, over as many replicas as that takes. Where each card holds the whole
    network and one is not enough, they share it in the way that is usual (`how` says it).

    Raises:
        SpecError: If the plan has no card, or the model was traced.
    """
    architecture = architecture_of(plan, catalog)
    if plan.gpu is None:
        raise SpecError("gpu", "there is no card to count", hint="Choose one.")
    parallel = plan.workload.parallel
    if parallel.is_plain:
        sharing = usual_sharing(with_defaults(plan.workload, architecture, plan.count), architecture)
        counts: Sequence[int] = (1, *sharing.counts)
    else:
        sharing = None
        unit = parallel.model_shards * parallel.expert
        counts = range(unit, _MOST_CARDS + 1, unit)

    def spread(count: int) -> Plan:
        return on_cards(plan, count, sharing.settings(count) if sharing and count > 1 else {})

    found = _first(lambda count: is_good(judge(spread(count), catalog, architecture), at_worst), counts)
    if found is None:
        reason = _why_none(judge(plan, catalog, architecture), "each card still holds too much")
        return Solved(asked="count", reason=reason)
    how = sharing.title if sharing and found > 1 else ""
    fit = judge(spread(found), catalog, architecture)
    return _solved("count", found, spread(found), fit, None).evolve(how=how)


def smallest_card(plan: Plan, catalog: Catalog, at_worst: AtWorst = "fits") -> Solved:
    """Return the id of the card with the least memory that `plan` fits on; traced plans have one, too."""
    fit = next((fit for fit in find_fits(plan, catalog) if is_good(fit, at_worst)), None)
    if fit is None:
        return Solved(asked="gpu", reason="no card of the catalog is large enough")
    return _solved("gpu", fit.gpu_id, plan.evolve(gpu=fit.gpu_id), fit, None)


def largest_allowed(plan: Plan, field: Field) -> int:
    """Return the largest value that the workload takes for `field`, whether it fits or not.

    Raises:
        SpecError: If the workload has no such field.
    """
    limits = (getattr(limit, "le", None) for limit in _spec(plan, field).metadata)
    return next((limit for limit in limits if isinstance(limit, int)), _MOST)


def all_layers(architecture: Architecture) -> int:
    """Return how many layers llama.cpp counts: the output is one of them."""
    return architecture.depth + 1


def with_value(plan: Plan, field: Field, value: int) -> Plan:
    """Return `plan` with `value` in `field` of its workload; a prompt longer than the context is cut to it.

    Raises:
        SpecError: If the workload has no such field, or does not take the value.
    """
    _spec(plan, field)
    changes = {field: value}
    if field == "context_length" and plan.workload.task == "inference" and plan.workload.prompt_length is not None:
        changes["prompt_length"] = min(plan.workload.prompt_length, value)
    try:
        return plan.evolve(workload=plan.workload.evolve(**changes))
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


def on_cards(plan: Plan, count: int, sharing: Mapping[str, object] = MappingProxyType({})) -> Plan:
    """Return `plan` on `count` cards, with as many replicas as they make; `sharing` are changes of `parallel`."""
    parallel = plan.workload.parallel.evolve(**{"data": None, **sharing})
    return plan.evolve(count=count, workload=plan.workload.evolve(parallel=parallel))


def _largest(fit: Callable[[int], CardFit], at_worst: AtWorst, most: int, least: CardFit) -> tuple[int, CardFit]:
    """Return the largest number up to `most` that fits, with its verdict; `least` is that of 1, which fits.

    Doubling finds an interval. In it memory grows along straight pieces with most numbers, so that a line through what
    is free at both ends leads close to the answer; after a step that has not halved the interval, the next one does.
    """
    low, at_low = 1, least
    while low < most:
        high = min(2 * low, most)
        at_high = fit(high)
        if not is_good(at_high, at_worst):
            break
        low, at_low = high, at_high
    else:
        return low, at_low
    in_the_middle = False
    while high - low > 1:
        width = high - low
        value = low + (width // 2 if in_the_middle else _share_that_fits(at_low, at_high, at_worst, width))
        found = fit(value)
        if is_good(found, at_worst):
            low, at_low = value, found
        else:
            high, at_high = value, found
        in_the_middle = not in_the_middle and 2 * (high - low) > width
    return low, at_low


def _share_that_fits(low: CardFit, high: CardFit, at_worst: AtWorst, width: int) -> int:
    """Return how much of `width` lies before the point at which nothing is free, if memory grows along a line."""
    if at_worst == "fits" and low.least_free_bytes is not None and high.least_free_bytes is not None:
        free, lacking = low.least_free_bytes, high.least_free_bytes
    else:
        # Of cards that differ, only what is free as expected is known; it leads to the same point, in more steps.
        free, lacking = low.free_bytes or 0, high.free_bytes or 0
    if free <= lacking:
        return width // 2
    return min(max(width * free // (free - lacking), 1), width - 1)


def _first(passes: Callable[[int], bool], counts: Sequence[int]) -> int | None:
    """Return the first of `counts` that passes: from the second on, all that follow one that passes do."""
    low, high = -1, 0
    while not passes(counts[high]):
        if high == len(counts) - 1:
            return None
        low, high = high, min(2 * high + 1, len(counts) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(counts[middle]) else (middle, high)
    return counts[high]


def _most(plan: Plan, field: Field, architecture: Architecture) -> tuple[int, Bound]:
    """Return the largest number worth asking about, and what sets it."""
    if field == "gpu_layers":
        return all_layers(architecture), "model"
    allowed = min(_MOST, largest_allowed(plan, field))
    made_for = architecture.max_context if field in LENGTHS else None
    return (made_for, "model") if made_for is not None and made_for <= allowed else (allowed, "workload")


def _solved(asked: str, value: int | str, plan: Plan, fit: CardFit, bound: Bound | None) -> Solved:
    return Solved.model_validate(
        {
            "asked": asked,
            "value": value,
            "verdict": fit.verdict,
            "total_bytes": fit.total_bytes,
            "free_bytes": fit.free_bytes,
            "fit_probability": fit.fit_probability,
            "bounded_by": bound,
            "plan": plan,
        }
    )


def _why_none(fit: CardFit, too_small: str = "not even 1 fits") -> str:
    if fit.unsupported:
        return "; ".join(fit.unsupported)
    if not fit.gpu_id:
        return "there is no card to fit on"
    return too_small if fit.capacity_bytes is not None else "how much of the card a program can use is not known"


def _spec(plan: Plan, field: Field) -> FieldInfo:
    try:
        return type(plan.workload).model_fields[field]
    except KeyError:
        raise SpecError(field, f"{plan.workload.task} workloads have no such field") from None
