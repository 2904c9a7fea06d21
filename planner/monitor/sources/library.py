"""A vendor's library in C: loading it, calling it under the watch of `DriverCalls`, and its GPUs as a source."""

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import can_runtime_suspend, power_state
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess
from planner.monitor.sources.files import uevent
from planner.monitor.sources.source import CardGoneError, SourceFailedError

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


class LibraryCard(Protocol):
    """One GPU of a vendor's library."""

    device: Device

    def read(self, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of the GPU, those that change slowly only if asked for.

        Raises:
            CardGoneError: If the library calls the GPU lost.
        """


class VendorInterface(NamedTuple):
    """A vendor's library as data: the names of its file, the call that begins, and the two that list its GPUs.

    `drivers` are those of its GPUs, `causes` why it does not read a quantity, by its codes.
    """

    title: str
    drivers: tuple[str, ...]
    names: tuple[str, ...]
    causes: Mapping[int, Cause]
    first_call: tuple[str, *tuple[object, ...]]
    listing: tuple[str, str]
    address_of: Callable[[VendorLibrary, ctypes.c_void_p], str]
    card: Callable[[VendorLibrary, str, ctypes.c_void_p], LibraryCard]
    last_call: str = ""


class LibrarySource:
    """GPUs that a vendor's library lists, of those that the system never suspends."""

    def __init__(self, root: Path, interface: VendorInterface) -> None:
        self.calls = DriverCalls()
        self._root, self._interface = root, interface
        self._library: VendorLibrary | None = None
        self._cards: dict[str, LibraryCard] = {}

    def find(self, _now: float) -> tuple[Device, ...]:
        """Return the GPUs; the library is loaded once there is one.

        Raises:
            SourceFailedError: If the library is there and cannot be used.
        """
        interface, wanted = self._interface, wakeful_cards(self._root, self._interface.drivers)
        if not wanted:
            return ()
        if self._cards.keys() != wanted.keys():
            try:
                library = self._library = self._library or self._opened()
                self._cards = {
                    address: interface.card(library, address, handle)
                    for owner in library.handles(interface.listing[0], "")
                    for handle in library.handles(interface.listing[1], "", owner)
                    if (address := interface.address_of(library, handle)) in wanted
                }
            except OSError:
                return ()
            except LibraryFailure as failure:
                raise SourceFailedError(FaultKind.SOURCE_FAILED, f"{interface.title}: {failure}") from failure
        return tuple(card.device for card in self._cards.values())

    def read(self, device: Device, _now: float, *, slow: bool) -> dict[str, Reading]:
        """Return the readings of a GPU.

        Raises:
            CardGoneError: If the library does not know the GPU any more, or calls it lost.
        """
        card = self._cards.get(device.pci_bus_id)
        if card is None:
            raise CardGoneError(f"not listed by {self._interface.title}")
        return card.read(slow=slow)

    def processes(self, _devices: Collection[Device], _now: float) -> tuple[CardProcess, ...]:
        """Return none: the drivers' files tell them."""
        return ()

    def close(self) -> None:
        """Shut the library down, if it has a call for that; else it stays loaded."""
        self._cards = {}
        if self._library is not None and self._interface.last_call:
            with suppress(LibraryFailure):
                self._library.call(self._interface.last_call, "")
            self._library = None

    def _opened(self) -> VendorLibrary:
        library = VendorLibrary(self._interface.names, self.calls, self._interface.causes)
        name, *arguments = self._interface.first_call
        library.call(name, "", *arguments)
        return library


def wakeful_cards(root: Path, drivers: Sequence[str]) -> dict[str, Path]:
    """Return the PCI addresses of the drivers' GPUs that the system never suspends, with their folders.

    A library that is asked for the others would keep them awake; the system's own files are read of those.
    """
    found = {}
    for folder in sorted((root / _CARDS).glob("card[0-9]*/device")):
        facts = uevent(folder)
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
