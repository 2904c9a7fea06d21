"""Quantities in files of Linux' sysfs, one value a file, as data."""

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from planner.monitor.driver_calls import DriverCalls
from planner.monitor.host.environment import text_of
from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sources.source import CardGoneError

_LONGEST_TEXT: Final = 1 << 16
# A driver answers so where a GPU lacks a sensor (amdgpu: EOPNOTSUPP and EINVAL; hwmon: ENODATA).
_UNSUPPORTED: Final = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL, errno.ENODATA, errno.ENXIO})
# Since Linux 6.6 amdgpu refuses to wake a GPU that is asleep.
_BUSY: Final = frozenset({errno.EBUSY, errno.EAGAIN})


class FileQuantity(NamedTuple):
    """A quantity in the first of `patterns` that exists below the GPU's folder; its number is divided by `per`.

    `parse` returns the number in the file's text, or raises ValueError. A pattern `hwmon/*/temp*_input@edge` is the
    file whose label file (`temp*_label`) says `edge`.
    """

    name: str
    patterns: tuple[str, ...]
    per: float = 1
    parse: Callable[[str], float] = float


# Stands for a number that is no quantity by itself, such as a count of milliseconds.
_ANY: Final = FileQuantity("energy_joules", ())


class CardFiles:
    """The files of one GPU: which of its quantities exist is found once, and then only these are read."""

    def __init__(self, calls: DriverCalls, uuid: str, folder: Path) -> None:
        self._calls, self._uuid, self.folder = calls, uuid, folder
        self._paths: dict[FileQuantity, Path | None] = {}
        self._groups: dict[str, tuple[Path, ...]] = {}

    def readings(self, quantities: Iterable[FileQuantity]) -> dict[str, Reading]:
        """Return the quantities that the driver has files for.

        Raises:
            CardGoneError: If the GPU's folder is gone.
        """
        found = ((quantity, self._path(quantity)) for quantity in quantities)
        return {quantity.name: self._reading(quantity, path) for quantity, path in found if path is not None}

    def has(self, pattern: str) -> bool:
        """Return whether a file exists."""
        return next(self._found(pattern), None) is not None

    def numbers(self, pattern: str) -> tuple[float, ...]:
        """Return the numbers in all files that a pattern finds, in the order of their names."""
        if pattern not in self._groups:
            self._groups[pattern] = tuple(self._found(pattern))
        found = (self._reading(_ANY, path).value for path in self._groups[pattern])
        return tuple(number for number in found if number is not None)

    def text(self, path: str) -> str:
        """Return the text of a file, empty if it cannot be read."""
        try:
            return self._text(self.folder / path).strip()
        except OSError:
            return ""

    def content(self, path: str) -> bytes:
        """Return the bytes of a file, none if it cannot be read."""
        try:
            return self._calls.timed(f"reading {path.rpartition('/')[2]}", self._uuid, _read_bytes, self.folder / path)
        except OSError:
            return b""

    def _path(self, quantity: FileQuantity) -> Path | None:
        if quantity not in self._paths:
            found = (path for pattern in quantity.patterns for path in self._found(pattern))
            self._paths[quantity] = next(found, None)
        return self._paths[quantity]

    def _found(self, pattern: str) -> Iterator[Path]:
        files, _, label = pattern.partition("@")
        for path in sorted(self.folder.glob(files)):
            said = path.with_name(path.name.rpartition("_")[0] + "_label") if label else None
            if said is None or self.text(str(said.relative_to(self.folder))) == label:
                yield path

    def _reading(self, quantity: FileQuantity, path: Path) -> Reading:
        try:
            value = quantity.parse(self._text(path))
        except ValueError:
            return missing(Cause.UNREADABLE)
        except OSError as error:
            if not self.folder.exists():
                raise CardGoneError(str(error)) from None
            return missing(_cause_of(error))
        return checked_reading(BY_NAME[quantity.name], value / quantity.per)

    def _text(self, path: Path) -> str:
        return self._calls.timed(f"reading {path.name}", self._uuid, _read_text, path)


def _read_text(path: Path) -> str:
    with path.open(encoding="ascii", errors="replace") as file:
        return file.read(_LONGEST_TEXT)


def _read_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LONGEST_TEXT)


def _cause_of(error: OSError) -> Cause:
    if isinstance(error, PermissionError):
        return Cause.ASLEEP if error.errno == errno.EPERM else Cause.NO_PERMISSION
    if error.errno in _UNSUPPORTED:
        return Cause.NOT_SUPPORTED
    return Cause.NOT_YET if error.errno in _BUSY else Cause.FAILED


def uevent(folder: Path) -> dict[str, str]:
    """Return what the system says of the device in a folder, such as its driver and its PCI address."""
    return dict(line.split("=", 1) for line in text_of(folder / "uevent").splitlines() if "=" in line)


_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
# PCI Express Base Specification: transfers a second of one lane by generation.
_GENERATIONS: Final = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


def first_number(text: str) -> float:
    """Return the first number in a text, such as 16 in `16.0 GT/s PCIe`."""
    found = _NUMBER.search(text)
    if found is None:
        raise ValueError(text)
    return float(found[0])


def pcie_generation(text: str) -> float:
    """Return the PCIe generation of a link's speed, such as 4 of `16.0 GT/s PCIe`."""
    generation = _GENERATIONS.get(first_number(text))
    if generation is None:
        raise ValueError(text)
    return generation
