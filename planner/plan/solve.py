"""Search for the largest workload value, the fewest GPUs and the smallest GPU with which a plan fits.

Each search repeats the whole estimate. Memory never decreases as a number of the workload grows, so doubling and
bisection find the last value that fits. Micro-batches that would accumulate more steps to fill the groups of GRPO are
left out: the completions that a step generates, and with them memory, would rise and fall from one to the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field as ModelField
from pydantic.fields import FieldInfo

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, find_fits, resolved_fit, shared_fits_among
from planner.plan.plan import Plan
from planner.plan.sharing import SharedFit, sharing_counts
from planner.workload.defaults import with_defaults
from planner.workload.rules import in_whole_groups, micro_batch_of_whole_groups
from planner.workload.software.registry import field_owner, serving_support
from planner.workload.training import Training
from planner.workload.workload import Inference, Workload

MinimumVerdict = Literal["fits", "tight"]


def meets(fit: CardFit, at_worst: MinimumVerdict) -> bool:
    """Return whether a memory verdict is at least as good as `at_worst`."""
    return fit.verdict == "fits" or (at_worst == "tight" and fit.likely)


SolvableField = Literal["micro_batch", "sequence_length", "batch", "context_length", "prompt_length", "gpu_layers"]
Limit = Literal["memory", "model", "workload"]

LENGTHS: Final = ("sequence_length", "context_length", "prompt_length")
_LARGEST_VALUE: Final = 1 << 24
_MOST_CARDS: Final = 1 << 16


class SolveResult(Spec):
    """Result of a search: the quantity (`asked`), a workload field, `count` or `gpu`, and its value.

    `bounded_by` is the limit on the value: the GPU's memory, the model's maximum length, or the allowed range. `how`
    names the sharing that was chosen, and `prompt` the tokens of the prompt in the longest context, if the plan leaves
    them open. Without a value, `reason` explains why. `plan` is
    the plan with the value.
    """

    asked: SolvableField | Literal["count", "gpu"]
    value: int | str | None = None
    verdict: Verdict | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    fit_probability: float | None = None
    bounded_by: Limit | None = None
    how: str = ""
    prompt: int | None = None
    reason: str = ""
    plan: Plan | None = ModelField(default=None, exclude=True, repr=False)


def largest_that_fits(
    plan: Plan, catalog: Catalog, field: SolvableField, at_worst: MinimumVerdict = "fits"
) -> SolveResult:
    """Return the largest value of the workload `field` with which `plan` fits on its GPU.

    With `at_worst` "tight", a tight fit counts as well. Lengths are limited to the model's maximum, and the load of an
    engine that allocates its KV cache in advance to what that cache has room for.

    Raises:
        SpecError: If the workload has no such field, or the model was traced.
    """
    _field_info(plan, field)
    architecture = architecture_of(plan, catalog)
    if field in LENGTHS and not architecture.has_variable_length:
        fixed = architecture.fixed_length
        reason = "a diffusion pipeline has no such length"
        if fixed is not None:
            reason = f"every input of this model has {fixed:,} tokens"
        return SolveResult(asked=field, reason=reason)
    workload = with_defaults(plan.workload, architecture, plan.count)
    owner = field_owner(field)
    if owner is not None and owner.name != workload.profile:
        return SolveResult(
            asked=field, reason=f"only {owner.title} can keep layers in RAM, and the plan uses other software"
        )

    sizes = sizes_of(plan, field)

    def fit(step: int) -> CardFit:
        value = sizes.at(step)
        found = resolved_fit(with_value(plan, field, value), catalog, architecture).fit
        at_once = value if field == "batch" else getattr(workload, "batch", 1)
        lacks_cache = found.likely and not found.has_cache_for(at_once)
        return found._replace(verdict="does-not-fit") if lacks_cache else found

    most, bound = _upper_bound(plan, field, architecture)
    least = fit(1)
    if not meets(least, at_worst):
        return SolveResult(asked=field, reason=_no_solution_reason(least))
    last = sizes.step(most)
    present = min(sizes.step(getattr(workload, field) or 1), last)
    known = fit(present)  # another sharing may hold the plan's own value than the small ones
    start = (present, known) if meets(known, at_worst) else (1, least)
    step, _ = _search_largest(fit, at_worst, last, *start)
    value = sizes.at(step)
    largest = with_value(plan, field, value)
    shared = resolved_fit(largest, catalog, architecture)
    found = _search_result(field, value, largest, shared, bound if step == last else "memory")
    return found.evolve(prompt=_assumed_prompt(largest, architecture)) if field == "context_length" else found


def _assumed_prompt(plan: Plan, architecture: Architecture) -> int | None:
    """Return the length of the prompt that `plan` leaves open, if it is shorter than the context and matters."""
    stated, settled = plan.workload, with_defaults(plan.workload, architecture, plan.count)
    if not (isinstance(stated, Inference) and isinstance(settled, Inference)) or stated.prompt_length is not None:
        return None
    matters = "prompt_length" not in serving_support(settled.profile).ignored_fields
    return settled.prompt_length if matters and settled.prompt_length != settled.context_length else None


def fewest_cards(plan: Plan, catalog: Catalog, at_worst: MinimumVerdict = "fits") -> SolveResult:
    """Return the smallest number of the plan's GPUs on which `plan` fits.

    A plan with its own parallelism keeps it, over as many replicas as necessary. If each GPU holds the whole model and
    one is not enough, the GPUs share it as the software would, and `how` names the way.

    Raises:
        SpecError: If the plan has no GPU, or the model was traced.
    """
    architecture = architecture_of(plan, catalog)
    if plan.gpu is None:
        raise SpecError("gpu", "the plan has no GPU", hint="Choose one.")
    parallel = plan.workload.parallel
    if parallel.is_plain:
        counts: Sequence[int] = (
            1,
            *sharing_counts(with_defaults(plan.workload, architecture, plan.count), architecture),
        )
    else:
        unit = parallel.model_shards * parallel.expert
        counts = range(unit, _MOST_CARDS + 1, unit)

    def spread(count: int) -> Plan:
        return on_cards(plan, count, {"sharing": "auto"})

    fewest = _bisect_first(
        lambda count: meets(resolved_fit(spread(count), catalog, architecture).fit, at_worst), counts
    )
    if fewest is None:
        reason = _no_solution_reason(
            resolved_fit(plan, catalog, architecture).fit, "each GPU still needs more memory than it has"
        )
        return SolveResult(asked="count", reason=reason)
    shared = resolved_fit(spread(fewest), catalog, architecture)
    return _search_result("count", fewest, spread(fewest), shared, None)


def smallest_card(plan: Plan, catalog: Catalog, at_worst: MinimumVerdict = "fits") -> SolveResult:
    """Return the smallest GPU on which `plan` fits, in the order of `smallest_first`; `plan` may be traced."""
    fit = next((fit for fit in find_fits(plan, catalog) if meets(fit, at_worst)), None)
    if fit is None:
        return SolveResult(asked="gpu", reason="no GPU in the catalog is large enough")
    shared = shared_fits_among(plan, catalog, None, plan.count)[fit.gpu_id]
    return _search_result("gpu", fit.gpu_id, plan.evolve(gpu=fit.gpu_id), shared, None)


def largest_allowed(plan: Plan, field: SolvableField) -> int:
    """Return the largest value of `field` that validation allows, whether or not it fits.

    Raises:
        SpecError: If the workload has no such field.
    """
    limits = (getattr(limit, "le", None) for limit in _field_info(plan, field).metadata)
    return next((limit for limit in limits if isinstance(limit, int)), _LARGEST_VALUE)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Values of a workload field that a search tries, numbered from 1: `below`, then all multiples of `unit`."""

    unit: int
    below: tuple[int, ...]

    def at(self, step: int) -> int:
        """Return the value with the number `step`."""
        return self.below[step - 1] if step <= len(self.below) else self.unit * (step - len(self.below))

    def step(self, value: int) -> int:
        """Return the number of the largest value up to `value`."""
        smaller = sum(size <= value for size in self.below)
        return smaller + value // self.unit


