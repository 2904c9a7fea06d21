"""AMD's management library, which adds the counter of energy and memory errors to the files of the driver.

**Source** amdsmi.h of ROCm 7.0. Only functions are called whose arguments are the same since ROCm 6.0.
"""

import ctypes
from typing import Final

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.sources.library import VendorInterface, VendorLibrary
from planner.units import MICRO, PER_CENT

_GPUS: Final = 1 << 1
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


class _Card:
    def __init__(self, library: VendorLibrary, address: str, handle: ctypes.c_void_p) -> None:
        self.device = Device(f"AMD-{address}", "AMD GPU", 0, address, driver="amd-smi")
        self._library, self._handle = library, handle

    def read(self, *, slow: bool) -> dict[str, Reading]:
        usage, errors = _Usage(), _Errors()
        energy, resolution, at = ctypes.c_uint64(), ctypes.c_float(), ctypes.c_uint64()

        def call(name: str, *results: ctypes.Structure | ctypes.c_uint64 | ctypes.c_float) -> None:
            self._library.call(name, self.device.uuid, self._handle, *(ctypes.byref(result) for result in results))

        def read_usage() -> tuple[float | None, float | None]:
            call("amdsmi_get_gpu_activity", usage)
            return _share(usage.gfx), _share(usage.umc)

        def read_energy() -> tuple[float]:
            call("amdsmi_get_energy_count", energy, resolution, at)
            return (energy.value * resolution.value / MICRO,)

        def read_errors() -> tuple[float, float]:
            call("amdsmi_get_gpu_total_ecc_count", errors)
            return errors.correctable, errors.uncorrectable

        readings = self._library.readings(("utilization_fraction", "memory_controller_fraction"), read_usage)
        readings |= self._library.readings(("energy_joules",), read_energy)
        return readings | (self._library.readings(("ecc_corrected", "ecc_uncorrected"), read_errors) if slow else {})


def _address(library: VendorLibrary, card: ctypes.c_void_p) -> str:
    """Return the PCI address of a GPU: domain, bus, device and function from the highest bit on."""
    place = ctypes.c_uint64()
    library.call("amdsmi_get_gpu_device_bdf", "", card, ctypes.byref(place))
    bits = place.value
    return f"{bits >> 16:04x}:{bits >> 8 & 0xFF:02x}:{bits >> 3 & 0x1F:02x}.{bits & 7}"


def _share(per_cent: int) -> float | None:
    return None if per_cent > _MOST_PER_CENT else per_cent / PER_CENT


AMD_SMI: Final = VendorInterface(
    "libamd_smi",
    ("amdgpu",),
    ("libamd_smi.so", "/opt/rocm/lib/libamd_smi.so"),
    _CAUSES,
    ("amdsmi_init", ctypes.c_uint64(_GPUS)),
    ("amdsmi_get_socket_handles", "amdsmi_get_processor_handles"),
    _address,
    _Card,
    "amdsmi_shut_down",
)
"""AMD's library."""
