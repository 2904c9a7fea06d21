"""Figures of several accelerators together, and what those of a system are for its power."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.system import System, together
from planner.present import format as fmt
from planner.units import GIB

_WATTS_PER_KW: Final = 1000.0
_TERA: Final = 1e12


@dataclass(frozen=True, slots=True)
class Total:
    """A figure of equal accelerators together, in a system or side by side: their number × that of one, in base units.

    `unit`, in which every view tells it, has `per_unit` of them. `one` tells that of one accelerator, and of all of
    them where there is no unit; `field` says where it comes from.
    """

    key: str
    title: str
    unit: str
    per_unit: float
    each: Callable[[Gpu], float | None]
    one: Callable[[float], str]
    field: str

    def value(self, gpu: Gpu | None, count: int | None) -> float | None:
        """Return the total of `count` of `gpu`, or None where the figure of one or their number is not known."""
        return together(count, None if gpu is None else self.each(gpu))

    def text(self, value: float) -> str:
        """Return a total with its unit."""
        return fmt.quantity(value / self.per_unit, self.unit) if self.unit else self.one(value)

    def formula(self, gpu: Gpu | None, count: int | None) -> str:
        """Return the formula in numbers, or which figure is not known."""
        if gpu is None or count is None:
            return "the catalog does not say which accelerators this has"
        each = self.each(gpu)
        if each is None:
            return f"the catalog has no such figure of one {gpu.name}"
        return f"{fmt.count_of(count, self.one(each))} ({gpu.name})"

    def source(self, gpu: Gpu | None) -> Provenance | None:
        """Return where the figure of one accelerator comes from."""
        return None if gpu is None else gpu.provenance_of(self.field)


def _rate(dtype: str) -> Total:
    def each(gpu: Gpu) -> float | None:
        rate = gpu.rate(dtype)
        return None if rate is None else rate.ops_per_s

    return Total(dtype, f"{dtype.upper()} dense", "PFLOPS", 1e15, each, fmt.rate, f"rate.{dtype}")


MEMORY: Final = Total(
    "memory",
    "Memory",
    "GiB",
    GIB,
    lambda gpu: gpu.memory_bytes,
    lambda value: fmt.quantity(value / GIB, "GiB"),
    "memory_bytes",
)
BANDWIDTH: Final = Total(
    "bandwidth",
    "Bandwidth",
    "TB/s",
    1e12,
    lambda gpu: gpu.bandwidth_bytes_per_s,
    fmt.bandwidth,
    "bandwidth_bytes_per_s",
)
BF16: Final = _rate("bf16")
FP16: Final = _rate("fp16")
"""What machines older than BF16 are sold by."""
CARDS_POWER: Final = Total("total_power", "Power", "W", 1, lambda gpu: gpu.drawn_watts, fmt.power, "board_power_watts")
PAID: Final = Total("total_price", "Price", "", 1, lambda gpu: gpu.purchase_price_usd, fmt.money, "purchase_price_usd")
AT_LAUNCH: Final = Total("total_price", "Price", "", 1, lambda gpu: gpu.launch_price_usd, fmt.money, "launch_price_usd")
TOTALS: Final = (BANDWIDTH, BF16, FP16)
"""What the catalog does not say of a system itself, so that it is reckoned from one accelerator."""


@dataclass(frozen=True, slots=True)
class ForPower:
    """A figure of a system for its highest power; `scaled` is its other side in `over`'s unit."""

    key: str
    title: str
    unit: str
    over: str
    scaled: Callable[[System, Gpu | None], float | None]
    per_watts: float

    def value(self, system: System, gpu: Gpu | None) -> float | None:
        """Return the quotient in `unit`, or None where one side is not known."""
        over, watts = self.scaled(system, gpu), system.max_power_watts
        return None if over is None or watts is None else over / watts * self.per_watts

    def formula(self, system: System, gpu: Gpu | None) -> str:
        """Return the formula in numbers, or which side is not known."""
        over, watts = self.scaled(system, gpu), system.max_power_watts
        if over is None or watts is None:
            return f"not known without the {self.title.partition(' per ')[0]} and the power of the machine"
        return f"{fmt.quantity(over, self.over)} ÷ {fmt.power(watts)}, the whole machine's"


def _memory_gib(system: System, _gpu: Gpu | None) -> float | None:
    return None if system.memory_bytes is None else system.memory_bytes / GIB


def _tflops(system: System, gpu: Gpu | None) -> float | None:
    total = BF16.value(gpu, system.gpu_count)
    return None if total is None else total / _TERA


FOR_POWER: Final = (
    ForPower("memory_per_kw", "Memory per kW", "GiB/kW", "GiB", _memory_gib, _WATTS_PER_KW),
    ForPower("bf16_per_watt", "BF16 dense per watt", "TFLOPS/W", "TFLOPS", _tflops, 1.0),
)
"""What a system has for the power that all of it draws, host and cooling with it."""
