"""Comparison of a plan with measurements from a local GPU, and matching of local GPUs with the catalog."""

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
from planner.plan.solve import SolvableField, SolveResult, largest_that_fits, on_cards
from planner.workload.parallel import Parallel
from planner.workload.software.registry import MEMORY_RESERVING_PROGRAMS

# The driver reserves some memory, and so does ECC: it reports 94 % of a T4's and of an L40S's, and never more than all.
_MIN_REPORTED: Final = 0.9
_MAX_REPORTED: Final = 1.02

MeasurementBasis = Literal["process", "card"]
"""Measured quantity: the memory of one process, or all memory in use on the GPU."""
DifferenceReason = Literal["in-range", "before-peak", "other-processes", "more-than-expected", "engine-fills-card"]
"""Position of the measurement relative to the estimate's range, with the likely cause."""


class CardPrediction(NamedTuple):
    """Predicted memory and power of one GPU, for plots together with measurements.

    `power_watts` is the published power limit, None if unknown.
    """

    memory_bytes: int
    low_bytes: int
    high_bytes: int
    power_watts: float | None


@dataclass(frozen=True, slots=True)
class MeasuredCard:
    """Measured memory in use on one GPU, and by the plan's own process if known.

    `process_count` is the number of compute processes on the GPU, and `engine` the program of process `pid` if it is
    one that reserves nearly all memory at its start.
    """

    card_bytes: int
    process_bytes: int | None = None
    pid: int | None = None
    process_count: int = 0
    engine: str = ""


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """A memory prediction compared with a measurement.

    `likeliest` is the term with the most uncertainty in the direction of the difference, and thus its likeliest cause,
    if the estimate is the cause at all.
    """

    expected: CardPrediction
    measured: MeasuredCard
    basis: MeasurementBasis
    measured_bytes: int
    reason: DifferenceReason
    likeliest: TermName | None

    @property
    def difference_bytes(self) -> int:
        """Return measured minus predicted memory in bytes."""
        return self.measured_bytes - self.expected.memory_bytes

    @property
    def difference_fraction(self) -> float:
        """Return the difference between measured and predicted memory as a fraction of the predicted."""
        return self.difference_bytes / self.expected.memory_bytes


def predict_card(evaluation: Evaluation, gpu: Gpu | None = None) -> CardPrediction:
    """Return the predicted memory and power of the plan's fullest GPU; `gpu` is the local GPU, or the plan's.

    An engine that reserves the rest of the GPU for its cache is predicted to do so, however little the plan needs.
    """
    memory, card = evaluation.memory, gpu or evaluation.gpu
    watts = None if card is None else card.drawn_watts
    more = _unneeded_cache_pool(memory)
    return CardPrediction(memory.total_bytes + more, memory.low_bytes + more, memory.high_bytes + more, watts)


def _unneeded_cache_pool(memory: MemoryResult) -> int:
    """Return the part of an engine's cache pool that the plan does not need."""
    if memory.cache_pool is None:
        return 0
    return memory.cache_pool.bytes - sum(term.bytes for term in memory.terms if term.name == "kv_cache")


def measure_card(processes: tuple[CardProcess, ...], used_bytes: float) -> MeasuredCard:
    """Return what is measured on a GPU with `used_bytes` in use: the total, and the plan's process if found.

    The compute process with the most memory is assumed to be the plan's, since nothing else identifies it.
    """
    computing = [process for process in processes if process.kind != "graphics" and process.is_reliable]
    process_bytes = {
        place: int(process.memory_bytes.value)
        for place, process in enumerate(computing)
        if process.memory_bytes.value is not None
    }
    if not process_bytes:
        return MeasuredCard(int(used_bytes), process_count=len(computing))
    most = max(process_bytes, key=lambda place: process_bytes[place])
    own = computing[most]
    return MeasuredCard(int(used_bytes), process_bytes[most], own.pid, len(computing), _reserving_engine(own))


def _reserving_engine(process: CardProcess) -> str:
    """Return the name of an engine that reserves most of the GPU, if the process runs one, else an empty text."""
    host = process.host
    command = "" if host is None else f"{host.name} {host.command}".lower()
    return next((name for part, name in MEMORY_RESERVING_PROGRAMS.items() if part in command), "")


