"""NVIDIA Management Library (NVML) through nvidia-ml-py: the only file that uses the binding.

The calls for each metric are declared in `sampler/nvml_queries.py`; a new metric seldom changes this file.

Each call is counted, and named while it runs, so that another thread can report where a driver hangs. A failed call
raises `NvmlFailure`; `missing_reading_cause` maps it to the cause of a missing reading.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.sample import ProcessKind

Handle = Any

# NVML's return codes, named as in NVML without NVML_ERROR_ (nvml.h, nvmlReturn_t).
UNINITIALIZED: Final = 1
INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
DRIVER_NOT_LOADED: Final = 9
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16
OPERATING_SYSTEM: Final = 17
LIB_RM_VERSION_MISMATCH: Final = 18
NO_DATA: Final = 21
ARGUMENT_VERSION_MISMATCH: Final = 25
DEPRECATED: Final = 26
NOT_READY: Final = 27
GPU_NOT_FOUND: Final = 28
UNKNOWN: Final = 999
BAD_TEXT: Final = -1
"""Return code for an NVML string that cannot be decoded; it is ours, not one of NVML's codes."""

CARD_GONE_CODES: Final = frozenset({GPU_IS_LOST, GPU_NOT_FOUND})
"""NVML codes after which the GPU must not be queried again."""
SESSION_OVER_CODES: Final = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH})
"""NVML codes after which NVML must be initialized again."""

_CAUSES: Final = {
    INVALID_ARGUMENT: Cause.NOT_SUPPORTED,
    NOT_SUPPORTED: Cause.NOT_SUPPORTED,
    NO_PERMISSION: Cause.NO_PERMISSION,
    NOT_FOUND: Cause.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: Cause.MISSING_SYMBOL,
    GPU_IS_LOST: Cause.LOST,
    OPERATING_SYSTEM: Cause.HIDDEN,
    NO_DATA: Cause.NOT_YET,
    ARGUMENT_VERSION_MISMATCH: Cause.MISSING_SYMBOL,
    DEPRECATED: Cause.NOT_SUPPORTED,
    NOT_READY: Cause.NOT_YET,
    GPU_NOT_FOUND: Cause.LOST,
    BAD_TEXT: Cause.UNREADABLE,
}
_OPENING_FAULTS: Final = {
    NO_PERMISSION: FaultKind.NO_PERMISSION,
    DRIVER_NOT_LOADED: FaultKind.NO_DRIVER,
    LIBRARY_NOT_FOUND: FaultKind.NO_LIBRARY,
    LIB_RM_VERSION_MISMATCH: FaultKind.MISMATCH,
}
_PROCESS_CALLS: Final[Mapping[ProcessKind, str]] = {
    "compute": "nvmlDeviceGetComputeRunningProcesses",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses",
    "mps": "nvmlDeviceGetMPSComputeRunningProcesses",
}
_NOT_AVAILABLE: Final = 2**64 - 1
_MAX_PROCESSES: Final = 64
# Members of nvmlValue_t by nvmlValueType_t.
_VALUE_MEMBERS: Final = dict(enumerate(("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")))


class NvmlFailure(Exception):  # noqa: N818  # it is NVML's failure, not an error of this program
    """A failed NVML call, with its return code; `raw` holds a returned string that cannot be decoded."""

    def __init__(self, call: str, code: int, raw: bytes = b"") -> None:
        super().__init__(f"{call} returned {code}")
        self.call, self.code, self.raw = call, code, raw


