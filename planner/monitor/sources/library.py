"""A vendor's library in C: loading it, calling it under the watch of `DriverCalls`, and what its failures mean."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import can_runtime_suspend, power_state
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing

_CARDS: Final = "sys/class/drm"


class LibraryFailure(Exception):  # noqa: N818  # it is the library's failure, not an error of this program
    """A failed call, with the code that it returned."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} returned {code:#x}")
        self.call, self.code = call, code


class VendorLibrary:
    """A loaded library whose functions return 0 or a code of failure.

    Raises:
        OSError: If no library of these names is installed.
    """

    def __init__(self, names: Sequence[str], calls: DriverCalls, causes: Mapping[int, Cause]) -> None:
        self._library, self._calls, self._causes = _load(names), calls, causes

    def call(self, name: str, card: str, *arguments: object) -> None:
        """Call a function; `card` is a UUID for reports, or empty.

        Raises:
            LibraryFailure: If it fails, or this version of the library lacks it.
        """
        try:
            function = self._library[name]
        except AttributeError:
            raise LibraryFailure(name, -1) from None
        function.restype = ctypes.c_uint
        code = self._calls.timed(name, card, function, *arguments)
        if code:
            raise LibraryFailure(name, code)

    def handles(self, name: str, card: str, *owner: object) -> list[ctypes.c_void_p]:
        """Return the handles that a function lists, which is asked for their number first.

        Raises:
            LibraryFailure: If it fails.
        """
        count = ctypes.c_uint32(0)
        self.call(name, card, *owner, ctypes.byref(count), None)
        found = (ctypes.c_void_p * count.value)()
        self.call(name, card, *owner, ctypes.byref(count), found)
        return [ctypes.c_void_p(handle) for handle in found[: count.value]]

    def readings(self, names: Sequence[str], read: Callable[[], Sequence[float | None]]) -> dict[str, Reading]:
        """Return the quantities that `read` returns in this order, or why its call failed; None is not reported."""
        try:
            values = read()
        except LibraryFailure as failure:
            return dict.fromkeys(names, missing(self._causes.get(failure.code, Cause.FAILED)))
        return {
            name: missing(Cause.NOT_SUPPORTED) if value is None else checked_reading(BY_NAME[name], value)
            for name, value in zip(names, values, strict=True)
        }


def wakeful_cards(root: Path, drivers: Sequence[str]) -> dict[str, Path]:
    """Return the PCI addresses of the drivers' cards that the system never suspends, with their folders.

    A library that is asked for the others would keep them awake; the system's own files are read of those.
    """
    found = {}
    for folder in sorted((root / _CARDS).glob("card[0-9]*/device")):
        with suppress(OSError):
            lines = (folder / "uevent").read_text(encoding="ascii", errors="replace").splitlines()
            facts = dict(line.split("=", 1) for line in lines if "=" in line)
            is_awake = power_state(folder) == "active" and not can_runtime_suspend(folder)
            if facts.get("DRIVER") in drivers and is_awake:
                found[facts.get("PCI_SLOT_NAME", "").lower()] = folder
    return found


def _load(names: Sequence[str]) -> ctypes.CDLL:
    failure = OSError("no name")
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            failure = error
    raise failure
