"""Physical figures of a GPU on which the time of its kernels depends."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu, parse_link_bytes_per_s
from planner.performance.attainable import FEWER_MULTIPROCESSORS, dense_ops_per_s, usable_bandwidth
from planner.performance.links import host_bytes_per_s

_CORES_EACH: Final = {"6.0": 64, "7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64}
"""Shader cores of a multiprocessor by compute capability; 128 on all others."""
_USUAL_CORES_EACH: Final = 128
_AMD_CORES_EACH: Final = 64
_MULTIPROCESSORS: Final = {"9.0": 132, "10.0": 148, "10.3": 148}
"""Multiprocessors by compute capability, for GPUs whose record has no shader cores (NVIDIA Hopper and Blackwell)."""
_USUAL_MULTIPROCESSORS: Final = 100
_CACHE_BYTES: Final = {"7.0": 6e6, "8.0": 40e6, "9.0": 50e6, "10.0": 126e6, "10.3": 126e6}
"""L2 cache by compute capability (NVIDIA whitepapers of Volta, A100, Hopper and Blackwell)."""
_CACHE_BYTES_PER_BUS_BIT: Final = {"7.5": 16e3, "8.6": 16e3, "8.7": 16e3, "8.9": 250e3, "12.0": 250e3}
"""L2 cache for each bit of the memory bus on GPUs with GDDR: 6 MB on 384 bits in Ampere, 96 in Ada (whitepapers)."""
_USUAL_CACHE_BYTES: Final = 18e6
_CLOCKS_HZ: Final = {"9.0": 1.98e9, "10.0": 1.965e9, "10.3": 2.032e9}
"""Boost clocks by compute capability, for GPUs whose record has none: those of H100, B200 and B300."""
_USUAL_CLOCK_HZ: Final = 1.9e9
_PORT_BYTES_PER_CLOCK: Final = 64


class GpuFigures(NamedTuple):
    """Physical figures of a GPU: bandwidth, dense rate of one format, multiprocessors, L2 cache, links and clock.

    `link_bytes_per_s` is the bandwidth to other GPUs in one direction.
    """

    bytes_per_s: float
    ops_per_s: float
    multiprocessors: float
    cache_bytes: float
    link_bytes_per_s: float
    clock_hz: float

    def cycles_seconds(self, thousands: float) -> float:
        """Return the seconds of so many thousand clock cycles."""
        return thousands * 1e3 / self.clock_hz

    @property
    def port_bytes_per_s(self) -> float:
        """Return the bandwidth between one multiprocessor and the L2 cache.

        **Source**: NVIDIA A100 whitepaper (64 bytes a clock for each multiprocessor; the same since Volta).
        """
        return _PORT_BYTES_PER_CLOCK * self.clock_hz


@lru_cache(maxsize=1024)
def gpu_figures(gpu: Gpu, dtype: str = "fp16") -> GpuFigures | None:
    """Return the figures of one device of `gpu` with its rate in `dtype`; None if bandwidth or rate is unknown."""
    bandwidth, rate = usable_bandwidth(gpu), dense_ops_per_s(gpu, dtype)
    if bandwidth is None or rate is None:
        return None
    both_ways = parse_link_bytes_per_s(gpu.interconnect)
    link = both_ways / 2 if both_ways else host_bytes_per_s(gpu)
    return GpuFigures(bandwidth, rate, _multiprocessors(gpu), _cache_bytes(gpu), link, _clock_hz(gpu))


def combined_seconds(overlap: float, first: float, second: float, third: float = 0.0) -> float:
    """Return the time of work that overlaps: the sum of all with `overlap` 0, close to the longest with a large one.

    **Formula**: (t₁^q + t₂^q + t₃^q)^(1/q), q = 1 + overlap.
    """
    power = 1 + overlap
    return float((first**power + second**power + third**power) ** (1 / power))


def _multiprocessors(gpu: Gpu) -> float:
    capability = gpu.compute_capability or ""
    if gpu.shader_cores is None:
        card, part = (gpu.id, 1.0) if gpu.mig_slice is None else (gpu.mig_slice.gpu, gpu.mig_slice.compute_share)
        whole = _MULTIPROCESSORS.get(capability, _USUAL_MULTIPROCESSORS) * FEWER_MULTIPROCESSORS.get(card, 1.0)
        return whole * part
    return gpu.shader_cores / gpu.device_count / cores_per_multiprocessor(gpu)


def cores_per_multiprocessor(gpu: Gpu) -> int:
    """Return the shader cores of a multiprocessor of `gpu`, by its compute capability or as AMD builds them.

    **Source**: CUDA C++ Programming Guide; `_ConvertSMVer2Cores` in Common/helper_cuda.h of NVIDIA's cuda-samples.
    """
    return _AMD_CORES_EACH if gpu.vendor == "AMD" else _CORES_EACH.get(gpu.compute_capability or "", _USUAL_CORES_EACH)


def _clock_hz(gpu: Gpu) -> float:
    return gpu.boost_clock_hz or _CLOCKS_HZ.get(gpu.compute_capability or "", _USUAL_CLOCK_HZ)


def _cache_bytes(gpu: Gpu) -> float:
    capability = gpu.compute_capability or ""
    each = _CACHE_BYTES_PER_BUS_BIT.get(capability)
    if each is not None and gpu.memory_bus_bits is not None:
        return each * gpu.memory_bus_bits
    part = 1.0 if gpu.mig_slice is None else gpu.mig_slice.memory_share
    return _CACHE_BYTES.get(capability, _USUAL_CACHE_BYTES) * part
