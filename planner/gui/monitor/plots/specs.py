"""The available plots with their metrics, limit lines, formats and axes."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from planner.gui.plot.ticks import Ticks, nice_step, round_ticks
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME, Metric, Unit
from planner.present import format as fmt
from planner.units import GIB, MIB

_FRACTION_TOP: Final = 1.0
_COOLEST: Final = 20.0
_ROOM: Final = 1.05
_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


@dataclass(frozen=True, slots=True)
class PlotSpec:
    """A plot of one metric of all cards, or of a few metrics of the host.

    `limit` is the metric of a limit that can change; `facts` are fixed limits of cards with the titles of their lines.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    is_host: bool = False
    limit: str | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def unit(self) -> Unit:
        """Return the unit of all its metrics."""
        return self.metric(self.metrics[0]).unit

    def metric(self, name: str) -> Metric:
        """Return one of its metrics."""
        return (HOST_BY_NAME if self.is_host else BY_NAME)[name]


def _of_cards(key: str, metric: str, limit: str | None = None, facts: tuple[tuple[str, str], ...] = ()) -> PlotSpec:
    return PlotSpec(key, BY_NAME[metric].title, (metric,), limit=limit, facts=facts)


def _of_host(key: str, title: str, *metrics: str) -> PlotSpec:
    return PlotSpec(key, title, metrics, is_host=True)


PLOTS: Final = (
    _of_cards("utilization", "utilization_fraction"),
    _of_cards("memory_used", "memory_used_bytes", facts=(("memory_total_bytes", "total memory"),)),
    _of_cards("power", "power_watts", limit="power_limit_watts"),
    _of_cards(
        "temperature",
        "temperature_celsius",
        facts=(
            ("target_celsius", "highest operating"),
            ("slowdown_celsius", "slows down"),
            ("shutdown_celsius", "shuts down"),
        ),
    ),
    _of_cards("sm_clock", "sm_clock_mhz", facts=(("sm_clock_most_mhz", "highest"),)),
    _of_cards("memory_controller", "memory_controller_fraction"),
    _of_cards("sm_active", "sm_active_fraction"),
    _of_cards("tensor_active", "tensor_active_fraction"),
    _of_cards("dram_active", "dram_active_fraction"),
    _of_cards("sm_occupancy", "sm_occupancy_fraction"),
    _of_cards("memory_clock", "memory_clock_mhz"),
    _of_cards("memory_temperature", "memory_temperature_celsius", facts=(("memory_most_celsius", "highest"),)),
    _of_cards("fan", "fan_fraction"),
    _of_cards("pcie_in", "pcie_receive_bytes_per_s"),
    _of_cards("pcie_out", "pcie_transmit_bytes_per_s"),
    _of_cards("nvlink_in", "nvlink_receive_bytes_per_s"),
    _of_cards("nvlink_out", "nvlink_transmit_bytes_per_s"),
    _of_cards("encoder", "encoder_fraction"),
    _of_cards("decoder", "decoder_fraction"),
    _of_host("cpu", "CPU", "cpu_fraction", "io_wait_fraction"),
    _of_host("ram", "RAM", "memory_used_bytes", "swap_used_bytes"),
    _of_host("disk", "Disk", "disk_read_bytes_per_s", "disk_write_bytes_per_s"),
    _of_host("network", "Network", "network_receive_bytes_per_s", "network_transmit_bytes_per_s"),
)
"""All plots in the default order."""


def arranged(order: tuple[str, ...]) -> tuple[PlotSpec, ...]:
    """Return all plots in the user's `order`; plots that it does not list keep their default neighbors."""
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
    """The ends of an axis in the metric's unit."""

    low: float
    high: float


def value_text(unit: Unit, value: float | None) -> str:
    """Return a value with its unit."""
    if value is None:
        return fmt.UNKNOWN
    if unit == "fraction":
        return fmt.percent(value)
    if unit == "bytes":
        return fmt.size(round(value))
    if unit == "bytes/s":
        per, name = _rate_unit(value)
        return fmt.quantity(value / per, name)
    return fmt.quantity(value, unit)


def metric_range(unit: Unit, seen: AxisRange | None, lines: tuple[float, ...]) -> AxisRange:
    """Return the ends of a y axis that contains the values `seen` and `lines`, and that seldom changes."""
    highest = max((seen.high if seen else 0.0, *lines))
    if unit == "fraction":
        return AxisRange(0.0, max(_FRACTION_TOP, highest) * 1.02)
    if unit == "°C":
        lowest = min(seen.low if seen else _COOLEST, _COOLEST)
        return AxisRange(10.0 * (lowest // 10), max(highest, 2 * _COOLEST) + 5)
    if lines and highest == max(lines):
        return AxisRange(0.0, highest * _ROOM)
    return AxisRange(0.0, _ceiling(highest * _ROOM) if highest > 0 else 1.0)


def metric_ticks(unit: Unit, ends: AxisRange, wanted: int) -> Ticks:
    """Return about `wanted` ticks at round numbers with their unit."""
    per, name = _axis_unit(unit, ends.high)
    ticks = round_ticks(ends.low / per, ends.high / per, wanted)
    return [(place * per, f"{text}{fmt.THIN}{name}") for place, text in ticks]


def _axis_unit(unit: Unit, highest: float) -> tuple[float, str]:
    if unit == "fraction":
        return 0.01, "%"
    if unit == "bytes":
        return (GIB, "GiB") if highest >= GIB else (MIB, "MiB")
    return _rate_unit(highest) if unit == "bytes/s" else (1.0, unit)


def _rate_unit(value: float) -> tuple[float, str]:
    return next((rate for rate in _RATES if value >= rate[0]), _RATES[-1])


def _ceiling(value: float) -> float:
    """Round up to a multiple of about a quarter of the value, so that the axis seldom changes."""
    step = nice_step(value / 4)
    return step * -(-value // step)
