"""Achievable shares of a GPU's memory bandwidth and dense rates, by kind of memory, family and number format."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from planner.dtypes import AS_STORED, SCHEMES
from planner.hardware.gpu import Gpu
from planner.performance.efficiency import Family, MatrixFamily, family_of, matrix_family

MemoryClass = Literal["GDDR", "HBM", "unified"]
Width = Literal["16", "8", "4", "float4"]
"""Class of kernels by the width of the weights that they read: 16, 8 or 4 bits, or 4-bit floats."""


class MeasuredShare(NamedTuple):
    """A measured share of a GPU's memory bandwidth or dense rate, with its source."""

    fraction: float
    source: str


OLDER_HOSTS: Final = ("Pascal", "Volta", "Turing", "Ampere", "CDNA", "CDNA2")
"""Architectures of GPUs in older hosts; the CPUs of these hosts launch fewer kernels per second."""
FEWER_MULTIPROCESSORS: Final = {"h20-96gb": 78 / 132, "h20-141gb": 78 / 132}
"""Fraction of multiprocessors on cut-down GPUs; each multiprocessor has a limited number of reads in flight.

**Source**: the H20 has 78 of the H100's 132 multiprocessors, and reads no faster than that share of the H100's
bandwidth (QwenLM/Qwen3@7a2f61f).
"""
_UNCUT_CARD_BANDWIDTH: Final = 3.35e12
"""Memory bandwidth of the H100 in bytes per second; the H20 is its cut-down version."""
_CUT_DOWN_SHARES: Final[Mapping[str, MeasuredShare]] = {
    dtype: MeasuredShare(share, "products of 8,192 rows: ai-dynamo/aiconfigurator@095f58a, SGLang on Hopper")
    for dtype, share in (("fp16", 0.80), ("fp8", 0.70))
}
"""Shares of the dense rate that products reach on a cut-down GPU by number format.

They are those of single products on H100 and H200, which whole prompts reach there only in part: with 500 W for
148 TFLOP/s, the H20 does not lower its clock, and its multiprocessors multiply at a quarter of the rate of the H100's.
"""

_CEILINGS: Final[dict[tuple[Family, str], float]] = {
    ("Volta", "16"): 0.70,
    ("Turing", "16"): 0.60,
    ("A100", "16"): 0.85,
    ("Ampere GDDR", "16"): 0.75,
    ("Ada", "16"): 0.66,
    ("Ada", "8"): 0.46,
    ("Hopper SXM", "16"): 0.79,
    ("Hopper SXM", "8"): 0.65,
    ("Hopper PCIe", "16"): 0.65,
    ("Hopper PCIe", "8"): 0.55,
    ("Blackwell data center", "16"): 0.76,
    ("Blackwell data center", "8"): 0.45,
    ("Blackwell data center", "4"): 0.50,
    ("Blackwell GDDR", "16"): 0.83,
    ("Blackwell GDDR", "8"): 0.76,
    ("Blackwell GDDR", "4"): 0.80,
    ("Instinct", "16"): 0.55,
    ("Instinct", "8"): 0.65,
    ("Intel", "16"): 0.46,
    ("Apple", "16"): 0.75,
}
_HALVED_RATE_RATIO: Final = 3.0
"""Ratio of int8 to 16-bit rate above which a GPU halves its 16-bit rate: the ratio is 2 on full-rate GPUs, 4 on
halved ones."""
_HALVED_CEILING: Final = 0.97
"""Share of a halved 16-bit rate that large matrix products reach, which is more than the share of a full rate: products
of 4,096 to 10,240 rows in bf16 0.92 to 0.97 on RTX 4090, 0.87 to 1.15 on RTX 5090, whose clocks exceed the stated ones
(zzc0721/torch-performance-test-data issues #78, #15, #96, #124)."""
_USUAL_CEILING: Final = 0.55


def usable_bandwidth(gpu: Gpu) -> float | None:
    """Return the memory bandwidth that one device can use, in bytes per second: less than stated on cut-down GPUs."""
    if gpu.bandwidth_bytes_per_s is None:
        return None
    whole = gpu.bandwidth_bytes_per_s / gpu.device_count
    share = FEWER_MULTIPROCESSORS.get(gpu.id)
    return whole if share is None else min(whole, share * _UNCUT_CARD_BANDWIDTH)


def memory_class(gpu: Gpu) -> MemoryClass:
    """Return the GPU's kind of memory, which determines the achievable share of its bandwidth.

    The shares of unified memory are those of Apple's kernels. Other processors with unified memory run the kernels of
    the GPUs of their vendors, whose memory has as few stacks as theirs.
    """
    if gpu.unified_memory and gpu.vendor == "Apple":
        return "unified"
    return "HBM" if (gpu.memory_type or "").startswith("HBM") else "GDDR"


def kernel_width(weights: str) -> Width:
    """Return the width class (16, 8 or 4 bits, or 4-bit floats) of kernels that read weights stored as `weights`."""
    if weights == AS_STORED or weights not in SCHEMES:
        return "4"
    scheme = SCHEMES[weights]
    if scheme.family == "float4":
        return "float4"
    bits = scheme.bits_per_weight
    return "16" if bits > 10 else "8" if bits > 7 else "4"


