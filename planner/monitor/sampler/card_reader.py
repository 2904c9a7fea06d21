"""Periodic reading of one GPU or MIG instance, including its GPM metrics."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import psutil

from planner.monitor.host.usage import CounterRates, EnergyMeter
from planner.monitor.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    UNKNOWN,
    Handle,
    Nvml,
    NvmlFailure,
    missing_reading_cause,
)
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Link
from planner.monitor.sampler.discovery import DiscoveredDevice
from planner.monitor.sampler.nvml_queries import (
    FABRIC_STATE,
    FAST_FIELD_QUERIES,
    FAST_QUERIES,
    GPM_METRICS,
    LINK_COUNT_FIELD,
    LINK_FIELDS,
    LINK_METRICS,
    RARE_FIELD_QUERIES,
    RARE_QUERIES,
    SLOW_FIELD_QUERIES,
    SLOW_QUERIES,
    THERMAL_METRICS,
    CardLostError,
    CardQueries,
    FieldQuery,
    NvmlQuery,
    thermal_field_queries,
)
from planner.units import MB, PER_CENT

_GPM_NUMBERS: Final = tuple(number for _, number in GPM_METRICS)


class GpmMeter:
    """GPM metrics of one GPU or MIG instance; support is queried, never inferred from the GPU's name."""

    def __init__(self, nvml: Nvml, device: Device, handle: Handle, parent_handle: Handle | None) -> None:
        self._nvml, self._device = nvml, device
        self._handle = handle if parent_handle is None else parent_handle
        self._samples: tuple[Any, Any] | None = None
        self._request: Any = None
        self._has_first_sample = False
        self._unsupported: Cause | None = None

    def read(self) -> dict[str, Reading]:
        """Return the GPM metrics since the previous call, which must be at least 100 ms ago.

        Raises:
            NvmlFailure: If the GPU or the session is lost.
        """
        if self._samples is None and self._unsupported is None:
            self._query_support()
        if self._samples is None:
            return _all_missing_readings(self._unsupported or Cause.NOT_SUPPORTED)
        first, second = self._samples
        self._take_sample(second)
        self._samples = (second, first)
        if not self._has_first_sample:
            self._has_first_sample = True
            return _all_missing_readings(Cause.NOT_YET)
        values = self._nvml.gpm_values(self._device.uuid, self._request, first, second)
        return {name: _gpm_reading(name, value) for (name, _), value in zip(GPM_METRICS, values, strict=True)}

    def close(self) -> None:
        """Free the GPM samples."""
        for sample in self._samples or ():
            with suppress(NvmlFailure):
                self._nvml.call("nvmlGpmSampleFree", self._device.uuid, sample)
        self._samples = None

    def _query_support(self) -> None:
        uuid = self._device.uuid
        try:
            if not self._nvml.call("nvmlGpmQueryDeviceSupport", uuid, self._handle).isSupportedDevice:
                self._unsupported = Cause.NOT_SUPPORTED
                return
            self._samples = (self._nvml.call("nvmlGpmSampleAlloc", uuid), self._nvml.call("nvmlGpmSampleAlloc", uuid))
        except NvmlFailure as failure:
            if failure.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                raise
            self._unsupported = missing_reading_cause(failure.code)
            return
        self._request = self._nvml.gpm_request(_GPM_NUMBERS)

    def _take_sample(self, sample: Any) -> None:
        uuid, instance = self._device.uuid, self._device.mig_instance
        if instance is None:
            self._nvml.call("nvmlGpmSampleGet", uuid, self._handle, sample)
        else:
            self._nvml.call("nvmlGpmMigSampleGet", uuid, self._handle, instance[0], sample)


def _gpm_reading(name: str, value: float | Cause) -> Reading:
    return missing(value) if isinstance(value, Cause) else checked_reading(BY_NAME[name], value / PER_CENT)


def _all_missing_readings(cause: Cause) -> dict[str, Reading]:
    return {name: missing(cause) for name, _ in GPM_METRICS}


