"""Intel's Level Zero Sysman, which adds memory and temperatures to the files of the drivers.

**Source** zes_api.h of Level Zero 1.15 to 1.25; `zesInit` exists since loader 1.9.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from planner.monitor.host.usage import CounterRates
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.sources.library import LibraryFailure, VendorInterface, VendorLibrary
from planner.monitor.sources.source import CardGoneError
from planner.units import MICRO

_DEVICE_LOST: Final = 0x70000001
_CAUSES: Final = {
    -1: Cause.MISSING_SYMBOL,
    1: Cause.NOT_YET,
    0x70010000: Cause.NO_PERMISSION,
    0x70010001: Cause.NOT_SUPPORTED,
    0x70020000: Cause.NOT_SUPPORTED,
    0x78000002: Cause.NOT_SUPPORTED,
    0x78000003: Cause.NOT_SUPPORTED,
}
# zes_structure_type_t, and members of other enumerations.
_PCI, _ENGINE, _MEMORY, _TEMPERATURE, _MEMORY_STATE = 0x2, 0x5, 0xB, 0x14, 0x1E
_ON_CARD: Final = 1
_BUSY_ENGINES: Final = (1, 12, 0)
"""Engine groups that say how busy a GPU is: all that compute, all that render, or all."""
_GPU_SENSORS: Final = {1: "temperature_celsius", 2: "memory_temperature_celsius"}


_HEAD: Final = (("stype", ctypes.c_uint), ("next", ctypes.c_void_p))


class _Pci(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("address", ctypes.c_uint32 * 4),
        ("speed", ctypes.c_int64 * 2),
        ("counters", ctypes.c_uint8 * 3),
    )


class _Part(ctypes.Structure):
    """The properties that all parts of a GPU begin with: their type, and whether they belong to a tile."""

    _fields_ = (
        *_HEAD,
        ("type", ctypes.c_uint),
        ("on_tile", ctypes.c_uint8),
        ("tile", ctypes.c_uint32),
        ("location", ctypes.c_uint),
        ("_", ctypes.c_uint64 * 4),
    )


class _MemoryState(ctypes.Structure):
    _fields_ = (*_HEAD, ("health", ctypes.c_uint), ("free", ctypes.c_uint64), ("size", ctypes.c_uint64))


class _Counter(ctypes.Structure):
    _fields_ = (("value", ctypes.c_uint64), ("microseconds", ctypes.c_uint64))


class _Card:
    """One GPU: handles of its parts, listed once."""

    def __init__(self, library: VendorLibrary, address: str, handle: ctypes.c_void_p) -> None:
        self._uuid = f"Intel-{address}"
        self._library, self._handle = library, handle
        self._rates = CounterRates()
        self._memories = [
            part
            for part, about in self._parts("zesDeviceEnumMemoryModules", "zesMemoryGetProperties", _MEMORY)
            if about.location == _ON_CARD
        ]
        engines = self._parts("zesDeviceEnumEngineGroups", "zesEngineGetProperties", _ENGINE)
        groups = ([part for part, about in engines if about.type == kind] for kind in _BUSY_ENGINES)
        self._engines = next(filter(None, groups), [])
        self._sensors = self._parts("zesDeviceEnumTemperatureSensors", "zesTemperatureGetProperties", _TEMPERATURE)
        self.device = Device(self._uuid, "Intel GPU", 0, address, facts=self._facts(), driver="level-zero")

    def _facts(self) -> dict[str, Reading]:
        """Return the size of the GPU's memory, if it has any of its own."""
        if not self._memories:
            return {}
        return self._library.readings(
            ("memory_total_bytes",), lambda: (sum(size for _, size in self._memory_states()),)
        )

    def read(self, *, slow: bool) -> dict[str, Reading]:
        del slow
        readings: dict[str, Reading] = {}
        if self._memories:
            readings |= self._read(("memory_used_bytes", "memory_free_bytes"), self._memory)
        if self._engines:
            readings |= self._read(("utilization_fraction",), lambda: (self._busy_share(),))
        for part, about in self._sensors:
            if about.type in _GPU_SENSORS:
                readings |= self._read((_GPU_SENSORS[about.type],), partial(self._temperature, part))
        return readings

    def _read(self, names: Sequence[str], read: Callable[[], Sequence[float | None]]) -> dict[str, Reading]:
        def watched() -> Sequence[float | None]:
            try:
                return read()
            except LibraryFailure as failure:
                if failure.code == _DEVICE_LOST:
                    raise CardGoneError(str(failure)) from failure
                raise

        return self._library.readings(names, watched)

    def _parts(self, listing: str, properties: str, kind: int) -> list[tuple[ctypes.c_void_p, _Part]]:
        """Return the parts of a kind with their properties; none if this GPU does not report them."""
        found = []
        try:
            for part in self._library.handles(listing, self._uuid, self._handle):
                about = _Part(kind)
                self._library.call(properties, self._uuid, part, ctypes.byref(about))
                found.append((part, about))
        except LibraryFailure:
            return []
        return found

    def _memory_states(self) -> list[tuple[int, int]]:
        states = []
        for part in self._memories:
            state = _MemoryState(_MEMORY_STATE)
            self._library.call("zesMemoryGetState", self._uuid, part, ctypes.byref(state))
            states.append((state.free, state.size))
        return states

    def _memory(self) -> tuple[float, float]:
        states = self._memory_states()
        free = sum(free for free, _ in states)
        return sum(size for _, size in states) - free, free

    def _busy_share(self) -> float | None:
        """Return the share of time in which the busiest engine group worked since the previous reading."""
        shares = []
        for number, part in enumerate(self._engines):
            counter = _Counter()
            self._library.call("zesEngineGetActivity", self._uuid, part, ctypes.byref(counter))
            shares.append(self._rates.per_second(f"{number}", counter.microseconds / MICRO, counter.value / MICRO))
        known = [share for share in shares if share is not None]
        if not known:
            # Not yet: the first reading of a counter says nothing.
            raise LibraryFailure("zesEngineGetActivity", 1)
        return min(max(known), 1.0)

    def _temperature(self, part: ctypes.c_void_p) -> tuple[float]:
        celsius = ctypes.c_double()
        self._library.call("zesTemperatureGetState", self._uuid, part, ctypes.byref(celsius))
        return (celsius.value,)


def _address(library: VendorLibrary, handle: ctypes.c_void_p) -> str:
    about = _Pci(_PCI)
    library.call("zesDevicePciGetProperties", "", handle, ctypes.byref(about))
    domain, bus, device, function = about.address
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


LEVEL_ZERO: Final = VendorInterface(
    "Level Zero",
    ("i915", "xe"),
    ("libze_loader.so.1", "libze_loader.so"),
    _CAUSES,
    ("zesInit", ctypes.c_uint32(0)),
    ("zesDriverGet", "zesDeviceGet"),
    _address,
    _Card,
)
"""Intel's library, which has no call to shut it down."""
