"""NVIDIA cards as Linux lists them without the driver, with their power state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

PowerState = Literal["active", "asleep"]

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")

_NVIDIA_VENDOR: Final = "0x10de"
# A display controller: 0x030000 is VGA-compatible, 0x030200 a 3D controller without a display.
_DISPLAY_CLASS: Final = "0x03"


def find_cards(folder: Path = PCI_DEVICES) -> Mapping[str, PowerState]:
    """Return the power state of each NVIDIA card, by PCI address, without waking a card; empty without PCI devices."""
    try:
        device_folders = sorted(folder.iterdir())
    except OSError:
        return {}
    return {
        device_folder.name: _power_state(device_folder)
        for device_folder in device_folders
        if _is_nvidia_card(device_folder)
    }


def can_runtime_suspend(device_folder: Path) -> bool:
    """Return whether the system suspends an unused card, given the card's PCI folder."""
    return _read_text(device_folder / "power" / "control") == "auto"


def is_same_pci_address(pci_bus_id: str, sysfs_name: str) -> bool:
    """Return whether the driver's `00000000:01:00.0` and Linux's `0000:01:00.0` are the same address."""
    return pci_bus_id.lower().endswith(sysfs_name.lower())


def _is_nvidia_card(device_folder: Path) -> bool:
    return _read_text(device_folder / "vendor") == _NVIDIA_VENDOR and _read_text(device_folder / "class").startswith(
        _DISPLAY_CLASS
    )


def _power_state(device_folder: Path) -> PowerState:
    return "asleep" if _read_text(device_folder / "power" / "runtime_status") == "suspended" else "active"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
