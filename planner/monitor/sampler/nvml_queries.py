"""NVML queries as data: the calls that read each metric, with scale factors.

The numbers are NVML's own (nvml.h): clocks (SM 1, memory 2), sensors (0), thresholds, directions, field values and GPM
metrics.
"""

from typing import Final, NamedTuple

EVERY_LINK: Final = 0xFFFFFFFF
"""Scope of NVLink counters that sums all links (nvml.h, at NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)."""


class Query(NamedTuple):
    """A quantity with a call of its own; `calls` are alternatives, the newest first.

    The result is divided by `per`; of several values the one at index `place` is used.
    """

    name: str
    calls: tuple[tuple[str, *tuple[int, ...]], ...]
    per: float = 1
    place: int | None = None


class FieldQuery(NamedTuple):
    """A quantity that is an NVML field value; a counter is converted to its rate per second."""

    name: str
    field: int | tuple[int, int]
    per: float = 1
    is_counter: bool = False


# Division keeps what is told: 57 / 100 is 0.57, while 57 * 0.01 is not.
_PER_CENT: Final = 100
_MILLI: Final = 1000
_NANO: Final = 10**9
_KIB: Final = 1 / 1024
_KB: Final = 1 / 1000

FAST: Final = (
    Query(
        "temperature_celsius",
        (("nvmlDeviceGetTemperatureV", 0), ("nvmlDeviceGetTemperature", 0)),
    ),
    Query("power_reported_watts", (("nvmlDeviceGetPowerUsage",),), _MILLI),
    Query("sm_clock_mhz", (("nvmlDeviceGetClockInfo", 1),)),
    Query("memory_clock_mhz", (("nvmlDeviceGetClockInfo", 2),)),
    Query(
        "clock_reasons",
        (("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",)),
    ),
    Query("encoder_fraction", (("nvmlDeviceGetEncoderUtilization",),), _PER_CENT, 0),
    Query("decoder_fraction", (("nvmlDeviceGetDecoderUtilization",),), _PER_CENT, 0),
)

SLOW: Final = (
    Query("fan_fraction", (("nvmlDeviceGetFanSpeed",),), _PER_CENT),
    Query("performance_state", (("nvmlDeviceGetPerformanceState",),)),
    Query("power_limit_watts", (("nvmlDeviceGetEnforcedPowerLimit",),), _MILLI),
    Query("temperature_margin_celsius", (("nvmlDeviceGetMarginTemperature",),)),
    # 20 ms each, which the driver counts in KB/s.
    Query("pcie_transmit_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 0),), _KB),
    Query("pcie_receive_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 1),), _KB),
    Query("pcie_generation", (("nvmlDeviceGetCurrPcieLinkGeneration",),)),
    Query("pcie_width", (("nvmlDeviceGetCurrPcieLinkWidth",),)),
    Query("jpeg_fraction", (("nvmlDeviceGetJpgUtilization",),), _PER_CENT, 0),
    Query("ofa_fraction", (("nvmlDeviceGetOfaUtilization",),), _PER_CENT, 0),
)

FAST_FIELDS: Final = (
    FieldQuery("energy_joules", 83, _MILLI),
    FieldQuery("memory_temperature_celsius", 82),
    FieldQuery("power_capped_fraction", 74, _NANO, is_counter=True),
    FieldQuery("software_thermal_fraction", 269, _NANO, is_counter=True),
    FieldQuery("hardware_thermal_fraction", 270, _NANO, is_counter=True),
)

SLOW_FIELDS: Final = (
    FieldQuery("ecc_corrected", 3),
    FieldQuery("ecc_uncorrected", 4),
    FieldQuery("pcie_replays", 94),
    FieldQuery("remapped_corrected", 142),
    FieldQuery("remapped_uncorrected", 143),
    FieldQuery("remapping_pending", 144),
    FieldQuery("remapping_failed", 145),
    FieldQuery("nvlink_transmit_bytes_per_s", (138, EVERY_LINK), _KIB, is_counter=True),
    FieldQuery("nvlink_receive_bytes_per_s", (139, EVERY_LINK), _KIB, is_counter=True),
)

GPM: Final = (
    ("graphics_active_fraction", 1),
    ("sm_active_fraction", 2),
    ("sm_occupancy_fraction", 3),
    ("tensor_active_fraction", 5),
    ("dram_active_fraction", 10),
)
"""Metrics of Hopper and later, in percent."""

FACTS: Final = (
    Query("power_default_watts", (("nvmlDeviceGetPowerManagementDefaultLimit",),), _MILLI),
    Query("power_least_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), _MILLI, 0),
    Query("power_most_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), _MILLI, 1),
    Query("sm_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 1),)),
    Query("memory_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 2),)),
    Query("shutdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 0),)),
    Query("slowdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 1),)),
    Query("memory_most_celsius", (("nvmlDeviceGetTemperatureThreshold", 2),)),
    Query("target_celsius", (("nvmlDeviceGetTemperatureThreshold", 3),)),
    Query("pcie_generation_most", (("nvmlDeviceGetMaxPcieLinkGeneration",),)),
    Query("pcie_width_most", (("nvmlDeviceGetMaxPcieLinkWidth",),)),
    Query("ecc_enabled", (("nvmlDeviceGetEccMode",),), place=0),
    Query("mig_enabled", (("nvmlDeviceGetMigMode",),), place=0),
    Query("persistence_enabled", (("nvmlDeviceGetPersistenceMode",),)),
)

HIDDEN_BY_MIG: Final = frozenset(
    {
        "utilization_fraction",
        "memory_controller_fraction",
        "encoder_fraction",
        "decoder_fraction",
        "jpeg_fraction",
        "ofa_fraction",
        "nvlink_transmit_bytes_per_s",
        "nvlink_receive_bytes_per_s",
        "remapped_corrected",
        "remapped_uncorrected",
        "remapping_pending",
        "remapping_failed",
    }
)
"""Quantities that a card does not report in MIG mode, but would otherwise.

**Source** nvidia-smi of an H100 and an H200 with and without MIG, driver 590.48.01 (nvidia_gpu_exporter,
internal/captures, MIT).
"""