def sizes_of(plan: Plan, field: SolvableField) -> Sizes:
    """Return the values of `field` that a search tries: all, but for micro-batches of GRPO those of whole groups."""
    unit = 1
    if field == "micro_batch" and isinstance(plan.workload, Training):
        unit = micro_batch_of_whole_groups(plan.workload, plan.count)
    return Sizes(unit, tuple(size for size in range(1, unit) if unit % size == 0))


def layer_count(architecture: Architecture) -> int:
    """Return the number of layers, including the output layer, as llama.cpp counts them."""
    return architecture.depth + 1


def with_value(plan: Plan, field: SolvableField, value: int) -> Plan:
    """Return `plan` with `value` in the workload's `field`; a prompt longer than the context is shortened.

    GRPO accumulates as many steps as make whole groups.

    Raises:
        SpecError: If the workload has no such field or does not allow the value.
    """
    _field_info(plan, field)
    changes = {field: value}
    if field == "context_length" and plan.workload.task == "inference" and plan.workload.prompt_length is not None:
        changes["prompt_length"] = min(plan.workload.prompt_length, value)
    return plan.evolve(workload=_in_whole_groups(plan.workload.evolve(**changes), plan.count))


def on_cards(plan: Plan, count: int, parallel_changes: Mapping[str, object] = MappingProxyType({})) -> Plan:
    """Return `plan` on `count` GPUs, with as many replicas as they allow and `parallel_changes` applied."""
    parallel = plan.workload.parallel.evolve(**{"data": None, **parallel_changes})
    return plan.evolve(count=count, workload=_in_whole_groups(plan.workload.evolve(parallel=parallel), count))