# Bits of NVML's clock reasons by the quantity that counts their time.
_REASON_BITS: Final = {"software_thermal_fraction": 0x20, "hardware_thermal_fraction": 0x40}


def _drop_contradicted_zeros(readings: dict[str, Reading]) -> None:
    """Replace a time slowed by heat of 0 while the driver says that heat slows the GPU: its counter is broken."""
    reasons = readings.get("clock_reasons")
    for name, bit in _REASON_BITS.items():
        if reasons is not None and int(reasons.value or 0) & bit and name in readings and readings[name].value == 0:
            readings[name] = missing(Cause.UNREADABLE)


_UTILIZATION: Final = "utilization_fraction"
_MEMORY_CONTROLLER: Final = "memory_controller_fraction"
_MEMORY: Final = ("memory_used_bytes", "memory_reserved_bytes", "memory_free_bytes")
_CARD_ONLY_METRICS: Final = (
    *(
        query.name
        for queries in (
            FAST_QUERIES,
            FAST_FIELD_QUERIES,
            SLOW_QUERIES,
            SLOW_FIELD_QUERIES,
            RARE_QUERIES,
            RARE_FIELD_QUERIES,
        )
        for query in queries
    ),
    _UTILIZATION,
    *THERMAL_METRICS,
    _MEMORY_CONTROLLER,
    "power_watts",
    *LINK_METRICS,
    FABRIC_STATE,
)
# What NVML reports of no GPU.
_NEVER_REPORTED: Final = ("hotspot_temperature_celsius", "shared_memory_used_bytes")
# Quantities that hardly ever change, some of which the driver reads from the GPU link by link.
_RARE_SECONDS: Final = 30.0

# In a container that lost its device permissions, every call returns an unknown error (nvidia-docker, issue 1671);
# a single failed read may be temporary.
_MAX_SILENT_READS: Final = 3

_ReadingsByName = dict[str, Reading]


