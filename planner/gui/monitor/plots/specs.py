"""Which plots there are: what each shows, and which lines belong into it."""

from dataclasses import dataclass
from typing import Final

from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME, Metric, Unit


@dataclass(frozen=True, slots=True)
class PlotSpec:
    """One plot: a quantity of all cards, or a few quantities of the machine.

    `limit` is a quantity that bounds it and may change; `facts` are fixed quantities of cards, with what their lines
    are called.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    is_host: bool = False
    limit: str | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def unit(self) -> Unit:
        """Return the unit of all its quantities."""
        return self.metric(self.metrics[0]).unit

    def metric(self, name: str) -> Metric:
        """Return one of its quantities."""
        return (HOST_BY_NAME if self.is_host else BY_NAME)[name]


def _of_cards(key: str, metric: str, limit: str | None = None, facts: tuple[tuple[str, str], ...] = ()) -> PlotSpec:
    return PlotSpec(key, BY_NAME[metric].title, (metric,), limit=limit, facts=facts)


def _of_host(key: str, title: str, *metrics: str) -> PlotSpec:
    return PlotSpec(key, title, metrics, is_host=True)


PLOTS: Final = (
    _of_cards("utilization", "utilization_fraction"),
    _of_cards("memory_used", "memory_used_bytes", facts=(("memory_total_bytes", "all memory"),)),
    _of_cards("power", "power_watts", limit="power_limit_watts"),
    _of_cards(
        "temperature",
        "temperature_celsius",
        facts=(
            ("target_celsius", "highest in use"),
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
"""Every plot in the usual order."""


def arranged(order: tuple[str, ...]) -> tuple[PlotSpec, ...]:
    """Return every plot, those in `order` at the places where they were put among the others."""
    known = {spec.key: spec for spec in PLOTS}
    keys = [key for key in order if key in known]
    usual = list(known)
    for place, key in enumerate(usual):
        if key not in keys:
            # After the one that usually stands before it.
            before = keys.index(usual[place - 1]) + 1 if place else 0
            keys.insert(before, key)
    return tuple(known[key] for key in keys)
