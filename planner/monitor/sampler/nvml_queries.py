"""NVML queries as data, the calls that read each metric, with scale factors; and how they are put to one GPU.

The numbers are NVML's own (nvml.h): clocks (SM 1, memory 2), sensors (0), thresholds, directions, field values and GPM
metrics.
"""

from typing import Any, Final, NamedTuple

from planner.monitor.nvml import (
    ARGUMENT_VERSION_MISMATCH,
    CARD_GONE_CODES,
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SESSION_OVER_CODES,
    Handle,
    Nvml,
    NvmlFailure,
    missing_reading_cause,
)
from planner.monitor.readings.metrics import BY_NAME, Metric, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.units import MILLI, NANO, PER_CENT

EVERY_LINK: Final = 0xFFFFFFFF
"""Scope of NVLink counters that sums all links (nvml.h, at NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)."""


class NvmlQuery(NamedTuple):
    """Query of one quantity by its own NVML call; `calls` are alternatives, newest first.

    The result is divided by `per`; of several values, the value at the index or with the name `place` is used.
    """

    name: str
    calls: tuple[tuple[str, *tuple[int, ...]], ...]
    per: float = 1
    place: int | str | None = None


class FieldQuery(NamedTuple):
    """Query of one quantity by an NVML field number; a counter is converted to its rate per second."""

    name: str
    field: int | tuple[int, int]
    per: float = 1
    is_counter: bool = False


# Division gives the nearest number: 57 / 100 is 0.57, while 57 * 0.01 is not.
_KIB: Final = 1 / 1024
_KB: Final = 1 / 1000

FAST_QUERIES: Final = (
    NvmlQuery(
        "temperature_celsius",
        (("nvmlDeviceGetTemperatureV", 0), ("nvmlDeviceGetTemperature", 0)),
    ),
    NvmlQuery("power_reported_watts", (("nvmlDeviceGetPowerUsage",),), MILLI),
    NvmlQuery("sm_clock_mhz", (("nvmlDeviceGetClockInfo", 1),)),
    NvmlQuery("memory_clock_mhz", (("nvmlDeviceGetClockInfo", 2),)),
    NvmlQuery(
        "clock_reasons",
        (("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",)),
    ),
    NvmlQuery("encoder_fraction", (("nvmlDeviceGetEncoderUtilization",),), PER_CENT, 0),
    NvmlQuery("decoder_fraction", (("nvmlDeviceGetDecoderUtilization",),), PER_CENT, 0),
)

