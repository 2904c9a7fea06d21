"""Speed of a GPU in a serving engine: bytes and operations per second, by kind of memory, GPU family and format."""

from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.performance.attainable import (
    FEWER_MULTIPROCESSORS,
    MeasuredShare,
    MemoryClass,
    memory_class,
    usable_bandwidth,
)
from planner.performance.efficiency import Family, family_of
from planner.performance.kernels.gpu_figures import GpuFigures, gpu_figures
from planner.performance.kernels.times import launch_seconds
from planner.performance.software.engine import Engine

_GRACE_SLOWDOWN: Final = 1.6
"""Time in which a Grace CPU schedules a sequence, relative to the x86 host CPUs of B200.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview: Qwen3-30B-A3B, which waits for its host, is 1.3 times as fast on
B200 as on GB200, and Llama 3.3 70B, which does not, 0.9 times.
"""
_ATTENTION: Final[dict[Family, float]] = {"Hopper SXM": 0.60, "Hopper PCIe": 0.55, "A100": 0.60}
_DEFAULT_ATTENTION_SHARE: Final = 0.45
"""Shares of the 16-bit rate that attention kernels reach: FlashAttention-3 (arXiv 2407.08608) up to 0.75 on H100,
FlashAttention-2 up to 0.73 on A100."""
_CUT_DOWN_ATTENTION_SHARE: Final = 0.73
"""Share that FlashAttention-3 of serving engines reaches on the H20, whose multiprocessors multiply at a quarter of the
rate, but compute as many exponentials: 107.8 of 148 TFLOP/s, against 65.9 of FlashAttention-2 (causal, heads of 128,
2,048 tokens; Dao-AILab/flash-attention#1310, November 2024)."""
_POINTWISE_SHARES: Final[dict[MemoryClass, float]] = {"GDDR": 0.88, "HBM": 0.80, "unified": 0.75}
"""Shares of the bandwidth that element-wise kernels reach: those of reading weights of 16 bits."""
_FUSED_DELTA_NETS: Final[tuple[Family, ...]] = ("Hopper SXM", "Hopper PCIe", "Blackwell data center")
"""Families for which FlashInfer has a kernel of delta nets over prompts (flashinfer-ai/flashinfer#3001)."""
_SCORE_BYTES: Final[dict[MemoryClass, float]] = {"GDDR": 28.0, "HBM": 28.0, "unified": 75.0}
"""Bytes moved per attention score if attention is not fused: a product writes 2, a cast to fp32 reads 2 and writes 4,
the softmax reads score and mask and writes 4 each, a cast to 16 bits reads 4 and writes 2, and a product reads 2.

**Source**: llama.cpp ggml_cuda_op_mul_mat_cublas and softmax.cu; unified memory XiongjieDai/GPU-Benchmarks-on-LLM-
Inference@aa72e0e, prompts of 512 to 8,192 tokens, 65 and 93 on M3 Max and M1 Max.
"""


class GpuSpeed(NamedTuple):
    """Speed of one GPU in a serving engine, with weights in one format.

    `bytes_per_s` is the usable bandwidth, of which `read`, `expert_read`, `cache` and `pointwise` are shares;
    `ops_per_s` is the dense rate of the products, of which `products` is the share, `attention_ops_per_s` that of
    attention. `expert_layer_seconds` are added to `layer_seconds` in layers with routed experts.
    `cache_bytes` is the size of the L2 cache, and `scalar_bytes_per_s` the most that element-wise kernels move.
    `kernel_gaps_seconds` are the gaps between the kernels of a layer if they are launched one by one.
    `hides_launches` means that launches count only if they take longer than the GPU's work, and `fuses_delta_nets`
    that one kernel takes a delta net through a prompt.
    """

    engine: Engine
    bytes_per_s: float
    read: MeasuredShare
    expert_read: MeasuredShare
    cache: MeasuredShare
    pointwise: float
    scalar_bytes_per_s: float
    cache_bytes: float
    ops_per_s: float
    products: MeasuredShare
    attention_ops_per_s: float
    unfused: bool
    score_bytes: float
    dtype: str
    layer_seconds: float
    expert_layer_seconds: float
    kernel_gaps_seconds: float
    sequence_seconds: float
    hides_launches: bool
    fuses_delta_nets: bool


@lru_cache(maxsize=512)
def gpu_speed(gpu: Gpu, engine: Engine, weights: str, compute: str = "bf16", unfused: bool = False) -> GpuSpeed | None:
    """Return the speed of `gpu` in a serving engine, or None if the GPU's bandwidth or arithmetic rate is unknown.

    `unfused` attention writes its scores to memory.
    """
    bandwidth, dtype = usable_bandwidth(gpu), engine.product_format(gpu, weights, compute)
    rate = engine.rate(gpu, dtype)
    if bandwidth is None or rate is None:
        return None
    figures = gpu_figures(gpu)
    hides_launches = engine.eager and not weights.startswith(engine.blocking_formats)
    plain = engine.rate(gpu, "fp32" if compute == "fp32" else "fp16") or rate
    return GpuSpeed(
        engine=engine,
        bytes_per_s=bandwidth,
        read=engine.read_share(gpu, weights),
        expert_read=engine.expert_read_share(gpu, weights),
        cache=engine.cache_share(gpu, unfused=unfused),
        pointwise=_POINTWISE_SHARES[memory_class(gpu)] / engine.pointwise_share,
        cache_bytes=figures.cache_bytes if figures else 0.0,
        scalar_bytes_per_s=scalar_bytes_per_s(gpu, engine, figures),
        ops_per_s=rate,
        products=engine.product_share(gpu, dtype),
        attention_ops_per_s=plain * _attention_share(gpu, engine),
        unfused=unfused,
        score_bytes=_SCORE_BYTES[memory_class(gpu)],
        dtype=dtype,
        kernel_gaps_seconds=engine.eager_kernels * launch_seconds(gpu, engine.name) if hides_launches else 0.0,
        layer_seconds=engine.seconds_per_layer(gpu, weights),
        expert_layer_seconds=engine.expert_seconds(gpu, weights),
        sequence_seconds=engine.sequence_seconds * (_GRACE_SLOWDOWN if "Grace" in (gpu.interconnect or "") else 1.0),
        hides_launches=hides_launches,
        fuses_delta_nets=engine.fuses_delta_nets and family_of(gpu) in _FUSED_DELTA_NETS,
    )


def _attention_share(gpu: Gpu, engine: Engine) -> float:
    """Return the share of the 16-bit rate that the attention kernels of `engine` reach over a prompt."""
    if gpu.id in FEWER_MULTIPROCESSORS and engine.batches_continuously:
        return _CUT_DOWN_ATTENTION_SHARE
    return _ATTENTION.get(family_of(gpu), _DEFAULT_ATTENTION_SHARE)


def scalar_bytes_per_s(gpu: Gpu, engine: Engine, figures: GpuFigures | None) -> float:
    """Return the most bytes per second that kernels with loads of single numbers move, infinite if it is unknown."""
    if figures is None or gpu.boost_clock_hz is None or engine.scalar_bytes_per_clock is None:
        return inf
    return engine.scalar_bytes_per_clock * figures.multiprocessors * gpu.boost_clock_hz
