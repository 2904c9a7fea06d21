"""Terms of a training step's time with formulas, symbols and sources, and the resource that limits the step."""

from collections.abc import Iterator
from typing import Final

from planner.memory.result import Symbol
from planner.memory.terms import card_symbol, library_symbol, model_symbol, workload_symbol
from planner.performance.efficiency import CLASSES_SOURCE
from planner.performance.result import Bound, TimeTerm, TimeTermName
from planner.performance.training.compute import DEQUANTISED_SHARE, CardRates
from planner.performance.training.step import OverlappedTransfer, TrainingStep

_PRODUCTS: Final = "Kaplan et al. 2020, arXiv 2001.08361 §2.1; shares of the dense rate: "
_ATTENTION: Final = "Dao 2023, arXiv 2307.08691 §4.1; shares of the dense rate: "
_ELEMENTS: Final = "bytes that operators save, checked against traces (tests/memory); passes over these bytes: "
_RECOMPUTED: Final = (
    "Korthikanti et al. 2022, arXiv 2205.05198; measured steps are 1.15 to 1.27 times as long (torchtitan, "
    "torchtune), and would be 1.33 times as long with a whole additional pass"
)
_LOADED: Final = "the loading rate in the plan's settings"
_BOUNDS: Final[dict[Bound, tuple[TimeTermName, ...]]] = {
    "compute": ("matrix_products", "attention", "recomputation", "loss_head"),
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
                "F", step.batch.forward.layer_flops, "operations of the layers' matrices in one forward pass of a card"
            ),
            card_symbol("R", rates.narrow, "dense FLOP/s in the format of the products"),
            library_symbol(
                "η", rates.narrow_share, "share of the dense rate that large matrix products reach in training"
            ),
            library_symbol("σ", passes.size_share, "rate of products of these sizes relative to large ones"),
            *_memory_symbols(rates),
        ),
        f"{_PRODUCTS}{rates.source}; {CLASSES_SOURCE}",
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
        _ATTENTION + CLASSES_SOURCE,
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
                "b", rates.classes.backward_passes, "cost of the backward pass in units of the forward pass"
            ),
            model_symbol("K", batch.kept_bytes, "bytes saved by the forward pass"),
            library_symbol("p", passes.moves_per_byte, "number of times that each saved byte is moved"),
            workload_symbol("C", batch.cast_bytes, "bytes of weights that autocast casts for one pass"),
            *([others] if passes.other_bytes else []),
            *_memory_symbols(rates),
        ),
        _ELEMENTS + CLASSES_SOURCE,
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
        "PyTorch's cross entropy in fp32, or the fused one of Liger-Kernel; " + CLASSES_SOURCE,
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
            library_symbol("ρ", step.rates.classes.recomputed, "cost of a second forward pass relative to the first"),
            model_symbol("t", passes.recomputable_seconds, "seconds of the recomputed operations"),
        ),
        _RECOMPUTED,
    )
    if step.batch.quantised_bytes:
        yield _dequantization_term(step, micro_batches)
    layers = max(step.batch.forward.layers, 1)
    yield _term(
        "host",
        count * passes.host,
        "m × L × o",
        (
            micro_batches,
            model_symbol("L", layers, "number of layers on one card"),
            library_symbol("o", passes.host / layers, "seconds to launch all passes of one layer"),
        ),
        "litgpt's resource tables, whose steps hardly grow with the batch; " + CLASSES_SOURCE,
        overlapped=count * passes.hidden_host_seconds,
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
            model_symbol("W", step.batch.whole_bytes, "bytes of the unpacked matrices in 16 bits"),
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
            model_symbol("C", done.copied_bytes, "bytes between the card and the host"),
            card_symbol("P", step.links.host_bytes_per_s, "bytes/s of the link to the host"),
            workload_symbol("c", step.node_cards, "cards of a node, which share the host"),
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
            workload_symbol("g", sent.group, "number of cards in the communication group"),
            workload_symbol("m", step.micro_batches, "micro-batches"),
            model_symbol("sent", sent.bytes, "bytes that each card sends in a step"),
            library_symbol("rounds", sent.operations, "number of collectives, each with its latency"),
            library_symbol("B", round(sent.bytes / sent.seconds), f"achieved bytes/s over {step.links.name}"),
        ),
        f"{sent.source}; {step.links.source}",
        overlapped=transfer.overlapped_seconds,
    )


def _memory_symbols(rates: CardRates) -> tuple[Symbol, Symbol]:
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
