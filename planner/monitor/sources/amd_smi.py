"""AMD's management library, which adds the counter of energy and memory errors to the files of the driver.

**Source** amdsmi.h of ROCm 7.0. Only functions are called whose arguments are the same since ROCm 6.0.
"""

import ctypes
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.readings.sample import CardProcess
from planner.monitor.sources.library import LibraryFailure, VendorLibrary, wakeful_cards
from planner.monitor.sources.source import CardGoneError, SourceFailedError

_NAMES: Final = ("libamd_smi.so", "/opt/rocm/lib/libamd_smi.so")
_GPUS: Final = 1 << 1
_NOT_FOUND: Final = 31
_CAUSES: Final = {
    -1: Cause.MISSING_SYMBOL,
    1: Cause.NOT_SUPPORTED,
    2: Cause.NOT_SUPPORTED,
    3: Cause.NOT_SUPPORTED,
    10: Cause.NO_PERMISSION,
    40: Cause.NOT_SUPPORTED,
}
# A firmware that does not report a share says 0xFFFF or more.
_MOST_PER_CENT: Final = 0xFFFE
_PER_CENT: Final = 100
_MICRO: Final = 10**6


class _Usage(ctypes.Structure):
    _fields_ = (
        ("gfx", ctypes.c_uint32),
        ("umc", ctypes.c_uint32),
        ("mm", ctypes.c_uint32),
        ("_", ctypes.c_uint32 * 13),
    )


class _Errors(ctypes.Structure):
    _fields_ = (
        ("correctable", ctypes.c_uint64),
        ("uncorrectable", ctypes.c_uint64),
        ("deferred", ctypes.c_uint64),
        ("_", ctypes.c_uint64 * 5),
    )


class AmdSmiSource:
    """Cards that libamd_smi lists, of those that the system never suspends."""

    def __init__(self, root: Path) -> None:
        self.calls = DriverCalls()
        self._root = root
        self._library: VendorLibrary | None = None
        self._handles: dict[str, ctypes.c_void_p] = {}
        self._devices: tuple[Device, ...] = ()

    def find(self, _now: float) -> tuple[Device, ...]:
        """Return the cards; the library is loaded once there is one.

        Raises:
            SourceFailedError: If the library is there and cannot be used.
        """
        wanted = wakeful_cards(self._root, ("amdgpu",))
        if not wanted:
            return ()
        if {device.pci_bus_id for device in self._devices} == wanted.keys():
            return self._devices
        try:
            library = self._library = self._library or self._opened()
            self._handles = {
                address: card
                for socket in library.handles("amdsmi_get_socket_handles", "")
                for card in library.handles("amdsmi_get_processor_handles", "", socket)
                if (address := _address(library, card)) in wanted
            }
        except OSError:
            return ()
        except LibraryFailure as failure:
            raise SourceFailedError(FaultKind.SOURCE_FAILED, f"libamd_smi: {failure}") from failure
        self._devices = tuple(
            Device(f"AMD-{address}", "AMD GPU", 0, address, driver="amd-smi") for address in self._handles
        )
        return self._devices

    def read(self, device: Device, _now: float, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of a card.

        Raises:
            CardGoneError: If the library does not know the card any more.
        """
        library, handle = self._library, self._handles.get(device.pci_bus_id)
        if library is None or handle is None:
            raise CardGoneError("not listed by libamd_smi")
        usage, errors = _Usage(), _Errors()
        energy, resolution, at = ctypes.c_uint64(), ctypes.c_float(), ctypes.c_uint64()

        def read_usage() -> tuple[float | None, float | None]:
            library.call("amdsmi_get_gpu_activity", device.uuid, handle, ctypes.byref(usage))
            return _share(usage.gfx), _share(usage.umc)

        def read_energy() -> tuple[float]:
            pointers = (ctypes.byref(energy), ctypes.byref(resolution), ctypes.byref(at))
            library.call("amdsmi_get_energy_count", device.uuid, handle, *pointers)
            return (energy.value * resolution.value / _MICRO,)

        def read_errors() -> tuple[float, float]:
            library.call("amdsmi_get_gpu_total_ecc_count", device.uuid, handle, ctypes.byref(errors))
            return errors.correctable, errors.uncorrectable

        readings = library.readings(("utilization_fraction", "memory_controller_fraction"), read_usage)
        readings |= library.readings(("energy_joules",), read_energy)
        return readings | (library.readings(("ecc_corrected", "ecc_uncorrected"), read_errors) if slow else {})

    def processes(self, _devices: Collection[Device], _now: float) -> tuple[CardProcess, ...]:
        """Return none: the driver's files tell them."""
        return ()

    def close(self) -> None:
        """Shut the library down."""
        if self._library is not None:
            with suppress(LibraryFailure):
                self._library.call("amdsmi_shut_down", "")
        self._library, self._handles, self._devices = None, {}, ()

    def _opened(self) -> VendorLibrary:
        library = VendorLibrary(_NAMES, self.calls, _CAUSES)
        library.call("amdsmi_init", "", ctypes.c_uint64(_GPUS))
        return library


def _address(library: VendorLibrary, card: ctypes.c_void_p) -> str:
    """Return the PCI address of a card: domain, bus, device and function from the highest bit on."""
    place = ctypes.c_uint64()
    library.call("amdsmi_get_gpu_device_bdf", "", card, ctypes.byref(place))
    bits = place.value
    return f"{bits >> 16:04x}:{bits >> 8 & 0xFF:02x}:{bits >> 3 & 0x1F:02x}.{bits & 7}"


def _share(per_cent: int) -> float | None:
    return None if per_cent > _MOST_PER_CENT else per_cent / _PER_CENT
