"""Names, units and types of the exposition: one series or several for each metric, and the families besides them.

Whoever reads the exposition back uses the same table. Names and units follow Prometheus: base units, spelt out.

**Source** prometheus.io, "Metric and label naming"; the OpenMetrics specification.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from planner.monitor.readings.metrics import CLOCK_REASONS, DEVICE_METRICS, FACTS, HOST_METRICS, Metric, Unit

PREFIX: Final = "gpu_planner_"
GPU_PREFIX: Final = f"{PREFIX}gpu_"
HOST_PREFIX: Final = f"{PREFIX}host_"

CARD_LABELS: Final = ("gpu", "uuid")
"""Labels of every series of a GPU: its number (of a MIG instance `CARD:INSTANCE`) and its UUID."""
INFO_LABELS: Final = (*CARD_LABELS, "name", "pci_bus_id", "driver", "cuda", "mig_parent", "machine")
"""Labels of `INFO`: `mig_parent` is the UUID of a MIG instance's GPU, `machine` the name of another machine.

Texts that are unknown, or do not apply, are empty.
"""


class ExposedSeries(NamedTuple):
    """A series of one metric; its value is `factor` times the metric's, or 0 or 1 for one `bit` of a bit field.

    `name` is that of the samples: of a counter with `_total`. `labels` are constant labels besides those of the GPU.
    """

    metric: Metric
    name: str
    unit: str
    kind: Literal["gauge", "counter"] = "gauge"
    factor: float = 1.0
    labels: tuple[tuple[str, str], ...] = ()
    bit: int = 0
    shared_about: str = ""

    @property
    def about(self) -> str:
        """Return the help of the family, which several series may share."""
        unit = f", in {self.unit.replace('_', ' ')}" if self.unit not in ("", "ratio") else ""
        return self.shared_about or f"{self.metric.title}{unit}"

    def to_exposed(self, value: float) -> float:
        """Return the value of the series for a value of the metric."""
        return float(bool(int(value) & self.bit)) if self.bit else value * self.factor


class ExposedFamily(NamedTuple):
    """A family that is not a metric of ours: its sample name, type and help, and its labels besides the GPU's."""

    name: str
    kind: Literal["gauge", "counter"]
    about: str
    labels: tuple[str, ...] = ()


INFO: Final = ExposedFamily(f"{GPU_PREFIX}info", "gauge", "The GPU and its driver; always 1", INFO_LABELS[2:])
STATE: Final = ExposedFamily(f"{GPU_PREFIX}state", "gauge", "State of the GPU: 1 for the one that holds", ("state",))
XIDS: Final = ExposedFamily(
    f"{GPU_PREFIX}xid_events_total", "counter", "Xid errors of the driver since the monitor started", ("xid",)
)
DIAGNOSIS: Final = ExposedFamily(
    f"{PREFIX}diagnosis", "gauge", "The verdict on the GPU; always 1", ("verdict", "severity")
)
PLAN_MEMORY: Final = ExposedFamily(f"{PREFIX}plan_memory_bytes", "gauge", "Memory that the plan predicts for the GPU")
PLAN_POWER: Final = ExposedFamily(f"{PREFIX}plan_power_watts", "gauge", "Power that the plan predicts for the GPU")
PROCESSES: Final = ExposedFamily(f"{GPU_PREFIX}processes", "gauge", "Processes on the GPU")
FAULT: Final = ExposedFamily(
    f"{PREFIX}fault",
    "gauge",
    "A fault; gpu and uuid are empty unless it concerns one GPU; always 1",
    ("fault", "severity"),
)
AGE: Final = ExposedFamily(f"{PREFIX}scrape_age_seconds", "gauge", "Age of the readings when they were scraped")
BUILD: Final = ExposedFamily(f"{PREFIX}build_info", "gauge", "The program that exposes the readings", ("version",))

STATES: Final = ("ok", "silent", "lost", "asleep")
"""States of a GPU; `silent`: the driver does not respond, or is disconnected."""


class _UnitName(NamedTuple):
    """Endings of a metric's name and of its exposed one, the exposed unit, and its size relative to the metric's."""

    ending: str
    exposed: str
    unit: str
    factor: float = 1.0


_UNITS: Final[dict[Unit, _UnitName]] = {
    "fraction": _UnitName("_fraction", "_ratio", "ratio"),
    "bytes": _UnitName("_bytes", "_bytes", "bytes"),
    "bytes/s": _UnitName("_bytes_per_s", "_bytes_per_second", "bytes_per_second"),
    "W": _UnitName("_watts", "_watts", "watts"),
    "J": _UnitName("_joules", "_joules", "joules"),
    "°C": _UnitName("_celsius", "_celsius", "celsius"),
    "MHz": _UnitName("_mhz", "_hertz", "hertz", 1e6),
    "count": _UnitName("", "", ""),
    "state": _UnitName("", "", ""),
    "bits": _UnitName("", "", ""),
}
_COUNTERS: Final = frozenset(
    {
        "energy_joules",
        "pcie_replays",
        "ecc_corrected",
        "ecc_uncorrected",
        "remapped_corrected",
        "remapped_uncorrected",
    }
)
_THROTTLED: Final = {
    "power_capped_fraction": "power",
    "software_thermal_fraction": "thermal_sw",
    "hardware_thermal_fraction": "thermal_hw",
}


_THROTTLED_ABOUT: Final = "Share of time in which the clock was held down, by reason"
_REASON_ABOUT: Final = "Whether the driver names this reason for the clock"


def _series(metric: Metric, prefix: str) -> Iterator[ExposedSeries]:
    if metric.unit == "bits":
        for reason in CLOCK_REASONS:
            labels = (("reason", reason.name),)
            name = f"{prefix}clock_reason"
            yield ExposedSeries(metric, name, "", labels=labels, bit=reason.bit, shared_about=_REASON_ABOUT)
        return
    unit = _UNITS[metric.unit]
    if metric.name in _THROTTLED:
        labels = (("reason", _THROTTLED[metric.name]),)
        yield ExposedSeries(metric, f"{prefix}throttled_ratio", unit.unit, labels=labels, shared_about=_THROTTLED_ABOUT)
        return
    name = f"{prefix}{metric.name.removesuffix(unit.ending)}{unit.exposed}"
    if metric.name in _COUNTERS:
        yield ExposedSeries(metric, f"{name}_total", unit.unit, "counter", unit.factor)
    else:
        yield ExposedSeries(metric, name, unit.unit, factor=unit.factor)


CARD_SERIES: Final = tuple(series for metric in (*FACTS, *DEVICE_METRICS) for series in _series(metric, GPU_PREFIX))
"""Every series of a GPU, facts first."""
HOST_SERIES: Final = tuple(series for metric in HOST_METRICS for series in _series(metric, HOST_PREFIX))
"""Every series of the host; they have no labels."""
FAMILIES: Final = (INFO, STATE, XIDS, DIAGNOSIS, PLAN_MEMORY, PLAN_POWER, PROCESSES, FAULT, AGE, BUILD)
"""Every family that is not a metric."""
