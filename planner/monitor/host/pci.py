"""NVIDIA cards as Linux lists them without the driver, with their power state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

PowerState = Literal["active", "asleep"]

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")

_NVIDIA: Final = "0x10de"
# A display controller: 0x030000 is VGA-compatible, 0x030200 a 3D controller without a display.
_DISPLAY_CLASS: Final = "0x03"


def find_cards(folder: Path = PCI_DEVICES) -> Mapping[str, PowerState]:
    """Return NVIDIA cards by PCI address without waking any; empty if the system does not list devices."""
    try:
        places = sorted(folder.iterdir())
    except OSError:
        return {}
    return {place.name: _power_state(place) for place in places if _is_nvidia_card(place)}


def can_runtime_suspend(place: Path) -> bool:
    """Return whether the system suspends the card when it is unused."""
    return _read(place / "power" / "control") == "auto"


def same_card(pci_bus_id: str, sysfs_name: str) -> bool:
    """Return whether the driver's `00000000:01:00.0` and Linux's `0000:01:00.0` are the same address."""
    return pci_bus_id.lower().endswith(sysfs_name.lower())


def _is_nvidia_card(place: Path) -> bool:
    return _read(place / "vendor") == _NVIDIA and _read(place / "class").startswith(_DISPLAY_CLASS)


def _power_state(place: Path) -> PowerState:
    return "asleep" if _read(place / "power" / "runtime_status") == "suspended" else "active"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
