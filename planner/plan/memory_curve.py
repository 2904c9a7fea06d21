"""Memory of a plan as a function of one numeric setting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import ValidationError

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.estimate import estimate_on
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, architecture_of, cards_of
from planner.plan.plan import Plan
from planner.plan.sharding import default_sharding
from planner.plan.solve import LENGTHS, SolvableField, layer_count, on_cards, with_value
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import serving_support
from planner.workload.training import Lora, Training
from planner.workload.workload import Parallel, Workload

Axis = SolvableField | Literal["lora_rank", "count"]
"""Plan setting on the x axis of a memory curve: a workload field, the LoRA rank, or the number of cards."""

_UNSHARDED: Final = {"data": None, "zero": 0, "tensor": 1, "pipeline": 1, "interleave": 1, "pipeline_layers": ()}
_MAX_DOUBLINGS: Final = 10


class MemoryPoint(Spec):
    """Peak memory per card at one value of the x axis, and host memory if something is offloaded."""

    value: int
    total_bytes: int
    low_bytes: int
    high_bytes: int
    host_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CountScaling:
    """Scaling of a plan to other card counts: `settings` returns the fields of `parallel` for each of `counts`.

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
    if count_scaling(evaluation.plan, architecture) is not None:
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
        spreading = count_scaling(plan, architecture_of(plan, catalog))
        if spreading is None:
            raise SpecError("count", "the memory per card does not depend on the number of cards")
        return on_cards(plan, value, spreading.settings(value))
    if axis == "lora_rank":
        return _with_rank(plan, value)
    return with_value(plan, axis, value)


def memory_curve(plan: Plan, catalog: Catalog, axis: Axis, values: tuple[int, ...]) -> tuple[MemoryPoint, ...]:
    """Return the memory per card of `plan` at each of `values` of the setting `axis`.

    Raises:
        SpecError: If the plan has no such number or does not allow one of the values, or the model was traced.
    """
    return tuple(
        _memory_point(value, _estimate_memory(plan_at_value(plan, catalog, axis, value), catalog)) for value in values
    )


def count_scaling(plan: Plan, architecture: Architecture) -> CountScaling | None:
    """Return the scaling of `plan` to other card counts, or None if its memory per card is the same for all.

    A plan on one card, or split by the default sharding, scales by that sharding. A plan with ZeRO scales by the number
    of replicas.
    """
    workload = plan.workload
    if workload.gpus:
        return None
    plain = with_defaults(workload.evolve(parallel=Parallel()), architecture, plan.count)
    sharding = default_sharding(plain, architecture)

    def parallel_settings(count: int) -> Mapping[str, object]:
        return {**_UNSHARDED, **(sharding.settings(count) if count > 1 else {})}

    own = workload.parallel.evolve(data=None)
    if sharding.counts and own == own.evolve(**parallel_settings(plan.count)):
        return CountScaling((1, *sharding.counts), parallel_settings, sharding.title)
    if isinstance(workload, Training) and own.zero:
        unit = own.model_shards * own.expert
        return CountScaling([unit << exponent for exponent in range(_MAX_DOUBLINGS)], lambda _count: {})
    return None


def _with_rank(plan: Plan, rank: int) -> Plan:
    """Return `plan` with adapters of another LoRA rank."""
    lora = _adapter_settings(plan.workload)
    try:
        return plan.evolve(workload=plan.workload.evolve(lora=lora.evolve(rank=rank)))
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


def _adapter_settings(workload: Workload) -> Lora:
    """Return the adapter settings of `workload`, or the defaults if it has none.

    Raises:
        SpecError: If it trains no adapters.
    """
    if not isinstance(workload, Training) or not workload.adapts:
        raise SpecError("lora.rank", "this workload has no adapters", "Choose the method lora or qlora.")
    return workload.lora or Lora()


def _estimate_memory(plan: Plan, catalog: Catalog) -> MemoryResult:
    return estimate_on(architecture_of(plan, catalog), plan.workload, cards_of(plan, catalog), plan.corrections)


def _memory_point(value: int, result: MemoryResult) -> MemoryPoint:
    return MemoryPoint(
        value=value,
        total_bytes=result.total_bytes,
        low_bytes=result.low_bytes,
        high_bytes=result.high_bytes,
        host_bytes=result.host_bytes,
    )
