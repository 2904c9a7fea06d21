"""Time of a kernel on a GPU, with its range and where it was measured: the curves of the catalog and their formulas."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import inf, log2
from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.performance.kernels.attention import (
    AttentionShape,
    DecodeCurve,
    LatentDecodeCurve,
    LatentPrefillCurve,
    PrefillCurve,
    attention_decode_seconds,
    attention_prefill_seconds,
    latent_decode_seconds,
    latent_prefill_seconds,
)
from planner.performance.kernels.curves import Kernel, KernelTime, find_curve
from planner.performance.kernels.gpu_figures import GpuFigures, combined_seconds, gpu_figures
from planner.performance.kernels.products import (
    ExpertCurve,
    ExpertShape,
    ProductCurve,
    ProductShape,
    experts_seconds,
    matmul_seconds,
)

Collective = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
_PASSES: Final[dict[Collective, float]] = {
    "all-reduce": 2.0,
    "all-gather": 1.0,
    "reduce-scatter": 1.0,
    "all-to-all": 1.0,
}


class CollectiveShape(NamedTuple):
    """Sizes of a collective: the number of GPUs, and the bytes that each sends."""

    cards: float
    sent_bytes: float


class CollectiveCurve(NamedTuple):
    """Fitted parameters of a collective.

    `launch` µs on 2 GPUs and `hops` how much longer it is on twice as many; `link` share of a GPU's link bandwidth on
    2 GPUs and `crowd` how much of it is left on twice as many; `overlap` of the terms; `protocol` µs for √(1 MB), as
    it stands for messages that are too small for the full bandwidth and too large for the latency.
    """

    launch: float
    hops: float
    link: float
    crowd: float
    overlap: float
    protocol: float


def collective_shape(operation: Collective, cards: int, size_bytes: float) -> CollectiveShape:
    """Return the shape of `operation` on `size_bytes` over `cards`.

    **Formula**: each GPU sends (g − 1) / g of the bytes, an all-reduce twice as much.

    **Source**: NVIDIA/nccl-tests doc/PERFORMANCE.md.
    """
    return CollectiveShape(cards, _PASSES[operation] * (cards - 1) / cards * size_bytes)


def collective_seconds(curve: CollectiveCurve, shape: CollectiveShape, figures: GpuFigures) -> float:
    """Return the seconds of a collective within one machine.

    **Formula**: (t_latency^q + (bytes ÷ bandwidth)^q + (protocol · √bytes)^q)^(1/q), latency and bandwidth each with a
    factor for every doubling of the GPUs.

    **Source**: parameters fitted to ai-dynamo/aiconfigurator@095f58a (NCCL, oneCCL and the engines' own kernels).

    **Assumes** that no other traffic shares the links.
    """
    doublings = log2(shape.cards) - 1
    latency = curve.launch * 1e-6 * curve.hops**doublings
    sent = shape.sent_bytes / (figures.link_bytes_per_s * curve.link * curve.crowd**doublings)
    protocol = curve.protocol * 1e-6 * (shape.sent_bytes / 1e6) ** 0.5
    return combined_seconds(curve.overlap, latency, sent, protocol)


class KernelFormula(NamedTuple):
    """The formula of a kernel: a function of its parameters, its shape and a GPU, and the class of the parameters."""

    seconds: Callable[..., float]
    curve: Callable[..., tuple[float, ...]]


_COLLECTIVE: Final = KernelFormula(collective_seconds, CollectiveCurve)
FORMULAS: Final[Mapping[str, KernelFormula]] = {
    "product": KernelFormula(matmul_seconds, ProductCurve),
    "attention-read": KernelFormula(attention_prefill_seconds, PrefillCurve),
    "attention-write": KernelFormula(attention_decode_seconds, DecodeCurve),
    "attention-write-single": KernelFormula(attention_decode_seconds, DecodeCurve),
    "latent-read": KernelFormula(latent_prefill_seconds, LatentPrefillCurve),
    "latent-write": KernelFormula(latent_decode_seconds, LatentDecodeCurve),
    "experts": KernelFormula(experts_seconds, ExpertCurve),
    "all-reduce": _COLLECTIVE,
    "all-gather": _COLLECTIVE,
    "reduce-scatter": _COLLECTIVE,
    "all-to-all": _COLLECTIVE,
}
"""The formula of each kernel; the catalog has the parameters in the order of the class."""


class ElementFormat(NamedTuple):
    """Bytes of an element of weights and of inputs, with their scales, and the GPU's rate for their products."""

    weight_bytes: float
    input_bytes: float
    rate: str


FORMATS: Final[Mapping[str, ElementFormat]] = {
    "bf16": ElementFormat(2.0, 2.0, "fp16"),
    "fp8": ElementFormat(1.0, 1.0, "fp8"),
    "fp8-block": ElementFormat(1.0, 1.0, "fp8"),
    "int8": ElementFormat(1.0, 1.0, "fp8"),
    "int8-weights": ElementFormat(1.0, 2.0, "fp16"),
    "nvfp4": ElementFormat(0.5625, 0.5625, "fp4"),
    "int4-weights": ElementFormat(0.5, 2.0, "fp16"),
    "mxfp4-weights": ElementFormat(0.53125, 2.0, "fp16"),
    "mxfp4-fp8": ElementFormat(0.53125, 1.0, "fp8"),
}
"""Formats of kernels: `-weights` formats are unpacked to 16 bits in the kernel."""


def element_format(number_format: str) -> ElementFormat:
    """Return the format of the products: of two formats, as in bf16/fp8, the first; 16 bits where none is named."""
    return FORMATS.get(number_format.partition("/")[0], FORMATS["bf16"])


def _time(
    gpu: Gpu,
    kernel: Kernel,
    engine: str,
    number_format: str,
    shape: tuple[float, ...],
    head_size: int = 0,
    longest_launch_seconds: float = inf,
) -> KernelTime | None:
    """Return the time of `kernel` on `gpu`; None if the format was not measured, or figures are unknown."""
    found = find_curve(gpu, kernel, engine, number_format, head_size)
    figures = gpu_figures(gpu, element_format(number_format).rate)
    if found is None or figures is None:
        return None
    formula, (launch, *others) = FORMULAS[kernel], found.curve.parameters
    longest = longest_launch_seconds / figures.cycles_seconds(1)
    curve = formula.curve(min(launch, longest), *others)
    return KernelTime.within(formula.seconds(curve, shape, figures), found)


@lru_cache(maxsize=16_384)
def matmul_time(
    gpu: Gpu, engine: str, number_format: str, rows: float, columns: float, inner: float, *, fused: bool = False
) -> KernelTime | None:
    """Return the time of (rows × inner) times (inner × columns) on `gpu`; None if the format was never measured.

    If `fused`, the kernel before has quantised the inputs and a CUDA graph starts the product, so that its launch takes
    no longer than that of a product in 16 bits; the tables launch narrower formats together with their quantisation.
    """
    kind = element_format(number_format)
    shape = ProductShape(rows, columns, inner, kind.weight_bytes, kind.input_bytes)
    longest = launch_seconds(gpu, engine) if fused else inf
    return _time(gpu, "product", engine, number_format, shape, longest_launch_seconds=longest)


def launch_seconds(gpu: Gpu, engine: str) -> float:
    """Return the seconds between two kernels of a CUDA graph on `gpu`: the launch of a product in 16 bits."""
    found, figures = find_curve(gpu, "product", engine, "bf16"), gpu_figures(gpu)
    return figures.cycles_seconds(found.curve.parameters[0]) if found and figures else 0.0


def attention_prefill_time(gpu: Gpu, engine: str, number_format: str, shape: AttentionShape) -> KernelTime | None:
    """Return the time of attention over new tokens; `number_format` is that of products and cache: bf16/fp8."""
    return _time(gpu, "attention-read", engine, number_format, shape, int(shape.head_size))


def attention_decode_time(gpu: Gpu, engine: str, cache_format: str, shape: AttentionShape) -> KernelTime | None:
    """Return the time of the attention of one new token of each sequence over its cache."""
    kernel: Kernel = "attention-write-single" if shape.heads == shape.key_heads else "attention-write"
    return _time(gpu, kernel, engine, cache_format, shape, int(shape.head_size))


def experts_time(gpu: Gpu, engine: str, number_format: str, shape: ExpertShape) -> KernelTime | None:
    """Return the time of a layer's routed experts."""
    return _time(gpu, "experts", engine, number_format, shape)


def collective_time(
    gpu: Gpu, engine: str, launched: str, operation: Collective, cards: int, size_bytes: float
) -> KernelTime | None:
    """Return the time of `operation` in a machine; `launched` is graph, eager, or nccl for the library's."""
    return _time(gpu, operation, engine, launched, collective_shape(operation, cards, size_bytes))
