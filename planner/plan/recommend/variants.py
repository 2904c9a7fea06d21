"""Variants of a plan to try on each kind of card: numbers of cards, sharing, and changes that cost only speed."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.cost.terms import Side
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.recommend.changes import speed_only_changes
from planner.plan.recommend.option import HardwareOption
from planner.plan.sharing import sharing_schemes
from planner.plan.solve import on_cards
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


class PlanVariant(NamedTuple):
    """A plan without cards; `sharing` names how all cards share the model, if fewer cards might do.

    `changes` are the names of the changes to the plan.
    """

    plan: Plan
    sharing: str = ""
    changes: tuple[str, ...] = ()


def possible_plans(plan: Plan, architecture: Architecture | None, counts: tuple[int, ...]) -> Iterator[Plan]:
    """Yield `plan` without a card for each possible number of cards.

    A plan with its own parallelism keeps it, on multiples of its cards; replicas leave their sharing open. A traced
    module keeps its number of cards.
    """
    bare = plan.evolve(gpu=None, workload=plan.workload.evolve(gpus=()), count=1 if plan.workload.gpus else plan.count)
    if architecture is None:
        yield bare
        return
    parallel = bare.workload.parallel
    unit = parallel.model_shards * parallel.expert
    yield from (on_cards(bare, count, {"sharing": "auto"}) for count in sorted(set(counts)) if count % unit == 0)


def plan_variants(plan: Plan, architecture: Architecture | None) -> tuple[PlanVariant, ...]:
    """Return `plan` as it is, and a variant in which all cards together hold one copy of the model.

    The variant, in which the cards split the model's matrices, exists only for a service on several cards whose sharing
    is left to the software: more copies of a model answer more requests at once, but cards that split its matrices
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
    """Return `plan` with the cards of `option`, its changes, and its rental or ownership terms.

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
        raise SpecError("count", f"the plan cannot run on {option.count} cards in this way", "Choose another option.")
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
