"""Time of a training step on the chosen cards, with its interval and its parts."""

from typing import Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.certainty import ONE_SOURCE, spread_factor
from planner.performance.efficiency import (
    INPUT_BITS,
    MEASURED_CARDS,
    MatrixFormat,
    matrix_family,
    training_sources,
)
from planner.performance.measured import scale_to_measured
from planner.performance.result import Basis, TimeResult
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.performance.training.compute import wide_format
from planner.performance.training.step import TrainingStep, training_step_on
from planner.performance.training.terms import training_bound, training_terms
from planner.workload.layout import resolve_parallel
from planner.workload.training import Training

_DIFFUSION: Final = "Training of diffusion pipelines is not supported."
_SERVER: Final = "A parameter server would take {:.2g} s to sum the gradients, instead of {:.2g} s with collectives."
_SLOWEST: Final = "All cards wait for the slowest: the time is that of the {name}."


def training_time(
    architecture: Architecture,
    workload: Training,
    cards: tuple[tuple[Gpu, int], ...],
    setting: TimeSetting,
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return the time of one optimizer step of `workload` on `cards`, as the slowest card determines it.

    A measured speed in `setting` replaces the estimate, scaled by the ratio of the two estimates if it was measured on
    other cards, of the kind `measured_on`.
    """
    if architecture.kind == "diffusion":
        return _unsupported_result(_DIFFUSION)
    if not cards:
        return _unsupported_result("No card is chosen.")
    steps = [(gpu, training_step_on(architecture, workload, gpu, setting)) for gpu, _ in cards]
    for _, step in steps:
        if isinstance(step, str):
            return _unsupported_result(step)
    whole = [(gpu, step) for gpu, step in steps if isinstance(step, TrainingStep)]
    gpu, slowest = max(whole, key=lambda found: found[1].seconds)
    count = sum([number for _, number in cards])
    notes = (_SLOWEST.format(name=gpu.name),) if len(cards) > 1 else ()
    estimated = _time_result(architecture, workload, gpu, count, slowest, setting, notes)
    if setting.measured is None:
        return estimated
    return _scaled_to_measurement(
        architecture, workload, setting, setting.measured, estimated, (gpu, count), measured_on or gpu
    )


def _unsupported_result(reason: str) -> TimeResult:
    return TimeResult(task="training", kind="step", unsupported=reason)


def _time_result(
    architecture: Architecture,
    workload: Training,
    gpu: Gpu,
    count: int,
    step: TrainingStep,
    setting: TimeSetting,
    notes: tuple[str, ...],
) -> TimeResult:
    terms = training_terms(step)
    narrow: MatrixFormat = setting.matrix_format or (
        "fp8" if workload.compute == "fp8" else wide_format(gpu, workload.compute)
    )
    spread = step_spread_factor(step, gpu, narrow)
    sources = training_sources(matrix_family(gpu), INPUT_BITS[narrow])
    basis: Basis = "same card" if gpu.id in MEASURED_CARDS else "family" if sources else "unmeasured"
    seconds = sum([term.exposed_seconds for term in terms])
    return _with_throughput(
        TimeResult(
            task="training",
            kind="step",
            seconds=seconds,
            bound=training_bound(terms),
            basis=basis,
            terms=terms,
            flops_per_step=step.flops,
            notes=(*notes, *_assumption_notes(step, workload), *([ONE_SOURCE] if sources == 1 else [])),
        ),
        step,
        architecture,
        count * step.rates.narrow,
        spread,
    )


def _with_throughput(
    result: TimeResult, step: TrainingStep, architecture: Architecture, peak: float, spread: float
) -> TimeResult:
    """Return `result` with the interval of its time, the throughput and the model FLOPs utilization."""
    seconds = result.seconds or 0.0
    tokens = None if architecture.fixed_length is not None else step.tokens / seconds
    return result.model_copy(
        update={
            "low_seconds": seconds / spread,
            "high_seconds": seconds * spread,
            "tokens_per_second": tokens,
            "low_tokens_per_second": None if tokens is None else tokens / spread,
            "high_tokens_per_second": None if tokens is None else tokens * spread,
            "samples_per_second": step.samples / seconds,
            "mfu_fraction": step.flops / seconds / peak,
        }
    )


def _assumption_notes(step: TrainingStep, workload: Training) -> tuple[str, ...]:
    """Return notes on the assumed links between cards and on uncounted work."""
    found = []
    if step.transfers:
        links = step.links
        network = links.network_bytes_per_s / 1e9
        found.append(
            f"Assumed links: {links.name} within nodes of {links.node:,} cards, and to other nodes "
            f"{network:,.3g} GB/s per card."
        )
        rings = ((one.sent.server_seconds, one.sent.seconds) for one in step.transfers)
        found.extend(_SERVER.format(server, ring) for server, ring in rings if server is not None)
    if workload.adapts:
        found.append("The adapters' own products are not counted: they are less than 1 % of the network's.")
    return tuple(found)


def _scaled_to_measurement(
    architecture: Architecture,
    workload: Training,
    setting: TimeSetting,
    measured: MeasuredSpeed,
    estimated: TimeResult,
    cards: tuple[Gpu, int],
    measured_on: Gpu,
) -> TimeResult:
    """Return `estimated`, the estimate for `cards`, scaled to the measured speed."""
    if measured.unit == "tokens/s" and architecture.fixed_length is not None:
        return _unsupported_result(
            "The measured speed is in tokens/s, but this model does not read tokens: use samples/s."
        )
    gpu, count = cards
    number = measured.count or count
    is_same = (measured_on.id, number) == (gpu.id, count)
    there = estimated if is_same else _estimate_on_measured_cards(architecture, workload, setting, measured_on, number)
    return there if there.seconds is None else scale_to_measured(estimated, there, measured, is_same=is_same)


def _estimate_on_measured_cards(
    architecture: Architecture, workload: Training, setting: TimeSetting, gpu: Gpu, number: int
) -> TimeResult:
    """Return the time estimate for the cards on which the user measured a speed, with their default links."""
    try:
        spread_there = workload.evolve(parallel=workload.parallel.evolve(data=None))
        filled = workload.evolve(parallel=resolve_parallel(spread_there, architecture, number))
    except SpecError as error:
        return _unsupported_result(f"The measured speed cannot be transferred: {error.message}")
    there = setting.evolve(measured=None, link=None, cards_per_node=None, network_bytes_per_s=None)
    return training_time(architecture, filled, ((gpu, number),), there)


EXPERT_SPREAD: Final = 1.1
"""Additional spread factor of networks with routed experts: four of five measured steps of networks with them lie
within 1.29, and of others within 1.18, with their sources left out."""
WAITING_SPREAD: Final = 1.25
"""Additional spread factor of a step that consists of waits for the host or other cards: four of five measured steps
that wait for more than a fifth lie within 1.26, and of others within 1.18."""


def step_spread_factor(step: TrainingStep, gpu: Gpu, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may take longer or shorter; one case in ten lies beyond each end.

    **Formula**: the factor of the family, times one for routed experts, times one that grows with the share of the step
    in which the card waits.
    """
    sources = training_sources(matrix_family(gpu), INPUT_BITS[narrow])
    found = spread_factor("fine-tuning" if step.batch.adapted else "training", sources)
    found *= EXPERT_SPREAD if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING_SPREAD ** waiting_share(step))


def waiting_share(step: TrainingStep) -> float:
    """Return the share of a step in which the card waits for launches or for other cards."""
    passes = step.passes
    waiting = step.micro_batches * (passes.seconds - passes.device_seconds) + sum(
        [one.exposed_seconds for one in step.transfers]
    )
    return waiting / step.busy_seconds
