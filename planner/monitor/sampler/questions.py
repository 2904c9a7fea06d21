"""What is asked of a card, as data: which calls give which quantity, in which unit.

The numbers are NVML's own (nvml.h): of clocks (SM 1, memory 2), of sensors (0), of thresholds, of directions, of field
values and of GPM metrics.
"""

from typing import Final, NamedTuple

EVERY_LINK: Final = 0xFFFFFFFF
"""The scope of NVLink counters that sums up all links (nvml.h, at NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)."""


class Question(NamedTuple):
    """A quantity that a call of its own gives; `calls` are alternatives, the newest first.

    The answer is divided by `per`; of several values it is the one at `place`.
    """

    name: str
    calls: tuple[tuple[str, *tuple[int, ...]], ...]
    per: float = 1
    place: int | None = None


class FieldQuestion(NamedTuple):
    """A quantity that is a field value; a counter becomes what it grows in a second."""

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
    Question(
        "temperature_celsius",
        (("nvmlDeviceGetTemperatureV", 0), ("nvmlDeviceGetTemperature", 0)),
    ),
    Question("power_reported_watts", (("nvmlDeviceGetPowerUsage",),), _MILLI),
    Question("sm_clock_mhz", (("nvmlDeviceGetClockInfo", 1),)),
    Question("memory_clock_mhz", (("nvmlDeviceGetClockInfo", 2),)),
    Question(
        "clock_reasons",
        (("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",)),
    ),
    Question("encoder_fraction", (("nvmlDeviceGetEncoderUtilization",),), _PER_CENT, 0),
    Question("decoder_fraction", (("nvmlDeviceGetDecoderUtilization",),), _PER_CENT, 0),
)

SLOW: Final = (
    Question("fan_fraction", (("nvmlDeviceGetFanSpeed",),), _PER_CENT),
    Question("performance_state", (("nvmlDeviceGetPerformanceState",),)),
    Question("power_limit_watts", (("nvmlDeviceGetEnforcedPowerLimit",),), _MILLI),
    Question("temperature_margin_celsius", (("nvmlDeviceGetMarginTemperature",),)),
    # 20 ms each, which the driver counts in KB/s.
    Question("pcie_transmit_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 0),), _KB),
    Question("pcie_receive_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 1),), _KB),
    Question("pcie_generation", (("nvmlDeviceGetCurrPcieLinkGeneration",),)),
    Question("pcie_width", (("nvmlDeviceGetCurrPcieLinkWidth",),)),
    Question("jpeg_fraction", (("nvmlDeviceGetJpgUtilization",),), _PER_CENT, 0),
    Question("ofa_fraction", (("nvmlDeviceGetOfaUtilization",),), _PER_CENT, 0),
)

FAST_FIELDS: Final = (
    FieldQuestion("energy_joules", 83, _MILLI),
    FieldQuestion("memory_temperature_celsius", 82),
    FieldQuestion("power_capped_fraction", 74, _NANO, is_counter=True),
    FieldQuestion("software_thermal_fraction", 269, _NANO, is_counter=True),
    FieldQuestion("hardware_thermal_fraction", 270, _NANO, is_counter=True),
)

SLOW_FIELDS: Final = (
    FieldQuestion("ecc_corrected", 3),
    FieldQuestion("ecc_uncorrected", 4),
    FieldQuestion("pcie_replays", 94),
    FieldQuestion("remapped_corrected", 142),
    FieldQuestion("remapped_uncorrected", 143),
    FieldQuestion("remapping_pending", 144),
    FieldQuestion("remapping_failed", 145),
    FieldQuestion("nvlink_transmit_bytes_per_s", (138, EVERY_LINK), _KIB, is_counter=True),
    FieldQuestion("nvlink_receive_bytes_per_s", (139, EVERY_LINK), _KIB, is_counter=True),
)

GPM: Final = (
    ("graphics_active_fraction", 1),
    ("sm_active_fraction", 2),
    ("sm_occupancy_fraction", 3),
    ("tensor_active_fraction", 5),
    ("dram_active_fraction", 10),
)
"""Metrics of Hopper and later, in per cent."""

FACTS: Final = (
    Question("power_default_watts", (("nvmlDeviceGetPowerManagementDefaultLimit",),), _MILLI),
    Question("power_least_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), _MILLI, 0),
    Question("power_most_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), _MILLI, 1),
    Question("sm_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 1),)),
    Question("memory_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 2),)),
    Question("shutdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 0),)),
    Question("slowdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 1),)),
    Question("memory_most_celsius", (("nvmlDeviceGetTemperatureThreshold", 2),)),
    Question("target_celsius", (("nvmlDeviceGetTemperatureThreshold", 3),)),
    Question("pcie_generation_most", (("nvmlDeviceGetMaxPcieLinkGeneration",),)),
    Question("pcie_width_most", (("nvmlDeviceGetMaxPcieLinkWidth",),)),
    Question("ecc_enabled", (("nvmlDeviceGetEccMode",),), place=0),
    Question("mig_enabled", (("nvmlDeviceGetMigMode",),), place=0),
    Question("persistence_enabled", (("nvmlDeviceGetPersistenceMode",),)),
)

HELD_BACK_BY_MIG: Final = frozenset(
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
"""What a card in MIG mode does not tell, though it would otherwise.

**Source** nvidia-smi of an H100 and an H200 with and without MIG, driver 590.48.01 (nvidia_gpu_exporter,
internal/captures, MIT).
"""