class NoBindingError(Exception):
    """nvidia-ml-py cannot be used; `kind` is the reason."""

    def __init__(self, kind: FaultKind, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


class ListedProcess(NamedTuple):
    """A process as listed by the driver; the memory is None if not reported."""

    pid: int
    memory_bytes: int | None


class ProcessUtilization(NamedTuple):
    """Utilization of a GPU by a process at one time, in percent."""

    pid: int
    microseconds: int
    sm: int
    memory_controller: int
    encoder: int
    decoder: int


class _ProcessV1(ctypes.Structure):
    """Version 1 of nvmlProcessInfo_t, which the binding no longer defines."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


class Nvml(DriverCalls):
    """The loaded NVML library, to be called from one thread at a time.

    Raises:
        NoBindingError: If nvidia-ml-py is missing, or another package uses its module name.
    """

    def __init__(self) -> None:
        super().__init__()
        self._binding = _load_binding()

    def call(self, name: str, card: str, *arguments: Any) -> Any:
        """Call the named NVML function of the binding; `card` is its UUID or index for reports, or empty.

        Raises:
            NvmlFailure: If the call fails, or the driver or the binding has no such function.
        """
        try:
            function = getattr(self._binding, name)
        except AttributeError:
            raise NvmlFailure(name, FUNCTION_NOT_FOUND) from None
        return self._timed_call(name, card, function, arguments)

    def call_for_text(self, name: str, card: str, *arguments: Any) -> str:
        """Call the named NVML function and return its result as text.

        Raises:
            NvmlFailure: If the call fails, or its result is not UTF-8.
        """
        value = self.call(name, card, *arguments)
        try:
            return value.decode() if isinstance(value, bytes) else str(value)
        except UnicodeDecodeError as error:
            raise NvmlFailure(name, BAD_TEXT, bytes(error.object)) from None

    def memory_bytes(self, card_uuid: str, handle: Handle) -> tuple[float, float, float | None, float]:
        """Return total, used, reserved and free memory in bytes; old drivers count reserved memory as used (None).

        Raises:
            NvmlFailure: If the driver does not report this GPU's memory.
        """
        try:
            info = self.call("nvmlDeviceGetMemoryInfo", card_uuid, handle, self._binding.nvmlMemory_v2)
            return info.total, info.used, info.reserved, info.free
        except NvmlFailure as failure:
            if failure.code in CARD_GONE_CODES | SESSION_OVER_CODES:
                raise
        info = self.call("nvmlDeviceGetMemoryInfo", card_uuid, handle)
        return info.total, info.used, None, info.free

    def field_values(self, card_uuid: str, handle: Handle, ids: Sequence[int | tuple[int, int]]) -> list[float | Cause]:
        """Return the values of NVML fields, each a number or the cause of its absence; an id may include a scope.

        Raises:
            NvmlFailure: If the whole batch fails.
        """
        values = self.call("nvmlDeviceGetFieldValues", card_uuid, handle, ids)
        self.field_microseconds += sum(value.latencyUsec for value in values)
        return [_field_value(value) for value in values]

    def fabric_state(self, card_uuid: str, handle: Handle) -> int:
        """Return how far the GPU has joined the fabric of NVSwitches: not at all (1), in progress (2), joined (3).

        Raises:
            NvmlFailure: If the GPU is part of no fabric, or the driver does not report it.
        """
        name = "nvmlDeviceGetGpuFabricInfoV"
        try:
            info = self._binding.c_nvmlGpuFabricInfoV_t()
        except AttributeError:
            raise NvmlFailure(name, FUNCTION_NOT_FOUND) from None
        info.version = self._binding.nvmlGpuFabricInfo_v2
        self.call(name, card_uuid, handle, ctypes.byref(info))
        if not info.state:
            raise NvmlFailure(name, NOT_SUPPORTED)
        return int(info.state)

    def listed_processes(self, card_uuid: str, handle: Handle, kind: ProcessKind) -> list[ListedProcess]:
        """Return the processes of one kind on a GPU, using the newest NVML structure that driver and binding share.

        Raises:
            NvmlFailure: If no structure works.
        """
        name = _PROCESS_CALLS[kind]
        for version in ("_v3", "_v2"):
            try:
                processes = self.call(name + version, card_uuid, handle)
            except NvmlFailure as failure:
                if failure.code != FUNCTION_NOT_FOUND:
                    raise
            else:
                return [ListedProcess(process.pid, process.usedGpuMemory) for process in processes]
        return self._processes_v1(name, card_uuid, handle)

    def process_utilization(self, card_uuid: str, handle: Handle, since: int) -> list[ProcessUtilization]:
        """Return each utilization sample after `since` (µs).

        Raises:
            NvmlFailure: If there are no samples, or the driver does not report them.
        """
        samples = self.call("nvmlDeviceGetProcessUtilization", card_uuid, handle, since)
        return [
            ProcessUtilization(
                sample.pid, sample.timeStamp, sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil
            )
            for sample in samples
        ]

    def gpm_request(self, ids: Sequence[int]) -> Any:
        """Return a reusable request for the GPM metrics `ids` (NVIDIA's metric numbers)."""
        request = self._binding.c_nvmlGpmMetricsGet_t()
        request.version = self._binding.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(ids)
        for index, number in enumerate(ids):
            request.metrics[index].metricId = number
        return request

    def gpm_values(self, card_uuid: str, request: Any, first: Any, second: Any) -> list[float | Cause]:
        """Return the values of the requested GPM metrics between two samples, in the order of the request.

        Raises:
            NvmlFailure: If the driver cannot compute the metrics.
        """
        request.sample1, request.sample2 = first, second
        self.call("nvmlGpmMetricsGet", card_uuid, request)
        metrics = (request.metrics[index] for index in range(request.numMetrics))
        return [
            missing_reading_cause(metric.nvmlReturn) if metric.nvmlReturn else float(metric.value) for metric in metrics
        ]

    def next_event(self, events: Any) -> tuple[Handle, int, int] | None:
        """Return GPU handle, type and data of the next pending event without blocking; None if there is no event."""
        with suppress(NvmlFailure):
            data = self.call("nvmlEventSetWait_v2", "", events, 0)
            return data.device, data.eventType, data.eventData
        return None

    def _timed_call(self, name: str, card: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        try:
            return self.timed(name, card, function, *arguments)
        except self._binding.NVMLError as error:
            raise NvmlFailure(name, error.value) from None
        except UnicodeDecodeError as error:
            raise NvmlFailure(name, BAD_TEXT, bytes(error.object)) from None

    def _processes_v1(self, name: str, card_uuid: str, handle: Handle) -> list[ListedProcess]:
        function = self.call("_nvmlGetFunctionPointer", card_uuid, name)
        count, processes = ctypes.c_uint(_MAX_PROCESSES), (_ProcessV1 * _MAX_PROCESSES)()
        code = self._timed_call(name, card_uuid, function, (handle, ctypes.byref(count), processes))
        if code:
            raise NvmlFailure(name, code)
        return [
            ListedProcess(process.pid, None if process.usedGpuMemory == _NOT_AVAILABLE else process.usedGpuMemory)
            for process in processes[: count.value]
        ]


def _field_value(value: Any) -> float | Cause:
    if value.nvmlReturn:
        return missing_reading_cause(value.nvmlReturn)
    member = _VALUE_MEMBERS.get(value.valueType)
    # A driver newer than the binding may use a value type that the binding does not know.
    return Cause.UNREADABLE if member is None else float(getattr(value.value, member))


def missing_reading_cause(code: int) -> Cause:
    """Return the cause of a missing reading whose NVML call returned `code`."""
    return _CAUSES.get(code, Cause.FAILED)


def opening_fault(code: int) -> FaultKind:
    """Return the kind of fault if initializing NVML returns `code`."""
    return _OPENING_FAULTS.get(code, FaultKind.DRIVER_ERROR)


def is_same_handle(first: Handle, second: Handle) -> bool:
    """Return whether two handles refer to the same GPU."""
    return ctypes.cast(first, ctypes.c_void_p).value == ctypes.cast(second, ctypes.c_void_p).value


def _load_binding() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise NoBindingError(FaultKind.NO_BINDING, str(error)) from error
    binding: Any = pynvml
    # nvidia-ml-py is one module; the old distribution `pynvml` is a package with different functions.
    if hasattr(binding, "__path__") or not hasattr(binding, "_nvmlGetFunctionPointer"):
        raise NoBindingError(
            FaultKind.WRONG_BINDING, str(getattr(binding, "__file__", None) or "a folder named pynvml")
        )
    return binding