_FALLBACKS: Final[Mapping[str, tuple[str, ...]]] = {"fp32": (), "tf32": (), "fp16": ("bf16",)}
"""Number formats whose dense rate applies if a GPU has none for the key; by default 16 bits. The last one is fp32."""


def dense_ops_per_s(gpu: Gpu, dtype: str) -> float | None:
    """Return the dense rate of one device at which software multiplies `dtype`, in operations per second, or None.

    Without a rate in `dtype` it is that of a fallback format; a rate below that of fp32 is not used.

    **Source**: llama.cpp ggml-cuda/common.cuh `fast_fp16_available` (not on compute capability 6.1): GP102, GP104 and
    GP106 multiply fp16 at 1/64 of the rate of fp32 (CUDA C++ Programming Guide, throughput of arithmetic instructions),
    so that libraries read 16 bits and multiply in fp32.
    """
    order = (dtype, *_FALLBACKS.get(dtype, ("fp16", "bf16")))
    found = [rate.ops_per_s for rate in map(gpu.rate, order) if rate is not None][:1]
    wide = gpu.rate("fp32")
    fastest = max([*found, wide.ops_per_s if wide else 0.0])
    return fastest / gpu.device_count if fastest else None


def cut_down_share(gpu: Gpu, dtype: str) -> MeasuredShare | None:
    """Return the share of the dense rate in `dtype` that products reach on a cut-down GPU, or None on others."""
    return _CUT_DOWN_SHARES.get(dtype) if gpu.id in FEWER_MULTIPROCESSORS else None


def product_ceiling(gpu: Gpu, dtype: str) -> float:
    """Return the share of the dense rate that large matrix products in `dtype` reach on `gpu`."""
    width = {"fp8": "8", "fp4": "4"}.get(dtype, "16")
    if width == "16" and halves_16_bit_rate(gpu):
        return limited_share(gpu, _HALVED_CEILING)
    return sustained_share(gpu, _CEILINGS.get((family_of(gpu), width), _USUAL_CEILING))


def halves_16_bit_rate(gpu: Gpu) -> bool:
    """Return whether `gpu` runs at half its 16-bit rate when accumulating in fp32, as GeForce GPUs do."""
    wide, narrow = gpu.rate("fp16"), gpu.rate("int8")
    return wide is not None and narrow is not None and narrow.ops_per_s > _HALVED_RATE_RATIO * wide.ops_per_s


_SUSTAINED_SHARES: Final[Mapping[str, float]] = {"tesla-t4": 24 / 65}
"""Share of the 16-bit dense rate that large matrix products sustain within the power limit, by catalog id.

**Source**: forums.developer.nvidia.com/t/about-gpu-peak-performance/264462: a T4 multiplies matrices of 4,096 rows at
24 TFLOP/s, its clock lowered to stay within 70 W.
"""


_WATTS_PER_TERAOP: Final[Mapping[MatrixFamily, float]] = {
    "A100": 400 / 312,
    "Ampere GDDR": 350 / 142.4,
    "Ampere full rate": 230 / 112,
    "Ada": 450 / 331,
    "Ada full rate": 350 / 363,
    "Hopper SXM": 700 / 990,
    "Hopper PCIe": 350 / 757,
    "Blackwell GDDR": 575 / 420,
    "Blackwell full rate": 600 / 468,
}
"""Board power per dense 16-bit rate of the GPU on which most of a family's shares were measured, in watts per 10¹²
ops: A100 SXM, RTX 3090 and A5000, RTX 4090 and L40S, H100 SXM and PCIe, RTX 5090 and PRO 6000."""
_CLOCK_EXPONENT: Final = 1 / 3


def limited_share(gpu: Gpu, share: float) -> float:
    """Return `share` of a dense rate, reduced if the power limit of `gpu` is below its board power.

    **Formula**: share · (power limit ÷ board power)^⅓.
    """
    if gpu.power_limit_watts is None or gpu.board_power_watts is None:
        return share
    return float(share * (gpu.power_limit_watts / gpu.board_power_watts) ** _CLOCK_EXPONENT)


def sustained_share(gpu: Gpu, share: float) -> float:
    """Return `share` of the 16-bit rate, or what `gpu` was measured to sustain if that is less."""
    return limited_share(gpu, min(share, _SUSTAINED_SHARES.get(gpu.id, share)))


def share_within_power_limit(gpu: Gpu, share: float) -> float:
    """Return `share` of the 16-bit rate, reduced to what `gpu` sustains with its board power.

    **Formula**: share · (own watts per rate ÷ those of the measured GPU)^⅓, if it is less.

    **Source**: switching takes f · V², with V in proportion to f, so that the sustained clock is the cube root of the
    power; large products reach 0.81 of the rate on an A100 with 300 W and 0.87 with 400 W (stas00/ml-engineering
    744d01e), which is the power 0.24.
    """
    usual, rate = _WATTS_PER_TERAOP.get(matrix_family(gpu)), gpu.rate("int8")
    if usual is not None and rate is not None and gpu.board_power_watts is not None:
        own = gpu.board_power_watts / (rate.ops_per_s / 2e12)
        share *= min(1.0, own / usual) ** _CLOCK_EXPONENT
    return sustained_share(gpu, share)
