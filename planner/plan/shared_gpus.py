"""Several models on the same GPUs: what the others hold, and the part of each GPU that remains for a plan."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.result import Verdict
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate, on_equal_cards
from planner.plan.plan import Plan
from planner.units import ceil_div
from planner.workload.software.registry import DEFAULT, serving_support, settings_for
from planner.workload.workload import Inference, Workload

_STEPS: Final = 100
"""Parts of a GPU are whole hundredths, as the fractions that are written for engines."""


class Neighbour(Spec):
    """A model that runs on the same GPUs as a plan, and what it holds of each."""

    model: str
    program: str
    held_bytes: int
    """Memory of each GPU that it holds: its fraction, or else its need rounded up to a hundredth of the GPU."""
    fraction: float
    """Its part of the memory that a process can use."""
    verdict: Verdict | None
    """Whether it fits in what the models before it leave."""


class SharedGpus(NamedTuple):
    """A plan with what its neighbours hold, the neighbours, and their own plans with what all others hold."""

    plan: Plan
    neighbours: tuple[Neighbour, ...]
    others: tuple[Plan, ...]


def share_gpus(plan: Plan, others: Sequence[Plan], catalog: Catalog) -> SharedGpus:
    """Return `plan` on GPUs that the models of `others` use, too.

    Each of `others` gets the memory that it needs for its requests, or the fraction that its plan sets; the plan gets
    the rest, an engine that takes a fraction of the whole GPU its usual one without theirs.

    **Formula**: held = ⌈100 · need / C⌉ / 100 · C, C what a process can use of a GPU.

    **Assumes** that they start one after the other, since engines measure what is free, and that none exceeds its
    part: GPUs that are shared by time slicing isolate neither memory nor time.

    Raises:
        SpecError: If the plan has no GPU of one kind, its usable memory is unknown, or a plan cannot be evaluated.
    """
    if plan.gpu is None or plan.workload.gpus:
        raise SpecError("beside", "models share GPUs of one kind", "Name one: --gpu.")
    alone = evaluate(plan, catalog)
    total = alone.memory.capacity_bytes
    if not total:
        raise SpecError("beside", "the usable memory of these GPUs is unknown")
    used, neighbours, placed = plan.workload.other_processes_bytes, [], []
    for other in others:
        found = evaluate(_with_others(on_equal_cards(other, plan.gpu, plan.count), used), catalog)
        needed = ceil_div(found.memory.total_bytes * _STEPS, total) / _STEPS
        settled = _with_fraction(found, min(needed, 1.0))
        fraction = _own_fraction(settled) or needed
        neighbours.append(
            Neighbour(
                model=other.model.id,
                program=str(found.workload.profile),
                held_bytes=int(fraction * total),
                fraction=fraction,
                verdict=found.memory.verdict,
            )
        )
        placed.append(settled)
        used += int(fraction * total)
    pool = alone.memory.cache_pool
    rest = int(_STEPS * ((pool.utilization if pool else 1.0) - used / total)) / _STEPS
    own = _with_others(_with_fraction(alone, max(rest, 1 / _STEPS)), used)
    mine = _own_fraction(own)
    everything = used + (int(mine * total) if mine else evaluate(own, catalog).memory.total_bytes)
    parts = zip(placed, neighbours, strict=True)
    beside = tuple(_with_others(settled, everything - neighbour.held_bytes) for settled, neighbour in parts)
    return SharedGpus(own, tuple(neighbours), beside)


def _with_others(plan: Plan, held: int) -> Plan:
    return plan.evolve(workload=plan.workload.evolve(other_processes_bytes=held))


def _fraction_name(workload: Workload) -> str:
    """Return the setting with which an engine takes a fraction of the whole GPU, empty if it has none."""
    own = serving_support(workload.profile) if isinstance(workload, Inference) else None
    return own.memory_fraction if own and own.takes_fraction_of_card else ""


def _own_fraction(plan: Plan) -> float | None:
    name = _fraction_name(plan.workload)
    value: float | None = getattr(plan.workload.engine, name) if name and isinstance(plan.workload, Inference) else None
    return value


def _with_fraction(evaluation: Evaluation, fraction: float) -> Plan:
    """Return the evaluated plan with the fraction of the whole GPU that its engine takes, unless it sets its own."""
    plan, filled = evaluation.plan, evaluation.workload
    name = _fraction_name(filled)
    if not name or not isinstance(plan.workload, Inference) or not isinstance(filled, Inference):
        return plan
    engine = settings_for(filled.profile or DEFAULT, plan.workload.engine)
    if getattr(engine, name) is not None:
        return plan
    return plan.evolve(workload=plan.workload.evolve(profile=filled.profile, engine=engine.evolve(**{name: fraction})))
