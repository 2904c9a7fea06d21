"""Time of one step of any traced module or diffusion pipeline, from operation counts."""

from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.result import Symbol
from planner.memory.terms import card_symbol, library_symbol, traced_symbol
from planner.performance.certainty import ONE_SOURCE, spread_factor
from planner.performance.efficiency import Family, family_of
from planner.performance.links import Links
from planner.performance.result import Bound, TimeResult, TimeTerm
from planner.performance.vision import (
    Kind,
    ModuleTime,
    OperationCounts,
    Precision,
    memory_passes,
    module_time,
    product_share,
)

_DATA_CENTRE: Final = ("A100", "Hopper SXM", "Hopper PCIe", "Blackwell data center")
_SOURCES: Final[dict[Kind, int]] = {"convolutions": 4, "attention": 1, "diffusion": 2}
"""Number of sources that measured networks of each kind: huggingface/pytorch-image-models, and for convolutions
lambdal/deeplearning-benchmark, NVIDIA/DeepLearningExamples and MLPerf Training; of diffusion
LambdaLabsML/lambda-diffusers and MLPerf Inference."""
_MEASURED: Final[dict[Kind, tuple[Family, ...]]] = {
    "convolutions": (*_DATA_CENTRE, "Ada", "Ampere GDDR", "Blackwell GDDR", "Turing", "Volta"),
    "attention": ("Ada", "Ampere GDDR", "Blackwell GDDR"),
    "diffusion": (*_DATA_CENTRE, "Ada", "Ampere GDDR", "Blackwell GDDR"),
}
_GUESSED: Final = "No network of this kind was measured on this card family, so the interval is wider."
_OVERLAPPED_SHARE: Final = 2 / 3
"""Share of the training step that can overlap with the gradient exchange: the backward pass.

**Source**: torch DistributedDataParallel sends each bucket as soon as its gradients are ready.
"""
_FITTED: Final = "huggingface/pytorch-image-models@aa4b585: t = a · 2 · MAC ÷ rate + b · bytes ÷ bandwidth"
_NORMALISED: Final = "lambdal/deeplearning-benchmark@aa5addb: ResNet-50 on A100, H100 and B200, channels first"


class TracedStep(NamedTuple):
    """One step of a module on one card: operation counts, number of samples, and bytes of exchanged gradients.

    `channels_last` means that images are stored pixel by pixel (torch.channels_last), not channel by channel.
    """

    task: Literal["training", "inference"]
    counts: OperationCounts
    samples: int
    precision: Precision
    gradient_bytes: float = 0.0
    compiled: bool = False
    channels_last: bool = False


def step_time(
    step: TracedStep, gpu: Gpu, links: Links, cards: int = 1, input_samples_per_second: float | None = None
) -> TimeResult:
    """Return the time of a data-parallel step, in which each card processes its own samples.

    **Formula**: F ÷ (a · C) + max(b · n · w ÷ B, n ÷ e), the calls of operators and the loading of samples if
    these take longer, and the exposed part of the gradient exchange.
    """
    time = module_time(step.counts, gpu, step.precision, compiled=step.compiled, channels_last=step.channels_last)
    if time is None:
        reason = f"the memory bandwidth or the arithmetic rate of {gpu.name} is unknown"
        return TimeResult(task=step.task, kind=_result_kind(step), unsupported=reason)
    terms = [*_device_terms(step, gpu, time), *_gradient_exchange_terms(step, links, cards, time.seconds)]
    seconds = sum(term.exposed_seconds for term in terms)
    waiting = cards * step.samples / input_samples_per_second - seconds if input_samples_per_second else 0.0
    if waiting > 0:
        terms.append(_loading_wait_term(waiting))
        seconds += waiting
    rate = cards * step.samples / seconds
    sources = _SOURCES[step.counts.kind] if family_of(gpu) in _MEASURED[step.counts.kind] else 0
    spread = spread_factor("image training" if step.task == "training" else "images", sources)
    return TimeResult(
        task=step.task,
        kind=_result_kind(step),
        seconds=seconds,
        low_seconds=seconds / spread,
        high_seconds=seconds * spread,
        samples_per_second=rate,
        bound=_limiting_resource(terms, time),
        basis="family" if sources else "unmeasured",
        terms=tuple(terms),
        flops_per_step=cards * step.counts.flops,
        mfu_fraction=_mfu_fraction(step, gpu, seconds),
        notes=(_GUESSED,) if not sources else (ONE_SOURCE,) if sources == 1 else (),
    )


