"""Detection of the environment that this process runs in: container, WSL, PID namespace, GPUs without a driver."""

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

# The inode of the initial PID namespace, a constant of Linux (PROC_PID_INIT_INO, include/linux/proc_ns.h).
_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
_CONTAINER_MARKERS: Final = (".dockerenv", "run/.containerenv")


class HostEnvironment(NamedTuple):
    """Environment in which this process runs: operating system, container, WSL, PID namespace.

    In a PID namespace of its own, the driver's PIDs differ from those visible here.
    """

    system: str
    is_container: bool
    is_wsl: bool
    has_own_pids: bool

    @property
    def sees_same_pids(self) -> bool:
        """Return whether the driver's PIDs are valid here; under WSL the driver reports Windows PIDs."""
        return not self.has_own_pids and not self.is_wsl


def detect_environment(root: Path = Path("/")) -> HostEnvironment:
    """Return the environment of this process; `root` is the root of the file system."""
    release = platform.release()
    return HostEnvironment(
        system=f"{platform.system()} {release}",
        is_container=any((root / marker).exists() for marker in _CONTAINER_MARKERS) or "container" in os.environ,
        is_wsl="microsoft" in release.lower() or (root / "dev/dxg").exists(),
        has_own_pids=_has_own_pids(root),
    )


def _has_own_pids(root: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return os.readlink(root / "proc/self/ns/pid") != _INITIAL_PID_NAMESPACE
    except OSError:
        return False


PowerState = Literal["active", "asleep"]

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")

_NVIDIA_VENDOR: Final = "0x10de"
# A display controller: 0x030000 is VGA-compatible, 0x030200 a 3D controller without a display.
_DISPLAY_CLASS: Final = "0x03"


def find_cards(folder: Path = PCI_DEVICES) -> Mapping[str, PowerState]:
    """Return the power state of each NVIDIA GPU, by PCI address, without waking a GPU; empty without PCI devices."""
    try:
        device_folders = sorted(folder.iterdir())
    except OSError:
        return {}
    return {
        device_folder.name: power_state(device_folder)
        for device_folder in device_folders
        if (
            text_of(device_folder / "vendor") == _NVIDIA_VENDOR
            and text_of(device_folder / "class").startswith(_DISPLAY_CLASS)
        )
    }


def can_runtime_suspend(device_folder: Path) -> bool:
    """Return whether the system suspends an unused GPU, given the GPU's PCI folder."""
    return text_of(device_folder / "power" / "control") == "auto"


def is_same_pci_address(pci_bus_id: str, sysfs_name: str) -> bool:
    """Return whether the driver's `00000000:01:00.0` and Linux's `0000:01:00.0` are the same address."""
    return pci_bus_id.lower().endswith(sysfs_name.lower())


def power_state(device_folder: Path) -> PowerState:
    """Return whether a GPU is asleep, given its PCI folder; the system knows without asking the GPU."""
    return "asleep" if text_of(device_folder / "power" / "runtime_status") == "suspended" else "active"


def text_of(path: Path) -> str:
    """Return the text of a file of the system without surrounding white space, empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
