"""Inference speed of llama.cpp."""

from collections.abc import Mapping
from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import Family, family_of
from planner.performance.inference.work import PassWork
from planner.performance.reach import (
    MeasuredShare,
    MemoryClass,
    Width,
    dense_ops_per_s,
    memory_class,
    sustained_share,
)
from planner.performance.software.engine import Engine

_XD: Final = "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e"
_READS: Final[dict[tuple[MemoryClass, Width], MeasuredShare]] = {
    ("GDDR", "16"): MeasuredShare(0.92, f"{_XD}, 4 Ada cards"),
    ("GDDR", "8"): MeasuredShare(0.90, f"{_XD}, between 16 and 4 bits"),
    ("GDDR", "4"): MeasuredShare(0.88, f"{_XD}, 7 Ampere and Ada cards"),
    ("GDDR", "float4"): MeasuredShare(0.88, f"{_XD}, as 4 bits"),
    ("HBM", "16"): MeasuredShare(0.48, f"{_XD}, A100"),
    ("HBM", "8"): MeasuredShare(0.52, f"{_XD}, between 16 and 4 bits"),
    ("HBM", "4"): MeasuredShare(0.57, f"{_XD}, A100"),
    ("HBM", "float4"): MeasuredShare(0.57, f"{_XD}, as 4 bits"),
    ("unified", "16"): MeasuredShare(0.80, f"{_XD}, M1 Max and M3 Max"),
    ("unified", "8"): MeasuredShare(0.70, f"{_XD}, between 16 and 4 bits"),
    ("unified", "4"): MeasuredShare(0.60, f"{_XD}, M1, M1 Max and M3 Max"),
    ("unified", "float4"): MeasuredShare(0.60, f"{_XD}, as 4 bits"),
}
_HOPPER: Final = 0.38 * 0.63
"""Share of Hopper's dense rate: that of the A100, whose instructions (mma.sync) reach 63 % of it; wgmma is not used.

**Source**: Luo et al. 2024, arXiv 2402.13499 (mma on H100 PCIe); llama.cpp ggml-cuda/mma.cuh.
"""
_CEILING: Final[dict[Family, float]] = {
    "Apple": 0.66,
    "A100": 0.38,
    "Hopper SXM": _HOPPER,
    "Hopper PCIe": _HOPPER,
    "Radeon": 0.30,
    "Instinct": 0.30,
}
_USUAL_CEILING: Final = 0.45
_OPS_PER_JOULE: Final[dict[Family, float]] = {"Ada": 0.36e12}
"""16-bit operations per joule, which limit the clock of boards with much arithmetic and little power.

**Source**: XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e: 102 TFLOP/s in 300 W, 94 in 250 W and 48 in 130 W.
"""
_CEILING_SOURCE: Final = f"{_XD}, prompts of 512 tokens, unpacking of weights apart"
_UNFUSED_CACHE: Final[dict[MemoryClass, MeasuredShare]] = {
    "GDDR": MeasuredShare(0.37, f"{_XD}, without flash attention"),
    "HBM": MeasuredShare(0.37, f"{_XD}, without flash attention"),
    "unified": MeasuredShare(0.12, f"{_XD}, M1 Max and M3 Max without flash attention"),
}
_FAMILIES: Final[tuple[Family, ...]] = ("Ada", "Ampere GDDR", "A100", "Apple")


_CHUNKS_IN_FLIGHT: Final = 4
"""Copies of a chunk's inputs and outputs between cards, so that as many chunks can be under way.

**Source**: llama.cpp ggml-backend, GGML_SCHED_MAX_COPIES.
"""
_QUEUED_LAUNCHES: Final = 1_024
"""Kernels that CUDA queues for a card; the thread that launches another one waits, and cannot feed the next card."""
_LAUNCHES_PER_LAYER: Final = 45
_LAUNCHES_TO_UNPACK: Final = 7
"""Kernels of a layer over a chunk: 14 element-wise ones and copies, 8 of the two products of attention, and 21 of seven
products with the casts of their input and output, two of them in parts; 7 more to unpack quantised weights.

**Source**: llama.cpp build_llama and ggml_cuda_op_mul_mat_cublas (May 2024). On six kinds of cards of
XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, 70 billion parameters in 4 bits (52 · 40 and 52 · 20 launches a
stage) are no faster on two and four cards than on one, but with 16 bits (45 · 20), on eight cards or with 8 billion
parameters they are.
"""


class _LlamaCpp(Engine):
    def chunks_at_once(self, work: PassWork, stages: int, chunks: int) -> int:
        """Return how many chunks overlap on the stages: one if launching a stage's chunk fills the card's queue."""
        per_layer = _LAUNCHES_PER_LAYER + (_LAUNCHES_TO_UNPACK if work.dequantised_bytes else 0)
        return 1 if per_layer * work.layers / stages > _QUEUED_LAUNCHES else min(chunks, _CHUNKS_IN_FLIGHT)

    def read_shares(self) -> Mapping[tuple[MemoryClass, Width], MeasuredShare]:
        """Return the bandwidth shares of llama.cpp's kernels, which multiply while they unpack weights."""
        return _READS

    def cache_share(self, gpu: Gpu, *, unfused: bool) -> MeasuredShare:
        """Return the bandwidth share of reading the KV cache, with or without llama.cpp's flash attention."""
        return _UNFUSED_CACHE[memory_class(gpu)] if unfused else super().cache_share(gpu, unfused=unfused)

    def rate(self, gpu: Gpu, dtype: str) -> float | None:
        """Return the dense rate with 16-bit accumulation, which GeForce cards do not halve: half the int8 rate."""
        plain, narrow = dense_ops_per_s(gpu, dtype), gpu.rate("int8")
        if plain is None or narrow is None or dtype != "fp16" or gpu.vendor != "NVIDIA":
            return plain
        return max(plain, narrow.ops_per_s / 2 / gpu.device_count)

    def product_share(self, gpu: Gpu, dtype: str) -> MeasuredShare:
        """Return the share of the dense rate that llama.cpp's products reach, limited by the board power."""
        family = family_of(gpu)
        share = sustained_share(gpu, _CEILING.get(family, _USUAL_CEILING))
        rate, each_watt = self.rate(gpu, dtype), _OPS_PER_JOULE.get(family)
        if rate is not None and each_watt is not None and gpu.drawn_watts is not None:
            share = min(share, each_watt * gpu.drawn_watts / (rate * gpu.device_count))
        return MeasuredShare(share, _CEILING_SOURCE)


ENGINE: Final = _LlamaCpp(
    name="llama.cpp",
    layer_seconds=70e-6,
    source=f"{_XD}, time left beside the reading of weights on 6 GDDR cards",
    chunk=512,
    compute_share=1.0,
    unpacks=True,
    stacked_layer_seconds=100e-6,
    measured_decoding=_FAMILIES,
    measured_prompts=_FAMILIES,
)
