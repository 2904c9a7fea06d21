"""Derived figures of a card, such as price per GiB; declared once for tables, tooltips and queries.

A figure is unknown if one of its inputs is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from planner.hardware.gpu import Gpu, Rate
from planner.units import GB, GIB

_TERA: Final = 1e12
LAUNCH_PRICE: Final = "launch price"
Input = Callable[[Gpu], float | None]


def half_rate(gpu: Gpu) -> Rate | None:
    """Return the card's dense 16-bit rate: BF16, or FP16 if the card has no BF16.

    None for cards whose FP16 is slower than their FP32, such as the GeForce GTX 10.
    """
    bf16, fp16, fp32 = (gpu.rate(dtype) for dtype in ("bf16", "fp16", "fp32"))
    if bf16 or not fp16:
        return bf16
    return None if fp32 and fp16.ops_per_s < fp32.ops_per_s else fp16


def _half_rate_tflops(gpu: Gpu) -> float | None:
    rate = half_rate(gpu)
    return None if rate is None else rate.ops_per_s / _TERA


def _memory_gib(gpu: Gpu) -> float | None:
    return None if gpu.memory_bytes is None else gpu.memory_bytes / GIB


def _bandwidth_gb_per_s(gpu: Gpu) -> float | None:
    return None if gpu.bandwidth_bytes_per_s is None else gpu.bandwidth_bytes_per_s / GB


INPUTS: Final[Mapping[str, Input]] = {
    "memory": _memory_gib,
    "bandwidth": _bandwidth_gb_per_s,
    "16-bit rate": _half_rate_tflops,
    "power": lambda gpu: gpu.board_power_watts,
}
"""Inputs of derived figures by name, except prices: functions that return GiB, GB/s, TFLOPS or W of a card."""


@dataclass(frozen=True, slots=True)
class DerivedFigure:
    """A figure derived as the quotient of two inputs; `over` or `under` is None for the price in US dollars."""

    key: str
    title: str
    unit: str
    help: str
    over: str | None
    under: str | None
    scale: float = 1.0
    lower_is_better: bool | None = False

    @property
    def has_price(self) -> bool:
        """Return whether a price is one of the inputs."""
        return self.over is None or self.under is None

    @property
    def formula(self) -> str:
        """Return the formula as text: `price ÷ memory`."""
        scale = f" × {self.scale:g}" if self.scale != 1 else ""
        return f"{self.over or 'price'} ÷ {self.under or 'price'}{scale}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the names of numerator and denominator, such as `price` and `memory`."""
        return tuple(name or "price" for name in (self.over, self.under))

    def value(self, gpu: Gpu, price_usd: float | None = None) -> float | None:
        """Return the figure of `gpu` in `unit`, or None if an input is unknown.

        `price_usd` is the price of one card, by default the launch price.
        """
        price = gpu.launch_price_usd if price_usd is None else price_usd
        over = price if self.over is None else INPUTS[self.over](gpu)
        under = price if self.under is None else INPUTS[self.under](gpu)
        return None if over is None or under is None else over / under * self.scale

    def explained(self, gpu: Gpu, price_usd: float | None = None, price_name: str = LAUNCH_PRICE) -> str:
        """Return the formula as text with the numbers of `gpu`, or a text that names the unknown inputs."""
        price = gpu.launch_price_usd if price_usd is None else price_usd
        sides = [_operand_text(name, gpu, price, price_name) for name in (self.over, self.under)]
        missing = [name for name, text in sides if text is None]
        if missing:
            return f"unknown without the {' and the '.join(missing)}"
        scale = f" × {self.scale:g}" if self.scale != 1 else ""
        return " ÷ ".join(f"{name} {text}" for name, text in sides) + scale


def _operand_text(name: str | None, gpu: Gpu, price_usd: float | None, price_name: str) -> tuple[str, str | None]:
    """Return an operand's name, and its value with unit as text or None if unknown."""
    if name is None:
        return price_name, None if price_usd is None else f"{price_usd:,.0f} USD"
    value = INPUTS[name](gpu)
    if value is None:
        return name, None
    rate = half_rate(gpu) if name == "16-bit rate" else None
    shown = f"{rate.dtype.upper()} dense" if rate is not None else name
    return shown, f"{value:,.4g} {_UNITS[name]}"


_UNITS: Final = {"memory": "GiB", "bandwidth": "GB/s", "16-bit rate": "TFLOPS", "power": "W"}

DERIVED_FIGURES: Final[Mapping[str, DerivedFigure]] = {
    figure.key: figure
    for figure in (
        DerivedFigure(
            "usd_per_gib", "Price per GiB", "USD/GiB", "price per GiB of memory", None, "memory", lower_is_better=True
        ),
        DerivedFigure(
            "usd_per_tflops",
            "Price per TFLOPS",
            "USD/TFLOPS",
            "price per TFLOPS of the dense 16-bit rate (BF16; FP16 if there is no BF16)",
            None,
            "16-bit rate",
            lower_is_better=True,
        ),
        DerivedFigure(
            "bandwidth_per_usd", "Bandwidth per dollar", "GB/s/USD", "memory bandwidth per dollar", "bandwidth", None
        ),
        DerivedFigure(
            "tflops_per_watt",
            "Rate per watt",
            "TFLOPS/W",
            "dense 16-bit rate per watt of board power",
            "16-bit rate",
            "power",
        ),
        DerivedFigure(
            "ridge_point",
            "Ridge point",
            "FLOP/byte",
            "dense 16-bit operations per byte of memory traffic above which work is compute-bound",
            "16-bit rate",
            "bandwidth",
            scale=1_000.0,
            lower_is_better=None,
        ),
        DerivedFigure("gib_per_watt", "Memory per watt", "GiB/W", "memory per watt of board power", "memory", "power"),
        DerivedFigure(
            "bandwidth_per_watt",
            "Bandwidth per watt",
            "GB/s/W",
            "memory bandwidth per watt of board power: the energy efficiency of decoding",
            "bandwidth",
            "power",
        ),
    )
}
"""Every derived figure by its query field. Figures with a price use the launch price by default.

**Source** of the ridge point: Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
"""


def derived_figures(gpu: Gpu) -> Mapping[str, float | None]:
    """Return every derived figure of `gpu` by its query field, at the launch price; None if unknown.

    The units are those of `DERIVED_FIGURES`.
    """
    return {key: figure.value(gpu) for key, figure in DERIVED_FIGURES.items()}
