"""Variants of a plan to try on each kind of GPU: numbers of GPUs, sharing, and changes that cost only speed."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Final, NamedTuple

from planner.cost.terms import Side
from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.plan.advice.advise import CHANGES
from planner.plan.advice.change import PlanChange
from planner.plan.advice.change_sequences import plan_sequences
from planner.plan.advice.search import apply_change
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.recommend.option import HardwareOption
from planner.plan.sharing import sharing_schemes
from planner.plan.solve import on_cards
from planner.workload.defaults import with_defaults
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.workload import Inference, Training, Workload


class PlanVariant(NamedTuple):
    """A plan without GPUs; `sharing` names how all GPUs share the model, if fewer GPUs might do.

    `changes` are the names of the changes to the plan.
    """

    plan: Plan
    sharing: str = ""
    changes: tuple[str, ...] = ()


def possible_plans(plan: Plan, architecture: Architecture | None, counts: tuple[int, ...]) -> Iterator[Plan]:
    """Yield `plan` without a GPU for each possible number of GPUs.

    A plan with its own parallelism keeps it, on multiples of its GPUs; replicas leave their sharing open. A traced
    module keeps its number of GPUs.
    """
    bare = plan.evolve(gpu=None, workload=plan.workload.evolve(gpus=()), count=1 if plan.workload.gpus else plan.count)
    if architecture is None:
        yield bare
        return
    parallel = bare.workload.parallel
    unit = parallel.model_shards * parallel.expert
    yield from (on_cards(bare, count, {"sharing": "auto"}) for count in sorted(set(counts)) if count % unit == 0)


def plan_variants(plan: Plan, architecture: Architecture | None) -> tuple[PlanVariant, ...]:
    """Return `plan` as it is, and a variant in which all GPUs together hold one copy of the model.

    The variant, in which the GPUs split the model's matrices, exists only for a service on several GPUs whose sharing
    is left to the software: more copies of a model answer more requests at once, but GPUs that split its matrices
    answer each request sooner. A run ends when all its requests are answered, so that the time of a single request does
    not matter.
    """
    usual = PlanVariant(plan)
    is_answering = isinstance(plan.workload, Inference) and plan.cost.job.kind != "run"
    if architecture is None or not is_answering or not plan.workload.parallel.is_open:
        return (usual,)
    schemes = sharing_schemes(with_defaults(plan.workload, architecture, plan.count), architecture, plan.count)
    whole = next((scheme for scheme in schemes if scheme.settings.get("tensor") == plan.count), None)
    if whole is None or plan.count == 1:
        return (usual,)
    shared = on_cards(plan, plan.count, {"sharing": "manual", **whole.settings})
    return (usual, PlanVariant(shared, f"{whole.title} across all"))


def changed_variants(
    variant: PlanVariant, architecture: Architecture | None, *, quantize: bool
) -> Iterator[PlanVariant]:
    """Yield `variant` with changes that cost nothing but speed, the mildest changes first."""
    if architecture is not None:
        for changed in speed_only_changes(variant.plan, architecture, quantize=quantize):
            yield PlanVariant(changed.plan, variant.sharing, changed.names)


def apply_option(option: HardwareOption, plan: Plan, catalog: Catalog) -> Plan:
    """Return `plan` with the GPUs of `option`, its changes, and its rental or ownership terms.

    Raises:
        SpecError: If the option belongs to another plan.
    """
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    plans = [sized for sized in possible_plans(plan, architecture, (option.count,)) if sized.count == option.count]
    variants = [variant for sized in plans for variant in plan_variants(sized, architecture)]
    chosen = next((variant for variant in reversed(variants) if variant.sharing in ("", option.sharing)), None)
    candidates: Iterable[PlanVariant] = () if chosen is None else (chosen,)
    if chosen is not None and option.changes:
        candidates = changed_variants(chosen, architecture, quantize=True)
    changed = next((variant for variant in candidates if variant.changes == option.changes), None)
    if changed is None:
        raise SpecError("count", f"the plan cannot run on {option.count} GPUs in this way", "Choose another option.")
    rent = plan.cost.rent
    if option.mode is not None:
        rent = rent.evolve(offer=option.offer, mode=option.mode)
    side: Side = "rent" if option.having == "rent" else "buy"
    return changed.plan.evolve(gpu=option.gpu, cost=plan.cost.evolve(rent=rent, chosen=side))


def counts_tokens(plan: Plan, catalog: Catalog) -> bool:
    """Return whether the speed of the plan's model is counted in tokens; otherwise in samples, such as images."""
    if plan.model.trace is not None:
        return False
    architecture = architecture_of(plan, catalog)
    return architecture.fixed_length is None and architecture.kind != "diffusion"


_SPEED_ONLY: Final = ("8-bit AdamW", "selective checkpointing", "full checkpointing")
"""Names of changes that keep what is trained; their sources are in `planner.plan.advice.training_changes`."""
_NO_SPLIT: Final = 1
"""GPUs that may split matrices: sharing is chosen elsewhere."""
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
    changed, names = plan, []
    for change in changes:
        try:
            changed = apply_change(changed, change)
        except SpecError:
            return None
        names.append(change.name)
    return AdaptedPlan(changed, tuple(names))
