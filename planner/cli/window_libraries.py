"""Libraries of the system that Qt needs for a window on Linux: which are missing, and which packages have them."""

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

DEBIAN_PACKAGES: Final = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
"""Debian package of each library that Qt's plugins for X11, Wayland and offscreen need, found in a bare Debian 12."""
_NOT_FOUND: Final = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)
_NOT_OPENED: Final = re.compile(r"^(\S+): cannot open shared object file")


def missing_libraries() -> tuple[str, ...]:
    """Return the libraries that all platforms which Qt could use here lack, or an empty tuple if one can be used.

    Qt would end the process without an explanation. What is loaded here stays loaded, and Qt uses it.
    """
    missing = [libraries for name in _platforms() for libraries in _missing_of_platform(name)]
    return () if () in missing else tuple(dict.fromkeys(name for libraries in missing for name in libraries))


def packages_hint(libraries: Sequence[str]) -> str:
    """Return how to install `libraries` on Debian, and the names of those that are in no known package."""
    packages = sorted({DEBIAN_PACKAGES[name] for name in libraries if name in DEBIAN_PACKAGES})
    others = [name for name in libraries if name not in DEBIAN_PACKAGES]
    install = [f"On Debian or Ubuntu: sudo apt install {' '.join(packages)}."] if packages else []
    return " ".join([*install, *([f"Install the packages that have {', '.join(others)}."] if others else [])])


def _platforms() -> list[str]:
    """Return the names of the platforms that Qt will try."""
    asked = os.environ.get("QT_QPA_PLATFORM")
    if asked:
        return [name.partition(":")[0] for name in asked.split(";")]
    shown_on = {"WAYLAND_DISPLAY": "wayland", "DISPLAY": "xcb"}
    return [platform for variable, platform in shown_on.items() if os.environ.get(variable)]


def _missing_of_platform(name: str) -> list[tuple[str, ...]]:
    """Return what each of Qt's plugins for the platform `name` lacks; an empty list without such a plugin."""
    return [_missing_of_file(file) for folder in _qt_folders() for file in sorted(folder.glob(f"libq{name}*.so"))]


def _qt_folders() -> list[Path]:
    found = find_spec("PySide6")
    return [Path(place) / "Qt/plugins/platforms" for place in (found and found.submodule_search_locations) or ()]


def _missing_of_file(file: Path) -> tuple[str, ...]:
    """Return the libraries that `file` needs, directly or not, and that the loader does not find."""
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        first = _NOT_OPENED.findall(str(error))
        try:
            listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        except OSError:  # a system without ldd: the loader names one library at a time
            return tuple(first)
        return tuple(dict.fromkeys([*_NOT_FOUND.findall(listed), *first]))
    return ()
