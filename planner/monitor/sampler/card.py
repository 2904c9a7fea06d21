"""Periodic reading of one card or MIG instance, including its GPM metrics."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from planner.monitor.host.usage import CounterRates, EnergyMeter
from planner.monitor.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    UNKNOWN,
    Handle,
    Nvml,
    NvmlFailure,
    cause_of,
)
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sampler.card_queries import CardLostError, CardQueries
from planner.monitor.sampler.discovery import DiscoveredDevice
from planner.monitor.sampler.nvml_queries import FAST, FAST_FIELDS, GPM, SLOW, SLOW_FIELDS, FieldQuery, Query

_NUMBERS: Final = tuple(number for _, number in GPM)


class GpmMeter:
    """GPM metrics of one card or instance; support is queried, never assumed from the card's name."""

    def __init__(self, nvml: Nvml, device: Device, handle: Handle, parent_handle: Handle | None) -> None:
        self._nvml, self._device = nvml, device
        self._handle = handle if parent_handle is None else parent_handle
        self._samples: tuple[Any, Any] | None = None
        self._request: Any = None
        self._has_first = False
        self._unsupported: Cause | None = None

    def read(self) -> dict[str, Reading]:
        """Return the metrics since the previous call, which must be at least 100 ms ago.

        Raises:
            NvmlFailure: If the card or the session is lost.
        """
        if self._samples is None and self._unsupported is None:
            self._start()
        if self._samples is None:
            return _all(self._unsupported or Cause.NOT_SUPPORTED)
        first, second = self._samples
        self._take(second)
        self._samples = (second, first)
        if not self._has_first:
            self._has_first = True
            return _all(Cause.NOT_YET)
        values = self._nvml.gpm(self._device.uuid, self._request, first, second)
        return {name: _reading(name, value) for (name, _), value in zip(GPM, values, strict=True)}

    def close(self) -> None:
        """Free the samples."""
        for sample in self._samples or ():
            with suppress(NvmlFailure):
                self._nvml.call("nvmlGpmSampleFree", self._device.uuid, sample)
        self._samples = None

    def _start(self) -> None:
        uuid = self._device.uuid
        try:
            if not self._nvml.call("nvmlGpmQueryDeviceSupport", uuid, self._handle).isSupportedDevice:
                self._unsupported = Cause.NOT_SUPPORTED
                return
            self._samples = (self._nvml.call("nvmlGpmSampleAlloc", uuid), self._nvml.call("nvmlGpmSampleAlloc", uuid))
        except NvmlFailure as failure:
            if failure.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                raise
            self._unsupported = cause_of(failure.code)
            return
        self._request = self._nvml.gpm_request(_NUMBERS)

    def _take(self, sample: Any) -> None:
        uuid, instance = self._device.uuid, self._device.mig_instance
        if instance is None:
            self._nvml.call("nvmlGpmSampleGet", uuid, self._handle, sample)
        else:
            self._nvml.call("nvmlGpmMigSampleGet", uuid, self._handle, instance[0], sample)


def _reading(name: str, value: float | Cause) -> Reading:
    return missing(value) if isinstance(value, Cause) else checked_reading(BY_NAME[name], value / _PER_CENT)


def _all(cause: Cause) -> dict[str, Reading]:
    return {name: missing(cause) for name, _ in GPM}


_PER_CENT: Final = 100
_UTILIZATION: Final = "utilization_fraction"
_CONTROLLER: Final = "memory_controller_fraction"
_MEMORY: Final = ("memory_used_bytes", "memory_reserved_bytes", "memory_free_bytes")
_NOT_OF_INSTANCES: Final = (
    *(query.name for queries in (FAST, FAST_FIELDS, SLOW, SLOW_FIELDS) for query in queries),
    _UTILIZATION,
    _CONTROLLER,
    "power_watts",
)

# A container whose rights to the devices were withdrawn gets an unknown error for everything (nvidia-docker, issue
# 1671); one look may fail for a passing reason.
_MAX_SILENT_READS: Final = 3

_Readings = dict[str, Reading]


