"""Registry of all measured quantities: name, unit, title, cadence and plausible range.

What reads each metric is declared in `monitor/sampler/nvml_queries.py` for NVIDIA's driver, and in `monitor/sources`
for all others. The names are used in JSON, recordings, history and diagnosis: add names, never rename them.
"""

from typing import Final, Literal, NamedTuple

from planner.monitor.readings.reading import Reading

Cadence = Literal["fast", "slow", "rare"]
Unit = Literal["fraction", "bytes", "bytes/s", "W", "J", "°C", "MHz", "count", "state", "bits"]


class Metric(NamedTuple):
    """One measured quantity; a value outside `least` to `most` is implausible (None: no bound).

    `reported_by` is whether only NVIDIA's driver reports it, or only those of other vendors.
    """

    name: str
    title: str
    unit: Unit
    cadence: Cadence = "fast"
    least: float | None = 0.0
    most: float | None = None
    reported_by: Literal["any", "nvidia", "others"] = "any"


# Bounds that no GPU comes near: they catch values such as 0xFFFFFFFF, not unusual ones.
_MAX_CELSIUS: Final = 150.0
_MAX_WATTS: Final = 10_000.0
_MAX_MHZ: Final = 20_000.0
_MAX_BYTES_PER_S: Final = 1e13
# NVML: "this value may exceed 100 % in certain cases".
_MAX_FAN_FRACTION: Final = 2.0

