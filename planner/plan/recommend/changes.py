"""Changes of a plan that cost nothing but speed, with which it fits on smaller cards."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.dtypes import SCHEMES
from planner.models.architecture import Architecture
from planner.plan.advice.advise import CHANGES
from planner.plan.advice.change import PlanChange
from planner.plan.advice.change_sequences import plan_sequences
from planner.plan.advice.search import apply_change
from planner.plan.plan import Plan
from planner.workload.defaults import with_defaults
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.workload import Training, Workload

_SPEED_ONLY: Final = ("8-bit AdamW", "selective checkpointing", "full checkpointing")
"""Names of changes that keep what is trained; their sources are in `planner.plan.advice.training_changes`."""
_NO_SPLIT: Final = 1
"""Cards that may split matrices: sharing is chosen elsewhere."""
_QUANTIZED_TRAINING: Final = "QLoRA instead of LoRA"


class AdaptedPlan(NamedTuple):
    """A plan with some changes, and their names."""

    plan: Plan
    names: tuple[str, ...]


def speed_only_changes(plan: Plan, architecture: Architecture, *, quantize: bool) -> tuple[AdaptedPlan, ...]:
    """Return `plan` with each combination of the changes that cost nothing but speed, the mildest first.

    Smaller micro-batches keep the batch of a step by accumulation. With `quantize` the weights may have fewer bits.
    """
    workload = with_defaults(plan.workload, architecture, plan.count)
    options = [(None, *changes) for changes in _changes_by_lever(plan, workload, architecture, quantize=quantize)]
    chosen = (tuple(change for change in each if change is not None) for each in product(*options))
    ordered = sorted(filter(None, chosen), key=_severity)
    return tuple(filter(None, (_changed(plan, changes) for changes in ordered)))


def _changes_by_lever(
    plan: Plan, workload: Workload, architecture: Architecture, *, quantize: bool
) -> Iterator[list[PlanChange]]:
    applicable = [change for change in CHANGES if change.applies_to(workload, None)]
    named = [change for change in applicable if change.name in _SPEED_ONLY]
    for lever in dict.fromkeys(change.lever for change in named):
        yield [change for change in named if change.lever == lever]
    if isinstance(workload, Training):
        sequences = (each for each in plan_sequences(plan, workload, architecture, _NO_SPLIT) if each.lever == "batch")
        yield [sequence.change(size) for sequence in sequences for size in sequence.values]
    if quantize:
        yield [change for change in applicable if _is_quantization(change)]


def _is_quantization(change: PlanChange) -> bool:
    """Return whether a change stores the weights in fewer bits, in the same program or in llama.cpp."""
    if change.settings.get("profile") not in (None, LLAMA_CPP.name):
        return False
    return (change.lever == "weights" and change.risk != "real") or change.name == _QUANTIZED_TRAINING


def _severity(changes: tuple[PlanChange, ...]) -> tuple[float, float, int]:
    """Return the sort key of a combination: the most bits for the weights, then the fastest, then the shortest."""
    bits = min((_bits_per_weight(change) for change in changes if _is_quantization(change)), default=float("inf"))
    return -bits, prod(change.slower_by_about or 1.0 for change in changes), len(changes)


def _bits_per_weight(change: PlanChange) -> float:
    name = change.settings.get("weights")
    return SCHEMES[name].bits_per_weight if isinstance(name, str) and name in SCHEMES else 0.0


def _changed(plan: Plan, changes: Iterable[PlanChange]) -> AdaptedPlan | None:
    """Return `plan` with `changes`, or None if its workload does not allow them."""
    changed, names = plan, []
    for change in changes:
        try:
            changed = apply_change(changed, change)
        except ValidationError:
            return None
        names.append(change.name)
    return AdaptedPlan(changed, tuple(names))