class Card:
    """Reads one card; of a MIG instance only memory and, if GPM is supported, activity.

    Every reading method raises `CardLostError` if the card is lost, and `SessionOverError` if the session is invalid.
    """

    def __init__(self, nvml: Nvml, found: DiscoveredDevice) -> None:
        self.device: Device = found.device
        self.handle = found.handle
        self._nvml = nvml
        self._queries = CardQueries(
            nvml, found.device.uuid, found.handle, in_mig_mode=bool(found.device.fact("mig_enabled"))
        )
        self._gpm = GpmMeter(nvml, found.device, found.handle, found.parent_handle)
        self._rates = CounterRates()
        self._energy = EnergyMeter()
        self._is_instance = found.device.mig_parent is not None
        self._silent_reads = 0

    @property
    def supports_mig(self) -> bool:
        """Return whether the card can have MIG instances, enabled now or not."""
        return self.device.fact("mig_enabled") is not None

    def read_fast(self, now: float) -> _Readings:
        """Return fast-changing quantities, without permanently missing ones; `now` is monotonic, in seconds."""
        readings = self._memory()
        if not self._is_instance:
            readings |= self._utilization() | self._read_all(FAST) | self._fields(FAST_FIELDS, now)
            power = self._power(readings, now)
            if power is not None:
                readings["power_watts"] = power
        self._check_silence(readings)
        return readings

    def read_slow(self, now: float) -> _Readings:
        """Return quantities that change or are read slowly, and the causes of permanently missing ones."""
        if self._is_instance:
            readings = {name: missing(Cause.MIG) for name in _NOT_OF_INSTANCES}
        else:
            readings = self._read_all(SLOW) | self._fields(SLOW_FIELDS, now)
        return self._queries.all_unsupported | readings | self._read_gpm()

    def check_failure(self, failure: NvmlFailure) -> None:
        """Raise what a failed call implies, if it implies more than its own failure."""
        self._queries.failed("", failure)

    def close(self) -> None:
        """Free the resources of the library."""
        self._gpm.close()

    def _check_silence(self, readings: _Readings) -> None:
        """Treat a card as lost if all calls fail several times in a row without saying that it is lost."""
        answers = any(reading.value is not None for reading in readings.values())
        fails = any(reading.cause is Cause.FAILED for reading in readings.values())
        self._silent_reads = self._silent_reads + 1 if fails and not answers else 0
        if self._silent_reads >= _MAX_SILENT_READS:
            raise CardLostError(self.device.uuid, NvmlFailure("every call", UNKNOWN))

    def _memory(self) -> _Readings:
        try:
            total, used, reserved, free = self._nvml.memory(self.device.uuid, self.handle)
        except NvmlFailure as failure:
            return {name: self._queries.failed(name, failure) for name in _MEMORY}
        self._queries.note_answer(_MEMORY[0])
        return {
            "memory_used_bytes": checked_reading(BY_NAME["memory_used_bytes"], used, total),
            "memory_free_bytes": checked_reading(BY_NAME["memory_free_bytes"], free, total),
            "memory_reserved_bytes": missing(Cause.MISSING_SYMBOL)
            if reserved is None
            else checked_reading(BY_NAME["memory_reserved_bytes"], reserved, total),
        }

    def _read_all(self, queries: Sequence[Query]) -> _Readings:
        wanted = (query for query in queries if not self._queries.unsupported(query.name))
        return {query.name: self._queries.read(query) for query in wanted}

    def _utilization(self) -> _Readings:
        if self._queries.unsupported(_UTILIZATION):
            return {}
        try:
            rates = self._nvml.call("nvmlDeviceGetUtilizationRates", self.device.uuid, self.handle)
        except NvmlFailure as failure:
            return {name: self._queries.failed(name, failure) for name in (_UTILIZATION, _CONTROLLER)}
        self._queries.note_answer(_UTILIZATION)
        return {
            _UTILIZATION: checked_reading(BY_NAME[_UTILIZATION], rates.gpu / _PER_CENT),
            _CONTROLLER: checked_reading(BY_NAME[_CONTROLLER], rates.memory / _PER_CENT),
        }

    def _fields(self, queries: Sequence[FieldQuery], now: float) -> _Readings:
        wanted = [query for query in queries if not self._queries.unsupported(query.name)]
        if not wanted:
            return {}
        try:
            values = self._nvml.fields(self.device.uuid, self.handle, [query.field for query in wanted])
        except NvmlFailure as failure:
            return {query.name: self._queries.failed(query.name, failure) for query in wanted}
        return {query.name: self._field(query, value, now) for query, value in zip(wanted, values, strict=True)}

    def _field(self, query: FieldQuery, value: float | Cause, now: float) -> Reading:
        if isinstance(value, Cause):
            if value is Cause.LOST:
                raise CardLostError(self.device.uuid, NvmlFailure("nvmlDeviceGetFieldValues", GPU_IS_LOST))
            return self._queries.missing_reading(query.name, value)
        scaled = value / query.per
        if not query.is_counter:
            return checked_reading(BY_NAME[query.name], scaled)
        rate = self._rates.per_second(query.name, now, scaled)
        return missing(Cause.NOT_YET) if rate is None else checked_reading(BY_NAME[query.name], rate)

    def _power(self, readings: _Readings, now: float) -> Reading | None:
        """Return the mean power of the last second by the energy counter, or else the reported power."""
        energy, reported = readings.get("energy_joules"), readings.get("power_reported_watts")
        watts = None if energy is None or energy.value is None else self._energy.watts(now, energy.value)
        # A counter that stands still while the card draws power is none.
        if watts is None or (watts == 0 and reported is not None and reported.value):
            return reported
        return checked_reading(BY_NAME["power_watts"], watts)

    def _read_gpm(self) -> _Readings:
        try:
            return self._gpm.read()
        except NvmlFailure as failure:
            return {name: self._queries.failed(name, failure) for name, _ in GPM}