DEVICE_METRICS: Final = (
    Metric("utilization_fraction", "Utilization", "fraction", most=1.0),
    Metric("memory_controller_fraction", "Memory controller", "fraction", most=1.0),
    Metric("memory_used_bytes", "Memory used", "bytes"),
    Metric("memory_free_bytes", "Memory free", "bytes"),
    Metric("memory_reserved_bytes", "Memory reserved by the driver", "bytes", reported_by="nvidia"),
    Metric("shared_memory_used_bytes", "RAM used by the GPU", "bytes", cadence="slow", reported_by="others"),
    Metric("bar1_used_bytes", "Memory mapped for the CPU (BAR1)", "bytes", cadence="rare", reported_by="nvidia"),
    Metric("power_watts", "Power", "W", most=_MAX_WATTS),
    Metric("power_reported_watts", "Power reported by the driver", "W", most=_MAX_WATTS),
    Metric("energy_joules", "Energy since the driver was loaded", "J"),
    Metric("temperature_celsius", "Temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric("memory_temperature_celsius", "Memory temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric(
        "hotspot_temperature_celsius",
        "Hotspot temperature",
        "°C",
        cadence="slow",
        least=-50.0,
        most=_MAX_CELSIUS,
        reported_by="others",
    ),
    Metric("sm_clock_mhz", "SM clock", "MHz", most=_MAX_MHZ),
    Metric("memory_clock_mhz", "Memory clock", "MHz", most=_MAX_MHZ),
    Metric("fan_fraction", "Fan", "fraction", cadence="slow", most=_MAX_FAN_FRACTION),
    Metric("performance_state", "Performance state", "state", cadence="slow", most=15.0, reported_by="nvidia"),
    Metric("power_source", "Power source", "state", cadence="slow", most=2.0, reported_by="nvidia"),
    Metric("compute_mode", "Compute mode", "state", cadence="rare", most=3.0, reported_by="nvidia"),
    Metric("clock_reasons", "Clock reasons", "bits"),
    Metric("encoder_fraction", "Encoder", "fraction", most=1.0),
    Metric("decoder_fraction", "Decoder", "fraction", most=1.0),
    Metric("power_capped_fraction", "Time limited by power", "fraction", most=1.5, reported_by="nvidia"),
    Metric(
        "software_thermal_fraction",
        "Time slowed by the driver because of heat",
        "fraction",
        most=1.5,
        reported_by="nvidia",
    ),
    Metric(
        "hardware_thermal_fraction",
        "Time slowed by the GPU because of heat",
        "fraction",
        most=1.5,
        reported_by="nvidia",
    ),
    Metric("jpeg_fraction", "JPEG decoder", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("ofa_fraction", "Optical flow", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("power_limit_watts", "Power limit", "W", cadence="slow", most=_MAX_WATTS),
    Metric(
        "temperature_margin_celsius",
        "Margin to slow-down temperature",
        "°C",
        cadence="slow",
        least=-_MAX_CELSIUS,
        most=_MAX_CELSIUS,
        reported_by="nvidia",
    ),
    Metric("pcie_transmit_bytes_per_s", "PCIe out", "bytes/s", cadence="slow", most=_MAX_BYTES_PER_S),
    Metric("pcie_receive_bytes_per_s", "PCIe in", "bytes/s", cadence="slow", most=_MAX_BYTES_PER_S),
    Metric("pcie_generation", "PCIe generation", "count", cadence="slow", most=20.0),
    Metric("pcie_width", "PCIe lanes", "count", cadence="slow", most=64.0),
    Metric("pcie_replays", "PCIe replays", "count", cadence="slow"),
    Metric(
        "nvlink_transmit_bytes_per_s",
        "NVLink out",
        "bytes/s",
        cadence="slow",
        most=_MAX_BYTES_PER_S,
        reported_by="nvidia",
    ),
    Metric(
        "nvlink_receive_bytes_per_s",
        "NVLink in",
        "bytes/s",
        cadence="slow",
        most=_MAX_BYTES_PER_S,
        reported_by="nvidia",
    ),
    Metric("nvlink_active_links", "Active NVLinks", "count", cadence="rare", most=64.0, reported_by="nvidia"),
    Metric("nvlink_errors", "NVLink errors", "count", cadence="rare", reported_by="nvidia"),
    Metric("fabric_state", "NVLink fabric", "state", cadence="rare", most=3.0, reported_by="nvidia"),
    Metric("ecc_corrected", "Corrected memory errors", "count", cadence="slow"),
    Metric("ecc_uncorrected", "Uncorrected memory errors", "count", cadence="slow"),
    Metric("ecc_corrected_lifetime", "Corrected memory errors in the GPU's life", "count", cadence="rare"),
    Metric("ecc_uncorrected_lifetime", "Uncorrected memory errors in the GPU's life", "count", cadence="rare"),
    Metric("retired_corrected", "Pages retired after corrected errors", "count", cadence="rare"),
    Metric("retired_uncorrected", "Pages retired after uncorrected errors", "count", cadence="rare"),
    Metric("retirement_pending", "Page retirement pending a reboot", "state", cadence="rare", most=1.0),
    Metric("remapped_corrected", "Rows remapped after corrected errors", "count", cadence="slow", reported_by="nvidia"),
    Metric(
        "remapped_uncorrected", "Rows remapped after uncorrected errors", "count", cadence="slow", reported_by="nvidia"
    ),
    Metric(
        "remapping_pending", "Row remapping pending a reset", "state", cadence="slow", most=1.0, reported_by="nvidia"
    ),
    Metric("remapping_failed", "Remapping failed", "state", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("graphics_active_fraction", "Engine active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("sm_active_fraction", "SMs active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("sm_occupancy_fraction", "SM occupancy", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("tensor_active_fraction", "Tensor cores active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("dram_active_fraction", "Memory bandwidth used", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("fp64_active_fraction", "FP64 cores active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("fp32_active_fraction", "FP32 cores active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
    Metric("fp16_active_fraction", "FP16 cores active", "fraction", cadence="slow", most=1.0, reported_by="nvidia"),
)
"""Quantities of a GPU. The last eight exist on NVIDIA's GPUs from Hopper on (GPM)."""

HOST_METRICS: Final = (
    Metric("cpu_fraction", "CPU", "fraction", most=1.0),
    Metric("io_wait_fraction", "Waiting for disks", "fraction", most=1.0),
    Metric("memory_used_bytes", "RAM used", "bytes"),
    Metric("memory_available_bytes", "RAM available", "bytes"),
    Metric("swap_used_bytes", "Swap used", "bytes", cadence="slow"),
    Metric("disk_read_bytes_per_s", "Disk read", "bytes/s", most=_MAX_BYTES_PER_S),
    Metric("disk_write_bytes_per_s", "Disk written", "bytes/s", most=_MAX_BYTES_PER_S),
    Metric("network_receive_bytes_per_s", "Network in", "bytes/s", most=_MAX_BYTES_PER_S),
    Metric("network_transmit_bytes_per_s", "Network out", "bytes/s", most=_MAX_BYTES_PER_S),
)
"""Quantities of the host."""

FACTS: Final = (
    Metric("memory_total_bytes", "Memory", "bytes"),
    Metric("unified_memory", "Memory shared with the CPU", "state", most=1.0),
    Metric("shared_memory_total_bytes", "RAM that the GPU can use", "bytes"),
    Metric("bar1_total_bytes", "Largest mapping for the CPU (BAR1)", "bytes"),
    Metric("power_default_watts", "Default power limit", "W", most=_MAX_WATTS),
    Metric("power_least_watts", "Lowest power limit", "W", most=_MAX_WATTS),
    Metric("power_most_watts", "Highest power limit", "W", most=_MAX_WATTS),
    Metric("sm_clock_most_mhz", "Highest SM clock", "MHz", most=_MAX_MHZ),
    Metric("memory_clock_most_mhz", "Highest memory clock", "MHz", most=_MAX_MHZ),
    Metric("shutdown_celsius", "Shutdown temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric("slowdown_celsius", "Slow-down temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric("memory_most_celsius", "Highest memory temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric("target_celsius", "Target temperature", "°C", least=-50.0, most=_MAX_CELSIUS),
    Metric("pcie_generation_most", "Highest PCIe generation", "count", most=20.0),
    Metric("pcie_width_most", "Highest number of PCIe lanes", "count", most=64.0),
    Metric("compute_capability", "Compute capability", "count", most=100.0),
    Metric("ecc_enabled", "ECC", "state", most=1.0),
    Metric("mig_enabled", "MIG", "state", most=1.0),
    Metric("persistence_enabled", "Persistence", "state", most=1.0),
    Metric("windows_display_driver", "WDDM", "state", most=1.0),
    Metric("multiprocessors", "SMs of this MIG instance", "count"),
    Metric("mig_compute_slices", "Compute slices of this MIG instance", "count"),
    Metric("mig_first_slice", "First memory slice of this MIG instance", "count"),
    Metric("mig_memory_slices", "Memory slices of this MIG instance", "count"),
)
"""Fixed properties of a GPU."""

BY_NAME: Final = {metric.name: metric for metric in (*FACTS, *DEVICE_METRICS)}
"""Quantities and properties of GPUs, by name."""

HOST_BY_NAME: Final = {metric.name: metric for metric in HOST_METRICS}
"""Quantities of the host, by name; some GPUs' quantities have the same names."""


def checked_reading(metric: Metric, value: float, most: float | None = None) -> Reading:
    """Return a reading of `metric`, flagged if its value is implausible; `most` overrides the upper bound."""
    bound = metric.most if most is None else most
    if (metric.least is not None and value < metric.least) or (bound is not None and value > bound):
        return Reading(value, None, True)
    return Reading(value)


class ClockReason(NamedTuple):
    """One bit of NVML's clock reasons; `slows` marks a reason that lowers the clock involuntarily."""

    bit: int
    name: str
    title: str
    slows: bool


CLOCK_REASONS: Final = (
    ClockReason(0x1, "idle", "idle", slows=False),
    ClockReason(0x2, "application-clocks", "clocks set by hand", slows=False),
    ClockReason(0x4, "power-cap", "power limit", slows=True),
    ClockReason(0x8, "hardware-slowdown", "slowed by the hardware: heat, power brake or supply", slows=True),
    ClockReason(0x10, "sync-boost", "synchronized with other GPUs", slows=True),
    ClockReason(0x20, "software-thermal", "slowed by heat: at the target temperature", slows=True),
    ClockReason(0x40, "hardware-thermal", "slowed by heat: near the hardware's limit", slows=True),
    ClockReason(0x80, "power-brake", "slowed by the machine's power supply", slows=True),
    ClockReason(0x100, "display-clocks", "clocks set by the display", slows=False),
)
"""Every clock reason, by ascending bit. **Source** nvml.h, nvmlClocksEventReasons."""


def slowing_reasons(bits: int, utilization: float | None) -> tuple[ClockReason, ...]:
    """Return the clock reasons in `bits` that slow a GPU down.

    The power-cap bit is meaningless on an idle GPU: it is set at 39 W of 250 W (nvidia-smi of an
    RTX 2080 Super, nvidia_gpu_exporter, internal/captures, MIT).
    """
    return tuple(
        reason
        for reason in CLOCK_REASONS
        if reason.slows and bits & reason.bit and not (reason.name == "power-cap" and utilization == 0)
    )