def _in_whole_groups(workload: Workload, count: int) -> Workload:
    return in_whole_groups(workload, count) if isinstance(workload, Training) else workload


def _search_largest(
    fit: Callable[[int], CardFit], at_worst: MinimumVerdict, most: int, low: int, at_low: CardFit
) -> tuple[int, CardFit]:
    """Return the largest number from `low` to `most` that fits, with its verdict; `low` fits with the verdict `at_low`.

    Doubling finds an interval. Within it memory is piecewise linear in most numbers, so that interpolating the free
    memory of both ends gets close to the answer; a step that has not halved the interval is followed by bisection.
    """
    while low < most:
        high = min(2 * low, most)
        at_high = fit(high)
        if not meets(at_high, at_worst):
            break
        low, at_low = high, at_high
    else:
        return low, at_low
    bisects = False
    while high - low > 1:
        width = high - low
        value = low + (width // 2 if bisects else _interpolated_step(at_low, at_high, at_worst, width))
        at_value = fit(value)
        if meets(at_value, at_worst):
            low, at_low = value, at_value
        else:
            high, at_high = value, at_value
        bisects = not bisects and 2 * (high - low) > width
    return low, at_low


def _interpolated_step(low: CardFit, high: CardFit, at_worst: MinimumVerdict, width: int) -> int:
    """Return the step from `low`, below `width`, at which free memory interpolated linearly to `high` becomes zero."""
    if at_worst == "fits" and low.least_free_bytes is not None and high.least_free_bytes is not None:
        free, lacking = low.least_free_bytes, high.least_free_bytes
    else:
        # Of unequal GPUs only the expected free memory is known; it leads to the same answer in more steps.
        free, lacking = low.free_bytes or 0, high.free_bytes or 0
    if free <= lacking:
        return width // 2
    return min(max(width * free // (free - lacking), 1), width - 1)


def _bisect_first(passes: Callable[[int], bool], counts: Sequence[int]) -> int | None:
    """Return the first of `counts` for which `passes` is true; from the second count on, `passes` must be monotonic."""
    low, high = -1, 0
    while not passes(counts[high]):
        if high == len(counts) - 1:
            return None
        low, high = high, min(2 * high + 1, len(counts) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(counts[middle]) else (middle, high)
    return counts[high]


def _upper_bound(plan: Plan, field: SolvableField, architecture: Architecture) -> tuple[int, Limit]:
    """Return the largest value of `field` to try, and the reason for this limit."""
    if field == "gpu_layers":
        return layer_count(architecture), "model"
    allowed = min(_LARGEST_VALUE, largest_allowed(plan, field))
    made_for = architecture.max_context if field in LENGTHS else None
    return (made_for, "model") if made_for is not None and made_for <= allowed else (allowed, "workload")


def _search_result(asked: str, value: int | str, plan: Plan, shared: SharedFit, bound: Limit | None) -> SolveResult:
    fit = shared.fit
    return SolveResult.model_validate(
        {
            "asked": asked,
            "value": value,
            "verdict": fit.verdict,
            "total_bytes": fit.total_bytes,
            "free_bytes": fit.free_bytes,
            "fit_probability": fit.fit_probability,
            "bounded_by": bound,
            "how": "" if shared.scheme is None else shared.scheme.title,
            "plan": plan,
        }
    )


def _no_solution_reason(fit: CardFit, too_small: str = "not even 1 fits") -> str:
    """Return why even the smallest value does not fit."""
    if fit.unsupported:
        return "; ".join(fit.unsupported)
    if not fit.gpu_id:
        return "the plan has no GPU"
    return too_small if fit.capacity_bytes is not None else "the usable memory of the GPU is unknown"


def _field_info(plan: Plan, field: SolvableField) -> FieldInfo:
    try:
        return type(plan.workload).model_fields[field]
    except KeyError:
        raise SpecError(field, f"{plan.workload.task} workloads have no such field") from None