def _result_kind(step: TracedStep) -> Literal["step", "service"]:
    """Return `step` for training and `service` for inference."""
    return "step" if step.task == "training" else "service"


def _device_terms(step: TracedStep, gpu: Gpu, time: ModuleTime) -> list[TimeTerm]:
    counts = step.counts
    reach = product_share(gpu, step.precision)
    moved = memory_passes(gpu, counts.kind, compiled=step.compiled)
    found = [
        _term(
            "convolutions" if counts.kind == "convolutions" else "matrix_products",
            time.products,
            "F ÷ (a × C)",
            (
                traced_symbol("F", counts.flops, "operations of the step"),
                library_symbol("a", reach, "share of the dense rate that matrix products reach"),
                card_symbol(
                    "C", counts.flops / (reach * time.products), f"dense operations a second in {step.precision}"
                ),
            ),
        ),
        _elementwise_term(counts, gpu, time, moved),
    ]
    if time.host > 0:
        found.append(
            _term(
                "host", time.host, "k × t, minus the overlap", (traced_symbol("k", counts.calls, "operators called"),)
            )
        )
    return found


def _elementwise_term(counts: OperationCounts, gpu: Gpu, time: ModuleTime, moved: float) -> TimeTerm:
    outputs = traced_symbol("n", counts.elements, "output elements of matrix products")
    if time.elements_per_s is not None:
        handled = library_symbol("e", time.elements_per_s, "elements per second that the multiprocessors normalise")
        return _term("elementwise", time.memory, "n ÷ e", (outputs, handled), _NORMALISED)
    passed = library_symbol("b", moved, "passes over memory per output element of a product")
    bandwidth = card_symbol("B", gpu.bandwidth_bytes_per_s or 0.0, "memory bandwidth of the card in bytes per second")
    return _term("elementwise", time.memory, "b × n × w ÷ B", (passed, outputs, bandwidth))


def _term(
    name: Literal["convolutions", "matrix_products", "elementwise", "host"],
    seconds: float,
    formula: str,
    symbols: tuple[Symbol, ...],
    source: str = _FITTED,
) -> TimeTerm:
    return TimeTerm(name=name, seconds=seconds, formula=formula, symbols=symbols, source=source, certainty="measured")


def _gradient_exchange_terms(step: TracedStep, links: Links, cards: int, seconds: float) -> list[TimeTerm]:
    """Return the time term of the gradient exchange between cards; empty on a single card."""
    if step.task != "training" or cards == 1 or not step.gradient_bytes:
        return []
    wire = 2 * (cards - 1) / cards * step.gradient_bytes
    spent = wire / links.bus_bytes_per_s(cards) + links.all_reduce_latency_seconds(cards)
    return [
        TimeTerm(
            name="gradient_exchange",
            seconds=spent,
            overlapped_seconds=min(spent, _OVERLAPPED_SHARE * seconds),
            formula="2 × (g − 1) ÷ g × G ÷ B + latency",
            symbols=(
                library_symbol("g", cards, "cards"),
                traced_symbol("G", step.gradient_bytes, "bytes of gradients"),
                card_symbol("B", links.bus_bytes_per_s(cards), "bandwidth between the cards in bytes per second"),
            ),
            source=links.source,
            certainty="measured",
        )
    ]


def _loading_wait_term(seconds: float) -> TimeTerm:
    return TimeTerm(
        name="input",
        seconds=seconds,
        formula="samples ÷ loading rate − the other terms",
        symbols=(),
        source="the loading rate in the plan's settings",
        certainty="assumed",
    )


_BOUNDS: Final[dict[str, Bound]] = {
    "convolutions": "compute",
    "matrix_products": "compute",
    "elementwise": "memory bandwidth",
    "host": "host",
    "gradient_exchange": "communication",
    "input": "input",
}


def _limiting_resource(terms: list[TimeTerm], time: ModuleTime) -> Bound:
    """Return the resource that takes most of the time; a step that waits for loading is bound by input."""
    if terms[-1].name == "input":
        return "input"
    longest = max(terms, key=lambda term: term.exposed_seconds).name
    return "compute" if longest == "elementwise" and time.elements_per_s is not None else _BOUNDS[longest]


def _mfu_fraction(step: TracedStep, gpu: Gpu, seconds: float) -> float | None:
    """Return the model FLOPs utilization as a fraction, or None if the card's rate is unknown."""
    rate = gpu.rate("fp32" if step.precision == "fp32" else "fp16")
    return step.counts.flops * gpu.device_count / (seconds * rate.ops_per_s) if rate else None
