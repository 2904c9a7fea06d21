"""Detection of the environment that this process runs in: container, WSL, PID namespace."""

import os
import platform
import sys
from pathlib import Path
from typing import Final, NamedTuple

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