def check_prediction(evaluation: Evaluation, measured: MeasuredCard) -> PredictionCheck:
    """Compare the prediction of `evaluation` with a measurement, with the likeliest reason for a difference.

    The plan's process is compared if it is known; otherwise the whole GPU, and the prediction then includes the memory
    used by other programs.
    """
    expected = predict_card(evaluation)
    if measured.process_bytes is not None:
        basis: MeasurementBasis = "process"
        measured_bytes = measured.process_bytes
    else:
        basis, measured_bytes = "card", measured.card_bytes
        other = evaluation.memory.other_processes_bytes
        shifted = (expected.memory_bytes + other, expected.low_bytes + other, expected.high_bytes + other)
        expected = CardPrediction(*shifted, expected.power_watts)
    reason = _difference_reason(
        expected, measured_bytes, basis, fills_card=bool(measured.engine) and evaluation.memory.cache_pool is None
    )
    is_of_estimate = reason in ("in-range", "more-than-expected")
    likeliest = (
        _least_certain_term(evaluation.memory, measured_bytes - expected.memory_bytes) if is_of_estimate else None
    )
    return PredictionCheck(expected, measured, basis, measured_bytes, reason, likeliest)


def matching_gpus(catalog: HardwareCatalog, device: Device) -> tuple[Gpu, ...]:
    """Return the catalog records that match a local GPU by name, and by total memory if known."""
    if device.mig_parent is not None:
        return ()
    try:
        named: tuple[Gpu, ...] = (resolve_gpu(catalog, device.name),)
    except AmbiguousNameError as error:
        named = tuple(map(catalog.gpu, error.candidates))
    except SpecError:
        return ()
    total = device.fact("memory_total_bytes")
    return tuple(gpu for gpu in named if total is None or _has_reported_memory(gpu, total))


def plan_for_card(plan: Plan, gpu: Gpu, count: int = 1) -> Plan:
    """Return `plan` on `count` local GPUs of one kind, which other programs do not use.

    Parallelism that does not divide `count` is removed, so that the sharing is left to the software.
    """
    parallel = plan.workload.parallel
    if count % (parallel.model_shards * parallel.expert):
        parallel = Parallel()
    workload = plan.workload.evolve(gpus=(), other_processes_bytes=0, parallel=parallel)
    return on_cards(plan.evolve(workload=workload, gpu=gpu.id, count=count), count)


def largest_batches(plan: Plan, catalog: Catalog) -> tuple[SolveResult, SolveResult] | None:
    """Return the largest batch size that fits on the plan's GPU, and the largest batch size with a tight fit.

    None for a traced module, whose batch size is fixed, and for a plan without a GPU.
    """
    if plan.model.trace is not None or plan.gpu is None:
        return None
    field: SolvableField = "micro_batch" if plan.workload.task == "training" else "batch"
    return largest_that_fits(plan, catalog, field), largest_that_fits(plan, catalog, field, "tight")


def _difference_reason(
    expected: CardPrediction, measured_bytes: int, basis: MeasurementBasis, *, fills_card: bool
) -> DifferenceReason:
    """Return the likeliest reason for a difference between predicted and measured memory."""
    if measured_bytes < expected.low_bytes:
        return "before-peak"
    if measured_bytes <= expected.high_bytes:
        return "in-range"
    if basis == "card":
        return "other-processes"
    return "engine-fills-card" if fills_card else "more-than-expected"


def _least_certain_term(memory: MemoryResult, difference: int) -> TermName | None:
    """Return the term with the largest possible error in the direction of `difference`, or None if all are certain."""
    if not difference:
        return None
    rooms = {
        term.name: term.high_bytes - term.bytes if difference > 0 else term.bytes - term.low_bytes
        for term in memory.terms
    }
    roomiest = max(rooms, key=lambda name: rooms[name])
    return roomiest if rooms[roomiest] else None


def _has_reported_memory(gpu: Gpu, total_bytes: float) -> bool:
    """Return whether the memory that a driver reports, `total_bytes`, matches the GPU's physical memory."""
    physical = gpu.device_memory_bytes
    return physical is None or _MIN_REPORTED * physical <= total_bytes <= _MAX_REPORTED * physical
