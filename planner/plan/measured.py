"""What a plan predicts beside what a card measures, the card as the catalog knows it, and what would fill it."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.memory.result import MemoryResult, TermName
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.sample import CardProcess
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.plan.solve import Field, Solved, largest_that_fits, on_cards
from planner.workload.parallel import Parallel
from planner.workload.software.processes import CARD_FILLING

# The driver and ECC keep some: it tells 94 % of a T4's and of an L40S's memory, and never more than all.
_MIN_REPORTED: Final = 0.9
_MAX_REPORTED: Final = 1.02

Basis = Literal["process", "card"]
"""Whether one process was measured, or everything that the card holds."""
Reason = Literal["in-range", "before-peak", "other-processes", "more-than-expected", "engine-fills-card"]
"""Where the measurement lies beside the estimate's range, and what that is likely to mean."""

# By a part of their commands: vLLM calls its processes VLLM::EngineCore, SGLang sglang::scheduler.


class Expected(NamedTuple):
    """What a plan predicts of one card, to be drawn beside what is measured.

    `power_watts` is the most that such a card may draw, as published; none where that is not known.
    """

    memory_bytes: int
    low_bytes: int
    high_bytes: int
    power_watts: float | None


@dataclass(frozen=True, slots=True)
class MeasuredCard:
    """What one card was measured to hold, and what of it the plan's own process holds, where that is known.

    `pid` is that process, `process_count` says how many compute on the card, and `engine` which program the process is,
    if it is one that takes nearly all memory at its start.
    """

    card_bytes: int
    process_bytes: int | None = None
    pid: int | None = None
    process_count: int = 0
    engine: str = ""


@dataclass(frozen=True, slots=True)
class BesideMeasured:
    """A prediction beside a measurement.

    `likeliest` is the term whose range leaves the most room on that side; of it the difference is mostly, if it is one
    of the estimate.
    """

    expected: Expected
    measured: MeasuredCard
    basis: Basis
    measured_bytes: int
    reason: Reason
    likeliest: TermName | None

    @property
    def difference_bytes(self) -> int:
        """Return by how much more was measured than predicted."""
        return self.measured_bytes - self.expected.memory_bytes

    @property
    def difference_fraction(self) -> float:
        """Return the difference as a share of what was predicted."""
        return self.difference_bytes / self.expected.memory_bytes


def expected_of(evaluation: Evaluation, gpu: Gpu | None = None) -> Expected:
    """Return what a plan predicts of the card that it fills most; `gpu` is the live card, by default the plan's.

    An engine whose cache takes what is left of the card is expected to do so, however little of it the plan needs.
    """
    memory, card = evaluation.memory, gpu or evaluation.gpu
    watts = None if card is None else card.drawn_watts
    more = _unneeded_cache_pool(memory)
    return Expected(memory.total_bytes + more, memory.low_bytes + more, memory.high_bytes + more, watts)


def _unneeded_cache_pool(memory: MemoryResult) -> int:
    """Return by how much an engine's pool is larger than the cache that the plan needs of it."""
    if memory.cache_pool is None:
        return 0
    return memory.cache_pool.bytes - sum(term.bytes for term in memory.terms if term.name == "kv_cache")


def measured_of(processes: tuple[CardProcess, ...], used_bytes: float) -> MeasuredCard:
    """Return what was measured of a card that holds `used_bytes`.

    The plan's process is the one of those that compute which holds the most: nothing tells it apart from others.
    """
    computing = [process for process in processes if process.kind != "graphics" and process.is_reliable]
    held = {
        place: int(one.memory_bytes.value) for place, one in enumerate(computing) if one.memory_bytes.value is not None
    }
    if not held:
        return MeasuredCard(int(used_bytes), process_count=len(computing))
    most = max(held, key=lambda place: held[place])
    own = computing[most]
    return MeasuredCard(int(used_bytes), held[most], own.pid, len(computing), _engine(own))


