"""Time of a network from counts of operations, output elements of matrix products, and operator launches.

These counts exist for convolutional networks and any other traced module.
"""

from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import Family, MatrixFamily, family_of, matrix_family
from planner.performance.reach import OLDER_HOSTS, dense_ops_per_s, product_ceiling, share_within_power_limit

Precision = Literal["fp32", "tf32", "fp16", "fp8"]
Kind = Literal["convolutions", "attention", "diffusion"]
"""Kind of network, which determines how often its data pass through memory."""

_SHARE_OF_RATE: Final = 0.95
"""Share of the dense rate that matrix products reach, without memory passes, on cards whose rate is halved, which keep
their highest clock; others reach no more than large products do alone (`reach.product_ceiling`).

**Source**: a of 1.0 to 1.1 in t = a · 2 · MAC ÷ rate + b · bytes ÷ bandwidth, fitted on some 1,440 networks of
huggingface/pytorch-image-models@aa4b585 for each of four cards.
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
"""Factor on the passes over memory for cards with stacked memory (HBM), which reach a smaller share of their bandwidth.

**Source**: lambdal/deeplearning-benchmark@aa5addb and NVIDIA/DeepLearningExamples@729963d, ResNet-50 on A100 and H100.
"""
_CALL_SECONDS: Final = 10e-6
"""Seconds in which PyTorch launches one operator.

**Source**: 0.61 ms for the 60 operators of a layer, QwenLM/Qwen3@7a2f61f with Transformers.
"""
_OLDER_CALL_SECONDS: Final = 14e-6
"""Seconds in which PyTorch launches one operator in the hosts of older cards: 0.84 ms a layer, Qwen2.5 benchmark on
A100."""
_KERNEL_SECONDS: Final = 2.4e-6
"""Seconds in which a kernel starts and ends while the card does no work, also in a CUDA graph.

**Source**: the `launch` of products on all cards, 1.7 to 2.9 µs (catalog/kernels, fitted to ai-dynamo/aiconfigurator
095f58a).
"""
_ELEMENTS_PER_CLOCK: Final = 0.37
"""Elements that one multiprocessor normalises per clock in training with batch norm, channels first.

**Source**: lambdal/deeplearning-benchmark@aa5addb, ResNet-50 with data stored on the card: 0.35 to 0.40 on A100,
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
    """Return the time of a network from its counts, or None if the card's rate or bandwidth is unknown.

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
    """Return the elements per second that an NVIDIA card's multiprocessors normalise; None for other vendors."""
    rate, each = gpu.rate("fp32"), _OPERATIONS_PER_CLOCK.get(family_of(gpu))
    return _ELEMENTS_PER_CLOCK * rate.ops_per_s / each / gpu.device_count if rate and each else None


def _call_seconds(gpu: Gpu) -> float:
    """Return the seconds in which the host of `gpu` launches one operator."""
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
