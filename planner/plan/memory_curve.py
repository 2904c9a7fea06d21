"""Memory of a plan as a function of one numeric setting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.estimate import estimate_on
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, architecture_of, cards_of, with_resolved_sharing
from planner.plan.plan import Plan
from planner.plan.sharing import SharingScheme, sharing_counts, sharing_schemes, tensor_domain
from planner.plan.solve import LENGTHS, SolvableField, layer_count, on_cards, with_value
from planner.workload.defaults import with_defaults
from planner.workload.parallel import without_degrees
from planner.workload.software.registry import serving_support
from planner.workload.training import Lora, Training
from planner.workload.workload import Parallel, Workload

Axis = SolvableField | Literal["lora_rank", "count"]
"""Plan setting on the x axis of a memory curve: a workload field, the LoRA rank, or the number of GPUs."""

_UNSHARDED: Final = {"sharing": "auto", **without_degrees()}
_MAX_DOUBLINGS: Final = 10


class MemoryPoint(Spec):
    """Peak memory per GPU at one value of the x axis, and host memory if something is offloaded."""

    value: int
    total_bytes: int
    low_bytes: int
    high_bytes: int
    host_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CountScaling:
    """Scaling of a plan to other GPU counts: `settings` returns the fields of `parallel` for each of `counts`.

    `how` names the kind of parallelism if it is not the plan's own.
    """

    counts: Sequence[int]
    settings: Callable[[int], Mapping[str, object]]
    how: str = ""


def plan_axes(evaluation: Evaluation) -> tuple[Axis, ...]:
    """Return the plan settings that memory can be plotted against; none for a traced module."""
    architecture, workload = evaluation.architecture, evaluation.workload
    if architecture is None:
        return ()
    axes: list[Axis] = ["micro_batch", "sequence_length"]
    if not isinstance(workload, Training):
        axes = ["batch", "context_length"]
        if "gpu_layers" in serving_support(workload.profile).own_fields and workload.parallel.is_plain:
            axes.append("gpu_layers")
    elif workload.adapts:
        axes.append("lora_rank")
    settled = evaluation.plan.evolve(workload=evaluation.resolved_workload)
    gpus = tuple(gpu for gpu, _ in evaluation.cards)
    if _count_scaling(settled, architecture, gpus, most_counts=1) is not None:
        axes.append("count")
    return tuple(axis for axis in axes if architecture.has_variable_length or axis not in LENGTHS)


def current_value(evaluation: Evaluation, axis: Axis) -> int:
    """Return the value of the setting `axis` in an evaluated plan, with defaults filled in."""
    if axis == "count":
        return evaluation.plan.count
    workload = evaluation.workload
    if axis == "lora_rank":
        return _adapter_settings(workload).rank
    value: int | None = getattr(workload, axis)
    if axis == "gpu_layers" and evaluation.architecture is not None:
        most = layer_count(evaluation.architecture)
        return most if value is None else min(value, most)
    return value or 0


def plan_at_value(plan: Plan, catalog: Catalog, axis: Axis, value: int) -> Plan:
    """Return `plan` with the setting `axis` at `value`; for `count`, scaled as by `count_scaling`.

    Raises:
        SpecError: If the plan has no such number or does not allow the value, or the model was traced.
    """
    if axis == "count":
        spreading = count_scaling(plan, catalog)
        if spreading is None:
            raise SpecError("count", "the memory per GPU does not depend on the number of GPUs")
        return on_cards(plan, value, spreading.settings(value))
    if axis == "lora_rank":
        return _with_rank(plan, value)
    return with_value(plan, axis, value)


def memory_curve(plan: Plan, catalog: Catalog, axis: Axis, values: tuple[int, ...]) -> tuple[MemoryPoint, ...]:
    """Return the memory per GPU of `plan` at each of `values` of the setting `axis`.

    Raises:
        SpecError: If the plan has no such number or does not allow one of the values, or the model was traced.
    """
    return tuple(
        _memory_point(value, _estimate_memory(plan_at_value(plan, catalog, axis, value), catalog)) for value in values
    )


def count_scaling(plan: Plan, catalog: Catalog) -> CountScaling | None:
    """Return the scaling of `plan` to other GPU counts, or None if its memory per GPU is the same for all.

    A plan on one GPU, or shared as its software would, scales in this way. A plan with ZeRO scales by the number of
    replicas.

    Raises:
        SpecError: If the workload does not allow the model or the number of GPUs.
    """
    gpus = tuple(kind.gpu for kind in cards_of(plan, catalog))
    return _count_scaling(with_resolved_sharing(plan, catalog), architecture_of(plan, catalog), gpus)


def _count_scaling(
    plan: Plan, architecture: Architecture, gpus: tuple[Gpu | None, ...], most_counts: int | None = None
) -> CountScaling | None:
    workload = plan.workload
    if workload.gpus:
        return None
    plain, domain = (
        with_defaults(workload.evolve(parallel=Parallel()), architecture, 1),
        tensor_domain(gpus, plan.timing),
    )

    def schemes(count: int) -> tuple[SharingScheme, ...]:
        return sharing_schemes(plain, architecture, count, domain) if count > 1 else ()

    def parallel_settings(count: int) -> Mapping[str, object]:
        return {**_UNSHARDED, **(own[-1].settings if (own := schemes(count)) else {})}

    counts = tuple(islice(sharing_counts(plain, architecture), most_counts))
    own = workload.parallel.evolve(sharing="auto", data=None)
    if counts and own == own.evolve(**parallel_settings(plan.count)):
        return CountScaling((1, *counts), parallel_settings, schemes(counts[0])[-1].title)
    if isinstance(workload, Training) and own.zero:
        unit = own.model_shards * own.expert
        return CountScaling([unit << exponent for exponent in range(_MAX_DOUBLINGS)], lambda _count: {})
    return None


def _with_rank(plan: Plan, rank: int) -> Plan:
    lora = _adapter_settings(plan.workload)
    return plan.evolve(workload=plan.workload.evolve(lora=lora.evolve(rank=rank)))


def _adapter_settings(workload: Workload) -> Lora:
    """Return the adapter settings of `workload`, or the defaults if it has none."""
    if not isinstance(workload, Training) or not workload.adapts:
        raise SpecError("lora.rank", "this workload has no adapters", "Choose the method lora or qlora.")
    return workload.lora or Lora()


def _estimate_memory(plan: Plan, catalog: Catalog) -> MemoryResult:
    workload = with_resolved_sharing(plan, catalog).workload
    return estimate_on(architecture_of(plan, catalog), workload, cards_of(plan, catalog), plan.corrections)


def _memory_point(value: int, result: MemoryResult) -> MemoryPoint:
    return MemoryPoint(
        value=value,
        total_bytes=result.total_bytes,
        low_bytes=result.low_bytes,
        high_bytes=result.high_bytes,
        host_bytes=result.host_bytes,
    )
