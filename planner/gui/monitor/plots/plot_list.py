"""The available plots: their metrics, limit lines, number formats and axes."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from planner.gui.plot.ticks import Ticks, nice_step, round_ticks
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME, Metric, Unit
from planner.present import format as fmt
from planner.units import GIB, MIB

_FRACTION_TOP: Final = 1.0
_COOLEST: Final = 20.0
_HEADROOM_FACTOR: Final = 1.05
_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


@dataclass(frozen=True, slots=True)
class PlotSpec:
    """Specification of a plot: one metric of all cards, or a few metrics of the host.

    `limit` names a second metric, a limit that can change; `facts` names fixed limits of cards, with their titles.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    is_host: bool = False
    limit: str | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def unit(self) -> Unit:
        """Return the unit that all metrics of the plot share."""
        return self.metric(self.metrics[0]).unit

    def metric(self, name: str) -> Metric:
        """Return the metric of the plot with this name."""
        return (HOST_BY_NAME if self.is_host else BY_NAME)[name]


def _card_plot(key: str, metric: str, limit: str | None = None, facts: tuple[tuple[str, str], ...] = ()) -> PlotSpec:
    return PlotSpec(key, BY_NAME[metric].title, (metric,), limit=limit, facts=facts)


def _host_plot(key: str, title: str, *metrics: str) -> PlotSpec:
    return PlotSpec(key, title, metrics, is_host=True)


PLOTS: Final = (
    _card_plot("utilization", "utilization_fraction"),
    _card_plot("memory_used", "memory_used_bytes", facts=(("memory_total_bytes", "total"),)),
    _card_plot("power", "power_watts", limit="power_limit_watts"),
    _card_plot(
        "temperature",
        "temperature_celsius",
        facts=(
            ("target_celsius", "slows from"),
            ("slowdown_celsius", "hardware slows from"),
            ("shutdown_celsius", "shuts down"),
        ),
    ),
    _card_plot("sm_clock", "sm_clock_mhz", facts=(("sm_clock_most_mhz", "highest"),)),
    _card_plot("memory_controller", "memory_controller_fraction"),
    _card_plot("sm_active", "sm_active_fraction"),
    _card_plot("tensor_active", "tensor_active_fraction"),
    _card_plot("dram_active", "dram_active_fraction"),
    _card_plot("sm_occupancy", "sm_occupancy_fraction"),
    _card_plot("memory_clock", "memory_clock_mhz"),
    _card_plot("memory_temperature", "memory_temperature_celsius", facts=(("memory_most_celsius", "highest"),)),
    _card_plot("hotspot_temperature", "hotspot_temperature_celsius"),
    _card_plot("shared_memory", "shared_memory_used_bytes", facts=(("shared_memory_total_bytes", "total"),)),
    _card_plot("fan", "fan_fraction"),
    _card_plot("pcie_in", "pcie_receive_bytes_per_s"),
    _card_plot("pcie_out", "pcie_transmit_bytes_per_s"),
    _card_plot("nvlink_in", "nvlink_receive_bytes_per_s"),
    _card_plot("nvlink_out", "nvlink_transmit_bytes_per_s"),
    _card_plot("encoder", "encoder_fraction"),
    _card_plot("decoder", "decoder_fraction"),
    _card_plot("fp64_active", "fp64_active_fraction"),
    _card_plot("fp32_active", "fp32_active_fraction"),
    _card_plot("fp16_active", "fp16_active_fraction"),
    _host_plot("cpu", "CPU", "cpu_fraction", "io_wait_fraction"),
    _host_plot("ram", "RAM", "memory_used_bytes", "swap_used_bytes"),
    _host_plot("disk", "Disk", "disk_read_bytes_per_s", "disk_write_bytes_per_s"),
    _host_plot("network", "Network", "network_receive_bytes_per_s", "network_transmit_bytes_per_s"),
)
"""All plots in the default order."""


def plots_in_order(order: tuple[str, ...]) -> tuple[PlotSpec, ...]:
    """Return all plots in the user's `order`; plots that `order` does not list follow their default predecessor."""
    known = {spec.key: spec for spec in PLOTS}
    keys = [key for key in order if key in known]
    default = list(known)
    for place, key in enumerate(default):
        if key not in keys:
            # After its predecessor in the default order.
            before = keys.index(default[place - 1]) + 1 if place else 0
            keys.insert(before, key)
    return tuple(known[key] for key in keys)


class AxisRange(NamedTuple):
    """Lower and upper end of an axis, in the metric's unit or in seconds."""

    low: float
    high: float


def value_text(unit: Unit, value: float | None) -> str:
    """Return a value with its unit as text, `unknown` for None."""
    if value is None:
        return fmt.UNKNOWN
    if unit == "fraction":
        return fmt.percent(value)
    if unit == "bytes":
        return fmt.size(round(value))
    if unit == "bytes/s":
        per, name = _rate_factor_and_unit(value)
        return fmt.quantity(value / per, name)
    return fmt.quantity(value, unit)


def metric_range(unit: Unit, seen: AxisRange | None, lines: tuple[float, ...]) -> AxisRange:
    """Return a range for the y axis that contains the values `seen` and `lines`, and that seldom changes."""
    highest = max((seen.high if seen else 0.0, *lines))
    if unit == "fraction":
        return AxisRange(0.0, max(_FRACTION_TOP, highest) * 1.02)
    if unit == "°C":
        lowest = min(seen.low if seen else _COOLEST, _COOLEST)
        return AxisRange(10.0 * (lowest // 10), max(highest, 2 * _COOLEST) + 5)
    if lines and highest == max(lines):
        return AxisRange(0.0, highest * _HEADROOM_FACTOR)
    return AxisRange(0.0, _axis_top(highest * _HEADROOM_FACTOR) if highest > 0 else 1.0)


def metric_ticks(unit: Unit, ends: AxisRange, wanted: int) -> Ticks:
    """Return about `wanted` ticks of a y axis at round numbers, with the unit in the tick labels."""
    per, name = _axis_factor_and_unit(unit, ends.high)
    ticks = round_ticks(ends.low / per, ends.high / per, wanted)
    return [(place * per, f"{text}{fmt.THIN}{name}") for place, text in ticks]


def _axis_factor_and_unit(unit: Unit, highest: float) -> tuple[float, str]:
    if unit == "fraction":
        return 0.01, "%"
    if unit == "bytes":
        return (GIB, "GiB") if highest >= GIB else (MIB, "MiB")
    return _rate_factor_and_unit(highest) if unit == "bytes/s" else (1.0, unit)


def _rate_factor_and_unit(value: float) -> tuple[float, str]:
    return next((rate for rate in _RATES if value >= rate[0]), _RATES[-1])


def _axis_top(value: float) -> float:
    """Return `value` rounded up to a multiple of about a quarter of it, so that the axis seldom changes."""
    step = nice_step(value / 4)
    return step * -(-value // step)
