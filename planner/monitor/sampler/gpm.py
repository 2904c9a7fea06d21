"""GPM: how busy the parts of a card were between two looks, on Hopper and later, if the driver answers."""

from contextlib import suppress
from typing import Any, Final

from planner.monitor.device import Device
from planner.monitor.metrics import BY_NAME, judged
from planner.monitor.nvml import FUNCTION_NOT_FOUND, NOT_SUPPORTED, Handle, Nvml, NvmlFailure, cause_of
from planner.monitor.reading import Cause, Reading, missing
from planner.monitor.sampler.questions import GPM

_PER_CENT: Final = 100
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
