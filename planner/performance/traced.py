"""Time of one step of a convolutional network, any traced module or a diffusion pipeline, from operation counts."""

from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.result import Symbol
from planner.memory.terms import card_symbol, library_symbol, traced_symbol
from planner.performance.attainable import OLDER_HOSTS, dense_ops_per_s, product_ceiling, share_within_power_limit
from planner.performance.certainty import ONE_SOURCE, spread_factor
from planner.performance.efficiency import Family, MatrixFamily, family_of, matrix_family
from planner.performance.links import Links
from planner.performance.result import Bound, TimeResult, TimeTerm

Precision = Literal["fp32", "tf32", "fp16", "fp8"]
Kind = Literal["convolutions", "attention", "diffusion"]
"""Kind of network, which determines how often its data pass through memory."""

_SHARE_OF_RATE: Final = 0.95
"""Share of the dense rate that matrix products reach, without memory passes, on GPUs whose rate is halved, which keep
their highest clock; others reach no more than large products do alone (`reach.product_ceiling`).

**Source**: a of 1.0 to 1.1 in t = a · 2 · MAC ÷ rate + b · bytes ÷ bandwidth, fitted on some 1,440 networks of
huggingface/pytorch-image-models@aa4b585 for each of four GPUs.
"""
_PASSES: Final[dict[tuple[Kind, bool], float]] = {
    ("convolutions", False): 9.0,
    ("convolutions", True): 4.2,
    ("attention", False): 4.0,
    ("attention", True): 2.2,
    ("diffusion", False): 18.0,
    ("diffusion", True): 4.2,
}
"""Passes over memory per output element of a product, eager and compiled.

**Source**: b of the same fit, on RTX 5090: normalisation, activation and residual sums read and write it several times;
diffusion on LambdaLabsML/lambda-diffusers@8571d8d, whose U-Net also changes layouts and normalises groups in fp32.
"""
_STACKED_MEMORY: Final = 1.35
"""Factor on the passes over memory for GPUs with stacked memory (HBM), which reach a smaller share of their bandwidth.

**Source**: lambdal/deeplearning-benchmark@aa5addb and NVIDIA/DeepLearningExamples@729963d, ResNet-50 on A100 and H100.
"""
_CALL_SECONDS: Final = 10e-6
"""Seconds in which PyTorch launches one operator.

**Source**: 0.61 ms for the 60 operators of a layer, QwenLM/Qwen3@7a2f61f with Transformers.
"""
_OLDER_CALL_SECONDS: Final = 14e-6
"""Seconds in which PyTorch launches one operator in the hosts of older GPUs: 0.84 ms a layer, Qwen2.5 benchmark on
A100."""
_KERNEL_SECONDS: Final = 2.4e-6
"""Seconds in which a kernel starts and ends while the GPU does no work, also in a CUDA graph.

**Source**: the `launch` of products on all GPUs, 1.7 to 2.9 µs (catalog/kernels, fitted to ai-dynamo/aiconfigurator
095f58a).
"""
_ELEMENTS_PER_CLOCK: Final = 0.37
"""Elements that one multiprocessor normalises per clock in training with batch norm, channels first.

**Source**: lambdal/deeplearning-benchmark@aa5addb, ResNet-50 with data stored on the GPU: 0.35 to 0.40 on A100,
H100 and B200, without the products; B200 and GH200 gain nothing from their memory, and B200 is as fast in
TF32 as in 16 bits. With channels last NVIDIA/DeepLearningExamples@729963d is 1.6 times as fast on A100.
"""
_OPERATIONS_PER_CLOCK: Final[dict[Family, int]] = {
    "Volta": 128,
    "Turing": 128,
    "A100": 128,
    "Hopper SXM": 256,
    "Hopper PCIe": 256,
    "Blackwell data center": 256,
    "Ampere GDDR": 256,
    "Ada": 256,
    "Blackwell GDDR": 256,
}
"""fp32 operations of one multiprocessor per clock: twice its 64 or 128 cores (NVIDIA's whitepapers)."""
_BACKWARD: Final = 3.0
"""Cost of a training step in units of a forward pass: the backward pass repeats the products for inputs and for
weights.

**Source**: measured 3.43 (3.04 to 4.92) on pytorch-image-models.
"""
_HALVED_RATE: Final[tuple[MatrixFamily, ...]] = ("Turing half rate", "Ampere GDDR", "Ada", "Blackwell GDDR")
_BYTES: Final[dict[Precision, int]] = {"fp32": 4, "tf32": 4, "fp16": 2, "fp8": 2}


class OperationCounts(NamedTuple):
    """Counts of operations, output elements and operator launches (`calls`, 0 if unknown) in one pass.

    `trains` means that it is a whole training step.
    """

    flops: float
    elements: float
    kind: Kind = "convolutions"
    calls: float = 0.0
    trains: bool = False

    def training_step_counts(self) -> "OperationCounts":
        """Return the counts of a training step, derived from these counts of a forward pass."""
        return self._replace(
            flops=_BACKWARD * self.flops,
            elements=_BACKWARD * self.elements,
            calls=_BACKWARD * self.calls,
            trains=True,
        )