def _engine(process: CardProcess) -> str:
    host = process.host
    told = "" if host is None else f"{host.name} {host.command}".lower()
    return next((name for part, name in CARD_FILLING.items() if part in told), "")


def beside(evaluation: Evaluation, measured: MeasuredCard, gpu: Gpu | None = None) -> BesideMeasured:
    """Return what `evaluation` predicts beside what was measured, with the likeliest reason for a difference.

    The process is compared where it is known. The whole card is compared with the prediction and what the plan says
    that other processes hold.
    """
    expected = expected_of(evaluation, gpu)
    if measured.process_bytes is not None:
        basis: Basis = "process"
        held = measured.process_bytes
    else:
        basis, held = "card", measured.card_bytes
        other = evaluation.memory.other_processes_bytes
        shifted = (expected.memory_bytes + other, expected.low_bytes + other, expected.high_bytes + other)
        expected = Expected(*shifted, expected.power_watts)
    reason = _reason(expected, held, basis, fills_card=bool(measured.engine) and evaluation.memory.cache_pool is None)
    is_of_estimate = reason in ("in-range", "more-than-expected")
    likeliest = _least_certain_term(evaluation.memory, held - expected.memory_bytes) if is_of_estimate else None
    return BesideMeasured(expected, measured, basis, held, reason, likeliest)


def matching_gpus(catalog: HardwareCatalog, device: Device) -> tuple[Gpu, ...]:
    """Return the catalog's records that a live card can be: by its name, and by its memory where both are known."""
    if device.mig_parent is not None:
        return ()
    try:
        named: tuple[Gpu, ...] = (resolve_gpu(catalog, device.name),)
    except AmbiguousNameError as error:
        named = tuple(map(catalog.gpu, error.candidates))
    except SpecError:
        return ()
    total = device.fact("memory_total_bytes")
    return tuple(gpu for gpu in named if total is None or _has_memory(gpu, total))


def plan_for_card(plan: Plan, gpu: Gpu, count: int = 1, other_processes_bytes: int = 0) -> Plan:
    """Return `plan` on so many live cards, beside what others hold there.

    A way of sharing that takes another number of cards gives way to none: each card holds the whole network.
    """
    parallel = plan.workload.parallel
    if count % (parallel.model_shards * parallel.expert):
        parallel = Parallel()
    workload = plan.workload.evolve(gpus=(), other_processes_bytes=other_processes_bytes, parallel=parallel)
    return on_cards(plan.evolve(workload=workload, gpu=gpu.id, count=count), count)


def batch_that_fills(plan: Plan, catalog: Catalog) -> tuple[Solved, Solved] | None:
    """Return the largest batch that surely fits on the plan's card, and the largest that barely does.

    A traced module has no batch that could be varied, and a plan without a card has nothing to fill.
    """
    if plan.model.trace is not None or plan.gpu is None:
        return None
    field: Field = "micro_batch" if plan.workload.task == "training" else "batch"
    return largest_that_fits(plan, catalog, field), largest_that_fits(plan, catalog, field, "tight")


def _reason(expected: Expected, held: int, basis: Basis, *, fills_card: bool) -> Reason:
    if held < expected.low_bytes:
        return "before-peak"
    if held <= expected.high_bytes:
        return "in-range"
    if basis == "card":
        return "other-processes"
    return "engine-fills-card" if fills_card else "more-than-expected"


def _least_certain_term(memory: MemoryResult, difference: int) -> TermName | None:
    """Return the term that may be off most in the direction of `difference`; none where all are certain."""
    if not difference:
        return None
    rooms = {
        term.name: term.high_bytes - term.bytes if difference > 0 else term.bytes - term.low_bytes
        for term in memory.terms
    }
    roomiest = max(rooms, key=lambda name: rooms[name])
    return roomiest if rooms[roomiest] else None


def _has_memory(gpu: Gpu, total_bytes: float) -> bool:
    physical = gpu.device_memory_bytes
    return physical is None or _MIN_REPORTED * physical <= total_bytes <= _MAX_REPORTED * physical