class CardReader:
    """Reads one GPU; from a MIG instance only memory and, if GPM is supported, activity.

    Reading methods raise `CardLostError` if the GPU is lost, and `SessionOverError` if the NVML session is invalid.
    """

    def __init__(self, nvml: Nvml, discovered: DiscoveredDevice, driver_version: str) -> None:
        self.device: Device = discovered.device
        self.handle = discovered.handle
        self._nvml = nvml
        self._queries = CardQueries(
            nvml, discovered.device.uuid, discovered.handle, in_mig_mode=bool(discovered.device.fact("mig_enabled"))
        )
        self._gpm = GpmMeter(nvml, discovered.device, discovered.handle, discovered.parent_handle)
        self._rates = CounterRates()
        self._energy = EnergyMeter()
        self._is_instance = discovered.device.mig_parent is not None
        thermal_queries = thermal_field_queries(driver_version)
        self._fast_fields = (*FAST_FIELD_QUERIES, *thermal_queries)
        if not thermal_queries:
            for name in THERMAL_METRICS:
                self._queries.missing_reading(name, Cause.MISSING_SYMBOL)
        for name in _NEVER_REPORTED:
            self._queries.missing_reading(name, Cause.NOT_SUPPORTED)
        self._silent_reads = 0
        self._next_rare = 0.0
        self.new_links: tuple[Link, ...] = ()

    @property
    def supports_mig(self) -> bool:
        """Return whether the GPU supports MIG, even if MIG is disabled."""
        return self.device.fact("mig_enabled") is not None

    def read_fast(self, now: float) -> _ReadingsByName:
        """Return fast-changing quantities, except permanently missing quantities; `now` is monotonic, in seconds."""
        readings = self._memory_readings()
        if not self._is_instance:
            readings |= (
                self._utilization_readings()
                | self._query_readings(FAST_QUERIES)
                | self._field_readings(self._fast_fields, now)
            )
            _drop_contradicted_zeros(readings)
            power = self._power_reading(readings, now)
            if power is not None:
                readings["power_watts"] = power
        self._raise_if_silent(readings)
        return readings

    def read_slow(self, now: float) -> _ReadingsByName:
        """Return quantities that change or are read slowly, and the causes of permanently missing quantities."""
        if self._is_instance:
            readings = {name: missing(Cause.MIG) for name in _CARD_ONLY_METRICS}
        else:
            readings = self._query_readings(SLOW_QUERIES) | self._field_readings(SLOW_FIELD_QUERIES, now)
            if now >= self._next_rare:
                self._next_rare = now + _RARE_SECONDS
                readings |= self._rare_readings(now)
        return self._queries.unsupported_readings | readings | self._gpm_readings()

    def check_failure(self, failure: NvmlFailure) -> None:
        """Raise `CardLostError` or `SessionOverError` if `failure` implies a lost GPU or an invalid session."""
        self._queries.reading_after_failure("", failure)

    def close(self) -> None:
        """Free the NVML resources of the GPU."""
        self._gpm.close()

    def _raise_if_silent(self, readings: _ReadingsByName) -> None:
        """Raise `CardLostError` if all calls failed several times in a row, even without the code for a lost GPU."""
        answers = any(reading.value is not None for reading in readings.values())
        fails = any(reading.cause is Cause.FAILED for reading in readings.values())
        self._silent_reads = self._silent_reads + 1 if fails and not answers else 0
        if self._silent_reads >= _MAX_SILENT_READS:
            raise CardLostError(self.device.uuid, NvmlFailure("every call", UNKNOWN))

    def _memory_readings(self) -> _ReadingsByName:
        try:
            total, used, reserved, free = self._nvml.memory_bytes(self.device.uuid, self.handle)
        except NvmlFailure as failure:
            of_machine = unified_memory_readings() if self.device.fact("unified_memory") else {}
            others = (name for name in _MEMORY if name not in of_machine)
            return {name: self._queries.reading_after_failure(name, failure) for name in others} | of_machine
        self._queries.note_answer(_MEMORY[0])
        return {
            "memory_used_bytes": checked_reading(BY_NAME["memory_used_bytes"], used, total),
            "memory_free_bytes": checked_reading(BY_NAME["memory_free_bytes"], free, total),
            "memory_reserved_bytes": missing(Cause.MISSING_SYMBOL)
            if reserved is None
            else checked_reading(BY_NAME["memory_reserved_bytes"], reserved, total),
        }

    def _query_readings(self, queries: Sequence[NvmlQuery]) -> _ReadingsByName:
        supported = (query for query in queries if not self._queries.unsupported_reading(query.name))
        return {query.name: self._queries.read(query) for query in supported}

    def _utilization_readings(self) -> _ReadingsByName:
        if self._queries.unsupported_reading(_UTILIZATION):
            return {}
        try:
            rates = self._nvml.call("nvmlDeviceGetUtilizationRates", self.device.uuid, self.handle)
        except NvmlFailure as failure:
            return {
                name: self._queries.reading_after_failure(name, failure) for name in (_UTILIZATION, _MEMORY_CONTROLLER)
            }
        self._queries.note_answer(_UTILIZATION)
        return {
            _UTILIZATION: checked_reading(BY_NAME[_UTILIZATION], rates.gpu / PER_CENT),
            _MEMORY_CONTROLLER: checked_reading(BY_NAME[_MEMORY_CONTROLLER], rates.memory / PER_CENT),
        }

    def _field_readings(self, queries: Sequence[FieldQuery], now: float) -> _ReadingsByName:
        supported = [query for query in queries if not self._queries.unsupported_reading(query.name)]
        if not supported:
            return {}
        try:
            values = self._nvml.field_values(self.device.uuid, self.handle, [query.field for query in supported])
        except NvmlFailure as failure:
            return {query.name: self._queries.reading_after_failure(query.name, failure) for query in supported}
        return {
            query.name: self._field_reading(query, value, now) for query, value in zip(supported, values, strict=True)
        }

    def _field_reading(self, query: FieldQuery, value: float | Cause, now: float) -> Reading:
        if isinstance(value, Cause):
            if value is Cause.LOST:
                raise CardLostError(self.device.uuid, NvmlFailure("nvmlDeviceGetFieldValues", GPU_IS_LOST))
            return self._queries.missing_reading(query.name, value)
        scaled = value / query.per
        if not query.is_counter:
            return checked_reading(BY_NAME[query.name], scaled)
        rate = self._rates.per_second(query.name, now, scaled)
        return missing(Cause.NOT_YET) if rate is None else checked_reading(BY_NAME[query.name], rate)

    def _rare_readings(self, now: float) -> _ReadingsByName:
        readings = self._query_readings(RARE_QUERIES) | self._field_readings(RARE_FIELD_QUERIES, now)
        if not self._queries.unsupported_reading(FABRIC_STATE):
            try:
                state = self._nvml.fabric_state(self.device.uuid, self.handle)
                readings[FABRIC_STATE] = checked_reading(BY_NAME[FABRIC_STATE], state)
            except NvmlFailure as failure:
                readings[FABRIC_STATE] = self._queries.reading_after_failure(FABRIC_STATE, failure)
        return readings | self._link_readings()

    def _link_readings(self) -> _ReadingsByName:
        """Read every NVLink into `new_links`, all in one call, and return the sums over the links."""
        if self._queries.unsupported_reading(LINK_METRICS[0]):
            return {}
        try:
            (count,) = self._nvml.field_values(self.device.uuid, self.handle, [LINK_COUNT_FIELD])
            if isinstance(count, Cause) or not count:
                cause = count if isinstance(count, Cause) else Cause.NOT_SUPPORTED
                return {name: self._queries.missing_reading(name, cause) for name in LINK_METRICS}
            fields = [(field, link) for link in range(int(count)) for field in LINK_FIELDS]
            values = self._nvml.field_values(self.device.uuid, self.handle, fields)
        except NvmlFailure as failure:
            return {name: self._queries.reading_after_failure(name, failure) for name in LINK_METRICS}
        links = (values[at : at + len(LINK_FIELDS)] for at in range(0, len(values), len(LINK_FIELDS)))
        self.new_links = tuple(_link(number, link) for number, link in enumerate(links))
        sums = (sum(link.is_active for link in self.new_links), sum(link.errors for link in self.new_links))
        return {name: checked_reading(BY_NAME[name], value) for name, value in zip(LINK_METRICS, sums, strict=True)}

    def _power_reading(self, readings: _ReadingsByName, now: float) -> Reading | None:
        """Return the mean power over the last second from the energy counter, or else the reported power."""
        energy, reported = readings.get("energy_joules"), readings.get("power_reported_watts")
        watts = None if energy is None or energy.value is None else self._energy.watts(now, energy.value)
        # A counter that does not grow while the GPU draws power is broken.
        if watts is None or (watts == 0 and reported is not None and reported.value):
            return reported
        return checked_reading(BY_NAME["power_watts"], watts)

    def _gpm_readings(self) -> _ReadingsByName:
        try:
            return self._gpm.read()
        except NvmlFailure as failure:
            return {name: self._queries.reading_after_failure(name, failure) for name, _ in GPM_METRICS}


def unified_memory_readings() -> _ReadingsByName:
    """Return the memory of the machine, which is also that of a GPU without any of its own."""
    memory = psutil.virtual_memory()
    return {
        "memory_used_bytes": Reading(memory.total - memory.available),
        "memory_free_bytes": Reading(memory.available),
    }


def _link(number: int, values: Sequence[float | Cause]) -> Link:
    state, speed, *errors = (None if isinstance(value, Cause) else value for value in values)
    counts = (None if count is None else int(count) for count in errors)
    return Link(number, bool(state), None if speed is None else speed * MB, *counts)