SLOW_QUERIES: Final = (
    NvmlQuery("fan_fraction", (("nvmlDeviceGetFanSpeed",),), PER_CENT),
    NvmlQuery("performance_state", (("nvmlDeviceGetPerformanceState",),)),
    # 0 mains, 1 battery, 2 an adapter that is too weak (nvml.h, NVML_POWER_SOURCE_*).
    NvmlQuery("power_source", (("nvmlDeviceGetPowerSource",),)),
    NvmlQuery("power_limit_watts", (("nvmlDeviceGetEnforcedPowerLimit",),), MILLI),
    NvmlQuery("temperature_margin_celsius", (("nvmlDeviceGetMarginTemperature",),)),
    # Each call measures for 20 ms and returns KB/s.
    NvmlQuery("pcie_transmit_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 0),), _KB),
    NvmlQuery("pcie_receive_bytes_per_s", (("nvmlDeviceGetPcieThroughput", 1),), _KB),
    NvmlQuery("pcie_generation", (("nvmlDeviceGetCurrPcieLinkGeneration",),)),
    NvmlQuery("pcie_width", (("nvmlDeviceGetCurrPcieLinkWidth",),)),
    NvmlQuery("jpeg_fraction", (("nvmlDeviceGetJpgUtilization",),), PER_CENT, 0),
    NvmlQuery("ofa_fraction", (("nvmlDeviceGetOfaUtilization",),), PER_CENT, 0),
)

FAST_FIELD_QUERIES: Final = (
    FieldQuery("energy_joules", 83, MILLI),
    FieldQuery("memory_temperature_celsius", 82),
    FieldQuery("power_capped_fraction", 74, NANO, is_counter=True),
)

THERMAL_METRICS: Final = ("software_thermal_fraction", "hardware_thermal_fraction")
"""Shares of time slowed by heat; the numbers of their fields depend on the driver."""
# Headers 575.51 and 580.65 number them 251 and 252, headers from 580.82 on 269 and 270. The other pair means power
# smoothing, which answers 0. Drivers between the two headers, and before 575, are not asked.
_THERMAL_FIELDS: Final = (((580, 82), (269, 270)), ((580, 66), ()), ((575,), (251, 252)))


def thermal_field_queries(driver_version: str) -> tuple[FieldQuery, ...]:
    """Return the queries of the time slowed by heat that a driver understands; none for a driver without them.

    **Source** NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN and _HW_ in nvidia-ml-py 12.570.172 (without them),
    12.575.51, 13.580.65 (251, 252), 13.580.82 and 13.615.71 (269, 270), read 2026-11-23.
    """
    version = tuple(int(part) for part in driver_version.split(".") if part.isdigit())
    fields: tuple[int, ...] = next((fields for since, fields in _THERMAL_FIELDS if version >= since), ())
    return tuple(
        FieldQuery(name, field, NANO, is_counter=True) for name, field in zip(THERMAL_METRICS, fields, strict=False)
    )


SLOW_FIELD_QUERIES: Final = (
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

RARE_QUERIES: Final = (
    NvmlQuery("bar1_used_bytes", (("nvmlDeviceGetBAR1MemoryInfo",),), place="bar1Used"),
    NvmlQuery("compute_mode", (("nvmlDeviceGetComputeMode",),)),
)

RARE_FIELD_QUERIES: Final = (
    FieldQuery("ecc_corrected_lifetime", 5),
    FieldQuery("ecc_uncorrected_lifetime", 6),
    FieldQuery("retired_corrected", 29),
    FieldQuery("retired_uncorrected", 30),
    FieldQuery("retirement_pending", 31),
)

LINK_COUNT_FIELD: Final = 91
"""Number of the field with the number of a GPU's NVLinks (NVML_FI_DEV_NVLINK_LINK_COUNT)."""
LINK_FIELDS: Final = (165, 164, 161, 162, 163)
"""Fields of one NVLink, its number as their scope: state, speed in MB/s, and errors: replays, recoveries, CRC."""
LINK_METRICS: Final = ("nvlink_active_links", "nvlink_errors")
"""Quantities that are summed over a GPU's NVLinks."""
FABRIC_STATE: Final = "fabric_state"

GPM_METRICS: Final = (
    ("graphics_active_fraction", 1),
    ("sm_active_fraction", 2),
    ("sm_occupancy_fraction", 3),
    ("tensor_active_fraction", 5),
    ("dram_active_fraction", 10),
    ("fp64_active_fraction", 11),
    ("fp32_active_fraction", 12),
    ("fp16_active_fraction", 13),
)
"""GPM metrics of Hopper and later, in percent, with their numbers in NVML."""

FACT_QUERIES: Final = (
    NvmlQuery("bar1_total_bytes", (("nvmlDeviceGetBAR1MemoryInfo",),), place="bar1Total"),
    NvmlQuery("power_default_watts", (("nvmlDeviceGetPowerManagementDefaultLimit",),), MILLI),
    NvmlQuery("power_least_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), MILLI, 0),
    NvmlQuery("power_most_watts", (("nvmlDeviceGetPowerManagementLimitConstraints",),), MILLI, 1),
    NvmlQuery("sm_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 1),)),
    NvmlQuery("memory_clock_most_mhz", (("nvmlDeviceGetMaxClockInfo", 2),)),
    NvmlQuery("shutdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 0),)),
    NvmlQuery("slowdown_celsius", (("nvmlDeviceGetTemperatureThreshold", 1),)),
    NvmlQuery("memory_most_celsius", (("nvmlDeviceGetTemperatureThreshold", 2),)),
    NvmlQuery("target_celsius", (("nvmlDeviceGetTemperatureThreshold", 3),)),
    NvmlQuery("pcie_generation_most", (("nvmlDeviceGetMaxPcieLinkGeneration",),)),
    NvmlQuery("pcie_width_most", (("nvmlDeviceGetMaxPcieLinkWidth",),)),
    NvmlQuery("ecc_enabled", (("nvmlDeviceGetEccMode",),), place=0),
    NvmlQuery("mig_enabled", (("nvmlDeviceGetMigMode",),), place=0),
    NvmlQuery("persistence_enabled", (("nvmlDeviceGetPersistenceMode",),)),
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
        "nvlink_active_links",
        "nvlink_errors",
        "remapped_corrected",
        "remapped_uncorrected",
        "remapping_pending",
        "remapping_failed",
    }
)
"""Quantities that a GPU does not report in MIG mode, although it does otherwise.

**Source** nvidia-smi of an H100 and an H200 with and without MIG, driver 590.48.01 (nvidia_gpu_exporter,
internal/captures, MIT).
"""


# NVML_VALUE_NOT_AVAILABLE, as an unsigned int.
_NOT_AVAILABLE: Final = 0xFFFFFFFF
_CODES_FOR_OLDER_CALL: Final = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED})
_PERMANENT_CAUSES: Final = frozenset({Cause.NOT_SUPPORTED, Cause.MISSING_SYMBOL, Cause.NO_PERMISSION, Cause.MIG})


class CardLostError(Exception):
    """The GPU no longer responds, or requires a reset, and must not be queried again."""

    def __init__(self, uuid: str, failure: NvmlFailure) -> None:
        super().__init__(str(failure))
        self.uuid, self.failure = uuid, failure
        self.requires_reset = failure.code == RESET_REQUIRED


class SessionOverError(Exception):
    """NVML must be initialized again: the driver was unloaded, reset or replaced, or handles are stale."""


class CardQueries:
    """Queries to one GPU; unsupported quantities are not queried again."""

    def __init__(self, nvml: Nvml, uuid: str, handle: Handle, *, in_mig_mode: bool = False) -> None:
        self.nvml, self.uuid, self.handle = nvml, uuid, handle
        self._in_mig_mode = in_mig_mode
        self._unsupported: dict[str, Reading] = {}
        self._working_calls: dict[str, int] = {}
        self._has_answered: set[str] = set()

    def read(self, query: NvmlQuery) -> Reading:
        """Return the reading of one quantity, or the cause of its absence.

        Raises:
            CardLostError: If the GPU is lost.
            SessionOverError: If the session is invalid.
        """
        last_failure: NvmlFailure | None = None
        for index in range(self._working_calls.get(query.name, 0), len(query.calls)):
            name, *numbers = query.calls[index]
            try:
                value = self.nvml.call(name, self.uuid, self.handle, *numbers)
            except NvmlFailure as failure:
                last_failure = failure
                if failure.code not in _CODES_FOR_OLDER_CALL:
                    break
            else:
                self._working_calls[query.name] = index
                self._has_answered.add(query.name)
                return _scaled_reading(BY_NAME[query.name], value, query)
        return self.reading_after_failure(query.name, last_failure or NvmlFailure("no call", NOT_SUPPORTED))

    def reading_after_failure(self, name: str, failure: NvmlFailure) -> Reading:
        """Return a reading without a value after a failed call, with the cause of the failure.

        Raises:
            CardLostError: If the GPU is lost.
            SessionOverError: If the session is invalid.
        """
        if failure.code in CARD_GONE_CODES or failure.code == RESET_REQUIRED:
            raise CardLostError(self.uuid, failure)
        if failure.code in SESSION_OVER_CODES:
            raise SessionOverError(str(failure))
        if failure.code == INVALID_ARGUMENT and name in self._has_answered:
            self._raise_if_handle_is_stale()
        return self.missing_reading(name, missing_reading_cause(failure.code))

    def missing_reading(self, name: str, cause: Cause) -> Reading:
        """Return a reading without a value; a quantity with a permanent cause is not queried again."""
        if cause is Cause.NOT_SUPPORTED and self._in_mig_mode and name in HIDDEN_BY_MIG:
            cause = Cause.MIG
        reading = missing(cause)
        if cause in _PERMANENT_CAUSES:
            self._unsupported[name] = reading
        return reading

    def unsupported_reading(self, name: str) -> Reading | None:
        """Return the reading of a permanently missing quantity, None if the quantity may be supported."""
        return self._unsupported.get(name)

    @property
    def unsupported_readings(self) -> dict[str, Reading]:
        """Return the readings of all permanently missing quantities."""
        return dict(self._unsupported)

    def note_answer(self, name: str) -> None:
        """Record that a quantity was read by a call that returns several quantities."""
        self._has_answered.add(name)

    def _raise_if_handle_is_stale(self) -> None:
        """Check that the handle still refers to this GPU, after the GPU rejected a query."""
        try:
            uuid = self.nvml.call_for_text("nvmlDeviceGetUUID", self.uuid, self.handle)
        except NvmlFailure as failure:
            raise SessionOverError(f"the handle of {self.uuid} is stale: {failure}") from failure
        if uuid != self.uuid:
            raise SessionOverError(f"the handle of {self.uuid} leads to {uuid}")


def _scaled_reading(metric: Metric, value: Any, query: NvmlQuery) -> Reading:
    place = query.place
    number = value if place is None else getattr(value, place) if isinstance(place, str) else value[place]
    if number == _NOT_AVAILABLE and metric.unit != "bits":
        return missing(Cause.HIDDEN)
    return checked_reading(metric, number if query.per == 1 else number / query.per)
