"""Time of a training step on the chosen GPUs: its interval, its terms with formulas, and what limits it."""

from collections.abc import Iterator
from math import inf
from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.result import Symbol
from planner.memory.terms import card_symbol, library_symbol, model_symbol, workload_symbol
from planner.models.architecture import Architecture
from planner.performance.certainty import ONE_SOURCE, scale_to_measured, spread_factor, workload_where_measured
from planner.performance.efficiency import (
    EFFICIENCY_SOURCE,
    INPUT_BITS,
    MEASURED_CARDS,
    MatrixFormat,
    matrix_family,
    training_sources,
)
from planner.performance.flops import ForwardWork
from planner.performance.result import Basis, Bound, TimeResult, TimeTerm, TimeTermName
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.performance.training.compute import DEQUANTISED_SHARE, GpuRates, wide_format
from planner.performance.training.pipelines import pipeline_step_time
from planner.performance.training.step import OverlappedTransfer, TrainingStep, training_step_on
from planner.workload.defaults import as_trained
from planner.workload.training import Training

_SERVER: Final = "A parameter server would take {:.2g} s to sum the gradients, instead of {:.2g} s with collectives."
_SLOWEST: Final = "All GPUs wait for the slowest: the time is that of the {name}."


def training_time(
    architecture: Architecture,
    workload: Training,
    cards: tuple[tuple[Gpu, int], ...],
    setting: TimeSetting,
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return the time of one optimizer step of `workload` on `cards`, as the slowest GPU determines it.

    A measured speed in `setting` replaces the estimate, scaled by the ratio of the two estimates if it was measured on
    other GPUs, of the kind `measured_on`.
    """
    if not cards:
        return _unsupported_result("No GPU is chosen.")
    count = sum([number for _, number in cards])
    notes = (_SLOWEST,) if len(cards) > 1 else ()
    if architecture.kind == "diffusion":
        times = [(gpu, pipeline_step_time(architecture, workload, gpu, count, setting)) for gpu, _ in cards]
        gpu, estimated = max(times, key=lambda found: found[1].seconds or inf)
        estimated = estimated.evolve(notes=(*(note.format(name=gpu.name) for note in notes), *estimated.notes))
        return _with_measurement(architecture, workload, setting, estimated, (gpu, count), measured_on)
    architecture = as_trained(architecture, workload)
    steps = [(gpu, training_step_on(architecture, workload, gpu, setting)) for gpu, _ in cards]
    for _, step in steps:
        if isinstance(step, str):
            return _unsupported_result(step)
    whole = [(gpu, step) for gpu, step in steps if isinstance(step, TrainingStep)]
    gpu, slowest = max(whole, key=lambda found: found[1].seconds)
    slow = tuple(note.format(name=gpu.name) for note in notes)
    estimated = _time_result(architecture, workload, gpu, count, slowest, setting, slow)
    return _with_measurement(architecture, workload, setting, estimated, (gpu, count), measured_on)


def _with_measurement(
    architecture: Architecture,
    workload: Training,
    setting: TimeSetting,
    estimated: TimeResult,
    cards: tuple[Gpu, int],
    measured_on: Gpu | None,
) -> TimeResult:
    """Return `estimated`, the estimate for `cards`, scaled to the measured speed in `setting` if there is one."""
    if setting.measured is None or estimated.seconds is None:
        return estimated
    return _scaled_to_measurement(
        architecture, workload, setting, setting.measured, estimated, cards, measured_on or cards[0]
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
    """Return notes on the assumed links between GPUs and on uncounted work."""
    found = []
    if step.transfers:
        links = step.links
        network = links.network_bytes_per_s / 1e9
        found.append(
            f"Assumed links: {links.name} within nodes of {links.cards_per_node:,} GPUs, and to other nodes "
            f"{network:,.3g} GB/s per GPU."
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
    if measured.unit == "tokens/s" and not architecture.has_variable_length:
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
    """Return the time estimate for the GPUs on which the user measured a speed, with their default links."""
    filled = workload_where_measured(workload, architecture, number)
    if isinstance(filled, str):
        return _unsupported_result(filled)
    there = setting.evolve(measured=None, link=None, cards_per_node=None, network_bytes_per_s=None)
    return training_time(architecture, filled, ((gpu, number),), there)


EXPERT_SPREAD: Final = 1.1
"""Additional spread factor of networks with routed experts: four of five measured steps of networks with them lie
within 1.29, and of others within 1.18, with their sources left out."""
WAITING_SPREAD: Final = 1.25
"""Additional spread factor of a step that consists of waits for the host or other GPUs: four of five measured steps
that wait for more than a fifth lie within 1.26, and of others within 1.18."""


def step_spread_factor(step: TrainingStep, gpu: Gpu, narrow: MatrixFormat) -> float:
    """Return the factor by which a step may take longer or shorter; one case in ten lies beyond each end.

    **Formula**: the factor of the family, times one for routed experts, times one that grows with the share of the step
    in which the GPU waits.
    """
    sources = training_sources(matrix_family(gpu), INPUT_BITS[narrow])
    found = spread_factor("fine-tuning" if step.batch.adapted else "training", sources)
    found *= EXPERT_SPREAD if step.batch.forward.expert_layers else 1.0
    return float(found * WAITING_SPREAD ** waiting_share(step))


def waiting_share(step: TrainingStep) -> float:
    """Return the share of a step in which the GPU waits for launches or for other GPUs."""
    passes = step.passes
    waiting = step.micro_batches * (passes.seconds - passes.device_seconds) + sum(
        [one.exposed_seconds for one in step.transfers]
    )
    return waiting / step.busy_seconds


_PRODUCTS: Final = "Kaplan et al. 2020, arXiv 2001.08361 §2.1; shares of the dense rate: "
_ATTENTION: Final = "Dao 2023, arXiv 2307.08691 §4.1; shares of the dense rate: "
_ELEMENTS: Final = "bytes that operators save, checked against traces (tests/memory); passes over these bytes: "
_RECOMPUTED: Final = (
    "Korthikanti et al. 2022, arXiv 2205.05198; measured steps are 1.15 to 1.27 times as long (torchtitan, "
    "torchtune), and would be 1.33 times as long with a whole additional pass"
)
_LOADED: Final = "the loading rate in the plan's settings"
_BOUNDS: Final[dict[Bound, tuple[TimeTermName, ...]]] = {
    "compute": ("matrix_products", "attention", "recomputation", "loss_head", "images"),
    "memory bandwidth": ("elementwise", "dequantisation", "optimizer"),
    "communication": (
        "gradient_exchange",
        "parameter_gathering",
        "tensor_exchange",
        "context_exchange",
        "expert_exchange",
        "pipeline_transfers",
        "bubble",
        "offload",
    ),
    "host": ("host",),
    "input": ("input",),
}


def training_terms(step: TrainingStep) -> tuple[TimeTerm, ...]:
    """Return the time terms of `step` that take more than 0 seconds."""
    found = (
        *_computation_terms(step),
        *_terms_outside_micro_batches(step),
        *(_exchange_term(one, step) for one in step.transfers),
    )
    return tuple([term for term in found if term.seconds > 0])


def training_bound(terms: tuple[TimeTerm, ...]) -> Bound:
    """Return the resource that takes most of the step's time."""
    exposed = {term.name: term.exposed_seconds for term in terms}
    return max(_BOUNDS, key=lambda bound: sum(exposed.get(name, 0.0) for name in _BOUNDS[bound]))


def _computation_terms(step: TrainingStep) -> Iterator[TimeTerm]:
    """Yield the time terms of computation and memory traffic in all micro-batches."""
    micro_batches = workload_symbol("m", step.micro_batches, "micro-batches")
    backward_cost = workload_symbol(
        "w",
        1 + step.batch.weight_gradient_share,
        "cost of the backward pass in units of the forward pass: gradients of inputs and of trained weights",
    )
    yield _products_term(step, micro_batches, backward_cost)
    yield _attention_term(step, micro_batches)
    yield _elementwise_term(step, micro_batches)
    yield _head_term(step, micro_batches, backward_cost)
    yield from _overhead_terms(step, micro_batches)


def _products_term(step: TrainingStep, micro_batches: Symbol, backward_cost: Symbol) -> TimeTerm:
    passes, rates = step.passes, step.rates
    return _term(
        "matrix_products",
        step.micro_batches * (passes.products_forward + passes.products_backward),
        "m × (1 + w) × Σ max(F ÷ (R × η × σ), bytes ÷ (B × β))",
        (
            micro_batches,
            backward_cost,
            model_symbol(
                "F", step.batch.forward.layer_flops, "operations of the layers' matrices in one forward pass of a GPU"
            ),
            card_symbol("R", rates.narrow, "dense FLOP/s in the format of the products"),
            library_symbol(
                "η", rates.narrow_share, "share of the dense rate that large matrix products reach in training"
            ),
            library_symbol("σ", passes.size_share, "rate of products of these sizes relative to large ones"),
            *_memory_symbols(rates),
        ),
        f"{_PRODUCTS}{rates.source}; {EFFICIENCY_SOURCE}",
    )


def _attention_term(step: TrainingStep, micro_batches: Symbol) -> TimeTerm:
    passes, rates = step.passes, step.rates
    return _term(
        "attention",
        step.micro_batches * (passes.attention_forward + passes.attention_backward),
        "m × (1 + b) × A ÷ (R × η)",
        (
            micro_batches,
            library_symbol(
                "b", passes.attention_backward_ratio, "cost of the backward pass in units of the forward pass"
            ),
            model_symbol(
                "A", step.batch.forward.attention_flops, "operations of attention between queries, keys and values"
            ),
            card_symbol("R", rates.matrix, "dense FLOP/s in the format of attention"),
            library_symbol("η", rates.attention_share, "share of the dense rate that fused attention reaches"),
        ),
        _ATTENTION + EFFICIENCY_SOURCE,
    )


def _elementwise_term(step: TrainingStep, micro_batches: Symbol) -> TimeTerm:
    passes, rates, batch = step.passes, step.rates, step.batch
    others = workload_symbol("Q", passes.other_bytes, "bytes moved to cast to fp8 and to merge ring attention's parts")
    return _term(
        "elementwise",
        step.micro_batches * (passes.elements_forward + passes.elements_backward),
        f"m × ((1 + b) × (K × p + C){' + Q' if passes.other_bytes else ''}) ÷ (B × β)",
        (
            micro_batches,
            library_symbol(
                "b", rates.efficiency.extra_backward_passes, "cost of the backward pass in units of the forward pass"
            ),
            model_symbol("K", batch.saved_bytes, "bytes saved by the forward pass"),
            library_symbol("p", passes.moves_per_byte, "number of times that each saved byte is moved"),
            workload_symbol("C", batch.cast_bytes, "bytes of weights that autocast casts for one pass"),
            *([others] if passes.other_bytes else []),
            *_memory_symbols(rates),
        ),
        _ELEMENTS + EFFICIENCY_SOURCE,
    )


def _head_term(step: TrainingStep, micro_batches: Symbol, backward_cost: Symbol) -> TimeTerm:
    rates, batch = step.rates, step.batch
    return _term(
        "loss_head",
        step.micro_batches * step.passes.head,
        "m × ((1 + w) × H ÷ (R × η) + Z ÷ (B × β))",
        (
            micro_batches,
            backward_cost,
            model_symbol("H", batch.forward.head_flops, "operations of the output head in one forward pass"),
            card_symbol("R", rates.matrix, "dense FLOP/s"),
            library_symbol(
                "η", rates.matrix_share, "share of the dense rate that large matrix products reach in training"
            ),
            model_symbol("Z", batch.logit_bytes, "bytes moved for the logits, their softmax and its derivative"),
            *_memory_symbols(rates),
        ),
        "PyTorch's cross entropy in fp32, or the fused one of Liger-Kernel; " + EFFICIENCY_SOURCE,
    )


def _overhead_terms(step: TrainingStep, micro_batches: Symbol) -> Iterator[TimeTerm]:
    """Yield the time terms of recomputation, dequantisation and kernel launches."""
    passes, count = step.passes, step.micro_batches
    yield _term(
        "recomputation",
        count * passes.recomputed,
        "m × ρ × t",
        (
            micro_batches,
            library_symbol(
                "ρ", step.rates.efficiency.recomputed_fraction, "cost of a second forward pass relative to the first"
            ),
            model_symbol("t", passes.recomputable_seconds, "seconds of the recomputed operations"),
        ),
        _RECOMPUTED,
    )
    if step.batch.frozen_tower:
        yield _frozen_tower_term(step, step.batch.frozen_tower, micro_batches)
    if step.batch.quantised_bytes:
        yield _dequantization_term(step, micro_batches)
    layers = max(step.batch.forward.layers, 1)
    yield _term(
        "host",
        count * passes.host,
        "m × L × o",
        (
            micro_batches,
            model_symbol("L", layers, "number of layers on one GPU"),
            library_symbol("o", passes.host / layers, "seconds to launch all passes of one layer"),
        ),
        "litgpt's resource tables, whose steps hardly grow with the batch; " + EFFICIENCY_SOURCE,
        overlapped=count * passes.hidden_host_seconds,
    )


def _frozen_tower_term(step: TrainingStep, work: ForwardWork, micro_batches: Symbol) -> TimeTerm:
    rates = step.rates
    return _term(
        "images",
        step.micro_batches * step.passes.images,
        "m × (Σ max(F ÷ (R × η × σ), bytes ÷ (B × β)) + A ÷ (R × α))",
        (
            micro_batches,
            model_symbol("F", work.layer_flops, "operations of the vision tower's matrices for the images of a GPU"),
            model_symbol("A", work.attention_flops, "operations of its attention"),
            card_symbol("R", rates.narrow, "dense FLOP/s"),
            library_symbol("η", rates.narrow_share, "share of the dense rate that large matrix products reach"),
            library_symbol("σ", step.passes.size_share, "rate of products of these sizes relative to large ones"),
            library_symbol("α", rates.attention_share, "share of the dense rate that fused attention reaches"),
            *_memory_symbols(rates),
        ),
        f"a frozen vision tower has no backward pass; {_PRODUCTS}{rates.source}; {EFFICIENCY_SOURCE}",
    )


def _dequantization_term(step: TrainingStep, micro_batches: Symbol) -> TimeTerm:
    return _term(
        "dequantisation",
        step.micro_batches * step.passes.dequantised,
        "m × v × (Q + W) ÷ (B × δ)",
        (
            micro_batches,
            library_symbol("v", step.passes.visits, "number of times that each matrix is unpacked per micro-batch"),
            model_symbol("Q", step.batch.quantised_bytes, "bytes of the packed matrices"),
            model_symbol("W", step.batch.unpacked_bytes, "bytes of the unpacked matrices in 16 bits"),
            card_symbol("B", step.rates.bandwidth, "memory bandwidth, bytes/s"),
            library_symbol("δ", DEQUANTISED_SHARE, "share of the memory bandwidth that unpacking reaches"),
        ),
        "Lightning-AI/litgpt 2685705, resource-tables.md: NF4 compared with bf16 at 3, 7 and 13 billion parameters",
    )


def _terms_outside_micro_batches(step: TrainingStep) -> Iterator[TimeTerm]:
    """Yield the time terms outside the micro-batches: pipeline bubble, optimizer, offload, loading."""
    if step.bubble:
        yield _bubble_term(step)
    if step.optimizer:
        moved = model_symbol(
            "O", step.optimizer_traffic.moved_bytes, "bytes of gradients, parameters and states, read and written"
        )
        source = "each element is read once and written once: torch.optim's fused kernels"
        yield _term("optimizer", step.optimizer, "O ÷ (B × β)", (moved, *_memory_symbols(step.rates)), source)
    if step.offload:
        yield _offload_term(step)
    if step.loading:
        samples = workload_symbol("n", step.samples, "samples per step")
        rate = workload_symbol("r", step.samples / step.loading, "samples loaded per second")
        hidden = min(step.loading, step.busy_seconds)
        yield _term("input", step.loading, "n ÷ r", (samples, rate), _LOADED, overlapped=hidden)


def _bubble_term(step: TrainingStep) -> TimeTerm:
    others = step.bubble / step.passes.seconds
    return _term(
        "bubble",
        step.bubble,
        "(p − 1) ÷ v × t",
        (
            workload_symbol(
                "(p − 1) ÷ v", others, "number of other pipeline stages, divided by the layer groups per stage"
            ),
            model_symbol("t", step.passes.seconds, "seconds of one micro-batch on the slowest stage"),
        ),
        "Narayanan et al. 2021, arXiv 2104.04473 §2.2",
    )


def _offload_term(step: TrainingStep) -> TimeTerm:
    done = step.optimizer_traffic
    return _term(
        "offload",
        step.offload,
        "C ÷ P + c × O ÷ D",
        (
            model_symbol("C", done.copied_bytes, "bytes between the GPU and the host"),
            card_symbol("P", step.links.host_bytes_per_s, "bytes/s of the link to the host"),
            workload_symbol("c", step.node_cards, "GPUs of a node, which share the host"),
            model_symbol("O", done.offloaded_bytes, "bytes that the offloaded optimizer reads and writes"),
            library_symbol("D", done.offload_bytes_per_s, "memory traffic of the offloaded optimizer in bytes/s"),
        ),
        "Ren et al. 2021, arXiv 2101.06840 (ZeRO-Offload); Rajbhandari et al. 2021, arXiv 2104.07857 (disks)",
    )


def _exchange_term(transfer: OverlappedTransfer, step: TrainingStep) -> TimeTerm:
    sent = transfer.sent
    return _term(
        sent.name,
        sent.seconds,
        sent.formula,
        (
            workload_symbol("g", sent.group, "number of GPUs in the communication group"),
            workload_symbol("m", step.micro_batches, "micro-batches"),
            model_symbol("sent", sent.bytes, "bytes that each GPU sends in a step"),
            library_symbol("rounds", sent.operations, "number of collectives, each with its latency"),
            library_symbol("B", round(sent.bytes / sent.seconds), f"achieved bytes/s over {step.links.name}"),
        ),
        f"{sent.source}; {step.links.source}",
        overlapped=transfer.overlapped_seconds,
    )


def _memory_symbols(rates: GpuRates) -> tuple[Symbol, Symbol]:
    return (
        card_symbol("B", rates.bandwidth, "memory bandwidth, bytes/s"),
        library_symbol("β", rates.memory / rates.bandwidth, "achieved share of the memory bandwidth"),
    )


def _term(
    name: TimeTermName,
    seconds: float,
    formula: str,
    symbols: tuple[Symbol, ...],
    source: str,
    *,
    overlapped: float = 0.0,
) -> TimeTerm:
    return TimeTerm(
        name=name,
        seconds=seconds,
        overlapped_seconds=overlapped,
        formula=formula,
        symbols=symbols,
        source=source,
        certainty="measured",
    )