class ModuleTime(NamedTuple):
    """Seconds of a network by kind of work: products, memory passes, and launches beyond these two.

    `elements_per_s` is how many elements per second the multiprocessors normalise, if that and not the memory takes
    longest.
    """

    products: float
    memory: float
    host: float
    elements_per_s: float | None = None

    @property
    def seconds(self) -> float:
        """Return the total time of the network in seconds."""
        return self.products + self.memory + self.host


def module_time(
    counts: OperationCounts, gpu: Gpu, precision: Precision, *, compiled: bool = False, channels_last: bool = False
) -> ModuleTime | None:
    """Return the time of a network from its counts, or None if the GPU's rate or bandwidth is unknown.

    **Formula**: F ÷ (a · C) + max(b · n · w ÷ B, n ÷ e) + k · t, or the operators' calls if these take longer. The
    steps of diffusion wait for the scheduler in between, so the calls of each are added
    (LambdaLabsML/lambda-diffusers@8571d8d: 13 to 29 ms a step beside what grows with the batch).
    """
    rate = dense_ops_per_s(gpu, precision)
    if rate is None or gpu.bandwidth_bytes_per_s is None:
        return None
    products = counts.flops / (product_share(gpu, precision) * rate)
    moved = memory_passes(gpu, counts.kind, compiled=compiled) * counts.elements * _BYTES[precision]
    memory = moved * gpu.device_count / gpu.bandwidth_bytes_per_s
    normalises = counts.trains and counts.kind == "convolutions" and not (compiled or channels_last)
    elements_per_s = _elements_per_s(gpu) if normalises else None
    if elements_per_s is None or counts.elements <= elements_per_s * memory:
        elements_per_s = None
    else:
        memory = counts.elements / elements_per_s
    launches = 0.0 if compiled else counts.calls * _call_seconds(gpu)
    if counts.kind == "diffusion":
        return ModuleTime(products, memory, launches, elements_per_s)
    gaps = counts.calls * _KERNEL_SECONDS
    return ModuleTime(products, memory, max(gaps, launches - products - memory), elements_per_s)


def _elements_per_s(gpu: Gpu) -> float | None:
    """Return the elements per second that an NVIDIA GPU's multiprocessors normalise; None for other vendors."""
    rate, each = gpu.rate("fp32"), _OPERATIONS_PER_CLOCK.get(family_of(gpu))
    return _ELEMENTS_PER_CLOCK * rate.ops_per_s / each / gpu.device_count if rate and each else None


def _call_seconds(gpu: Gpu) -> float:
    return _OLDER_CALL_SECONDS if gpu.architecture in OLDER_HOSTS else _CALL_SECONDS


def product_share(gpu: Gpu, precision: Precision) -> float:
    """Return the share of the dense rate that matrix products reach in `precision`; it is lower in 8 bits."""
    if precision == "fp8" and gpu.rate("fp8"):
        return product_ceiling(gpu, "fp8")
    if precision == "fp32":
        return _SHARE_OF_RATE
    most = _SHARE_OF_RATE if matrix_family(gpu) in _HALVED_RATE else product_ceiling(gpu, "fp16")
    return share_within_power_limit(gpu, most)


def memory_passes(gpu: Gpu, kind: Kind, *, compiled: bool) -> float:
    """Return how often each output element of a product passes through memory in a network of this kind."""
    stacked = (gpu.memory_type or "").startswith("HBM") and family_of(gpu) != "Volta"
    return _PASSES[kind, compiled] * (_STACKED_MEMORY if stacked else 1.0)


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
_GUESSED: Final = "No network of this kind was measured on this GPU family, so the interval is wider."
_OVERLAPPED_SHARE: Final = 2 / 3
"""Share of the training step that can overlap with the gradient exchange: the backward pass.

**Source**: torch DistributedDataParallel sends each bucket as soon as its gradients are ready.
"""
_FITTED: Final = "huggingface/pytorch-image-models@aa4b585: t = a · 2 · MAC ÷ rate + b · bytes ÷ bandwidth"
_NORMALISED: Final = "lambdal/deeplearning-benchmark@aa5addb: ResNet-50 on A100, H100 and B200, channels first"


class TracedStep(NamedTuple):
    """One step of a module on one GPU: operation counts, number of samples, and bytes of exchanged gradients.

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
    """Return the time of a data-parallel step, in which each GPU processes its own samples.

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
    # Pipelines were measured while they make images, not in training.
    known = family_of(gpu) in _MEASURED[step.counts.kind] and (step.task, step.counts.kind) != ("training", "diffusion")
    sources = _SOURCES[step.counts.kind] if known else 0
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
    bandwidth = card_symbol("B", gpu.bandwidth_bytes_per_s or 0.0, "memory bandwidth of the GPU in bytes per second")
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
    """Return the time term of the gradient exchange between GPUs; empty on a single GPU."""
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
                card_symbol("B", links.bus_bytes_per_s(cards), "bandwidth between the GPUs in bytes per second"),
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
    """Return the model FLOPs utilization as a fraction, or None if the GPU's rate is unknown."""
    rate = gpu.rate("fp32" if step.precision == "fp32" else "fp16")
    return step.counts.flops * gpu.device_count / (seconds * rate.ops_per_s) if rate else None
