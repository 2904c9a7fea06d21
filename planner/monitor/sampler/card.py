"""One card or MIG instance that is read again and again, with its GPM metrics."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from planner.monitor.host.usage import EnergyMeter, Rates
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
from planner.monitor.readings.metrics import BY_NAME, judged
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sampler.answers import Answers, CardLostError
from planner.monitor.sampler.finding import Found
from planner.monitor.sampler.questions import FAST, FAST_FIELDS, GPM, SLOW, SLOW_FIELDS, FieldQuestion, Question

_NUMBERS: Final = tuple(number for _, number in GPM)


class GpmMeter:
    """The GPM metrics of one card or instance; whether it has any is asked, never known by its name."""

    def __init__(self, nvml: Nvml, device: Device, handle: Handle, parent_handle: Handle | None) -> None:
        self._nvml, self._device = nvml, device
        self._handle = handle if parent_handle is None else parent_handle
        self._samples: tuple[Any, Any] | None = None
        self._request: Any = None
        self._has_first = False
        self._never: Cause | None = None

    def read(self) -> dict[str, Reading]:
        """Return the metrics since the last time this was called, which must be 100 ms ago or more.

        Raises:
            NvmlFailure: If the card or the session is gone.
        """
        if self._samples is None and self._never is None:
            self._start()
        if self._samples is None:
            return _all(self._never or Cause.NOT_SUPPORTED)
        first, second = self._samples
        self._take(second)
        self._samples = (second, first)
        if not self._has_first:
            self._has_first = True
            return _all(Cause.NOT_YET)
        values = self._nvml.gpm(self._device.uuid, self._request, first, second)
        return {name: _reading(name, value) for (name, _), value in zip(GPM, values, strict=True)}

    def close(self) -> None:
        """Give the samples back."""
        for sample in self._samples or ():
            with suppress(NvmlFailure):
                self._nvml.call("nvmlGpmSampleFree", self._device.uuid, sample)
        self._samples = None

    def _start(self) -> None:
        uuid = self._device.uuid
        try:
            if not self._nvml.call("nvmlGpmQueryDeviceSupport", uuid, self._handle).isSupportedDevice:
                self._never = Cause.NOT_SUPPORTED
                return
            self._samples = (self._nvml.call("nvmlGpmSampleAlloc", uuid), self._nvml.call("nvmlGpmSampleAlloc", uuid))
        except NvmlFailure as failure:
            if failure.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                raise
            self._never = cause_of(failure.code)
            return
        self._request = self._nvml.gpm_request(_NUMBERS)

    def _take(self, sample: Any) -> None:
        uuid, instance = self._device.uuid, self._device.mig_instance
        if instance is None:
            self._nvml.call("nvmlGpmSampleGet", uuid, self._handle, sample)
        else:
            self._nvml.call("nvmlGpmMigSampleGet", uuid, self._handle, instance[0], sample)


def _reading(name: str, value: float | Cause) -> Reading:
    return missing(value) if isinstance(value, Cause) else judged(BY_NAME[name], value / _PER_CENT)


def _all(cause: Cause) -> dict[str, Reading]:
    return {name: missing(cause) for name, _ in GPM}


_PER_CENT: Final = 100
_UTILIZATION: Final = "utilization_fraction"
_CONTROLLER: Final = "memory_controller_fraction"
_MEMORY: Final = ("memory_used_bytes", "memory_reserved_bytes", "memory_free_bytes")
_ONLY_OF_CARDS: Final = (
    *(question.name for questions in (FAST, FAST_FIELDS, SLOW, SLOW_FIELDS) for question in questions),
    _UTILIZATION,
    _CONTROLLER,
    "power_watts",
)

# A container whose rights to the devices were withdrawn gets an unknown error for everything (nvidia-docker, issue
# 1671); one look may fail for a passing reason.
_MOST_SILENT_LOOKS: Final = 3

_Readings = dict[str, Reading]


class Card:
    """Reads one card; of a MIG instance only its memory and, where there is GPM, its activity are told.

    Every method that reads raises `CardLostError` if the card is gone, and `SessionOverError` if the whole session is.
    """

    def __init__(self, nvml: Nvml, found: Found) -> None:
        self.device: Device = found.device
        self.handle = found.handle
        self._nvml = nvml
        self._answers = Answers(
            nvml, found.device.uuid, found.handle, in_mig_mode=bool(found.device.fact("mig_enabled"))
        )
        self._gpm = GpmMeter(nvml, found.device, found.handle, found.parent_handle)
        self._rates = Rates()
        self._energy = EnergyMeter()
        self._is_instance = found.device.mig_parent is not None
        self._silent_looks = 0

    @property
    def supports_mig(self) -> bool:
        """Return whether it is a card that can have instances, whether it has some now or not."""
        return self.device.fact("mig_enabled") is not None

    def read_fast(self, now: float) -> _Readings:
        """Return what changes quickly, without what is known never to be told; `now` is monotonic, in seconds."""
        readings = self._memory()
        if not self._is_instance:
            readings |= self._utilization() | self._ask_all(FAST) | self._fields(FAST_FIELDS, now)
            power = self._power(readings, now)
            if power is not None:
                readings["power_watts"] = power
        self._check_silence(readings)
        return readings

    def read_slow(self, now: float) -> _Readings:
        """Return what changes slowly or takes the driver long, and why the rest is never told."""
        if self._is_instance:
            readings = {name: missing(Cause.MIG) for name in _ONLY_OF_CARDS}
        else:
            readings = self._ask_all(SLOW) | self._fields(SLOW_FIELDS, now)
        return self._answers.nevers | readings | self._read_gpm()

    def check(self, failure: NvmlFailure) -> None:
        """Raise what a failed call about this card means, if it means more than that this call failed."""
        self._answers.failed("", failure)

    def close(self) -> None:
        """Give back what was taken from the library."""
        self._gpm.close()

    def _check_silence(self, readings: _Readings) -> None:
        """Take a card for lost that answers nothing look after look, though no call says that it is."""
        answers = any(reading.value is not None for reading in readings.values())
        fails = any(reading.cause is Cause.FAILED for reading in readings.values())
        self._silent_looks = self._silent_looks + 1 if fails and not answers else 0
        if self._silent_looks >= _MOST_SILENT_LOOKS:
            raise CardLostError(self.device.uuid, NvmlFailure("every call", UNKNOWN))

    def _memory(self) -> _Readings:
        try:
            total, used, reserved, free = self._nvml.memory(self.device.uuid, self.handle)
        except NvmlFailure as failure:
            return {name: self._answers.failed(name, failure) for name in _MEMORY}
        self._answers.note_answer(_MEMORY[0])
        return {
            "memory_used_bytes": judged(BY_NAME["memory_used_bytes"], used, total),
            "memory_free_bytes": judged(BY_NAME["memory_free_bytes"], free, total),
            "memory_reserved_bytes": missing(Cause.MISSING_SYMBOL)
            if reserved is None
            else judged(BY_NAME["memory_reserved_bytes"], reserved, total),
        }

    def _ask_all(self, questions: Sequence[Question]) -> _Readings:
        asked = (question for question in questions if not self._answers.never(question.name))
        return {question.name: self._answers.ask(question) for question in asked}

    def _utilization(self) -> _Readings:
        if self._answers.never(_UTILIZATION):
            return {}
        try:
            rates = self._nvml.call("nvmlDeviceGetUtilizationRates", self.device.uuid, self.handle)
        except NvmlFailure as failure:
            return {name: self._answers.failed(name, failure) for name in (_UTILIZATION, _CONTROLLER)}
        self._answers.note_answer(_UTILIZATION)
        return {
            _UTILIZATION: judged(BY_NAME[_UTILIZATION], rates.gpu / _PER_CENT),
            _CONTROLLER: judged(BY_NAME[_CONTROLLER], rates.memory / _PER_CENT),
        }

    def _fields(self, questions: Sequence[FieldQuestion], now: float) -> _Readings:
        asked = [question for question in questions if not self._answers.never(question.name)]
        if not asked:
            return {}
        try:
            values = self._nvml.fields(self.device.uuid, self.handle, [question.field for question in asked])
        except NvmlFailure as failure:
            return {question.name: self._answers.failed(question.name, failure) for question in asked}
        return {question.name: self._field(question, value, now) for question, value in zip(asked, values, strict=True)}

    def _field(self, question: FieldQuestion, value: float | Cause, now: float) -> Reading:
        if isinstance(value, Cause):
            if value is Cause.LOST:
                raise CardLostError(self.device.uuid, NvmlFailure("nvmlDeviceGetFieldValues", GPU_IS_LOST))
            return self._answers.lacking(question.name, value)
        scaled = value / question.per
        if not question.is_counter:
            return judged(BY_NAME[question.name], scaled)
        rate = self._rates.per_second(question.name, now, scaled)
        return missing(Cause.NOT_YET) if rate is None else judged(BY_NAME[question.name], rate)

    def _power(self, readings: _Readings, now: float) -> Reading | None:
        """Return the mean power of the last second by the energy counter, or else what the driver reports."""
        energy, reported = readings.get("energy_joules"), readings.get("power_reported_watts")
        watts = None if energy is None or energy.value is None else self._energy.watts(now, energy.value)
        # A counter that stands still while the card draws power is none.
        if watts is None or (watts == 0 and reported is not None and reported.value):
            return reported
        return judged(BY_NAME["power_watts"], watts)

    def _read_gpm(self) -> _Readings:
        try:
            return self._gpm.read()
        except NvmlFailure as failure:
            return {name: self._answers.failed(name, failure) for name, _ in GPM}
