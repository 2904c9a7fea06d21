"""Runs of TensorBoard, as event files of our own."""

import shlex
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from planner.errors import RecordingError
from planner.monitor.recording.files import file_exists_error, open_new, unwritable_error
from planner.present.trackers.run import PROJECT, RunStart, TextNote, TrackedMoment, TrackedPlan
from planner.units import GB, GIB

_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_WORD: Final = 0xFFFFFFFF
_FILE_VERSION: Final = b"brain.Event:2"
_STRING_TENSOR: Final = 7
_LENGTH: Final = struct.Struct("<Q")
_CHECKSUM: Final = struct.Struct("<I")
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_LARGEST_FLOAT: Final = 3.4028234663852886e38

# The wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class EventText(NamedTuple):
    """A text that TensorBoard shows under `tag`, as Markdown."""

    tag: str
    text: str


class ScalarTag(NamedTuple):
    """The entry of a number in an event before the number itself, with what it does to the checksum.

    A checksum is linear: that of the bytes so far, shifted by the length of `entry` through four `tables`, and that of
    `entry` alone are added. So only the numbers are read byte by byte.
    """

    entry: bytes
    checksum: int
    tables: tuple[list[int], ...]


class EventFile:
    """Writes events to `stream`, one record each; a new file begins with the version of its format."""

    def __init__(self, stream: BinaryIO, wall_seconds: float) -> None:
        self._stream = stream
        self._write(_event(wall_seconds, 0, _field(3, _FILE_VERSION)))

    def add_scalars(self, wall_seconds: float, step: int, scalars: Iterable[tuple[ScalarTag, float]]) -> None:
        """Write numbers of one time, each with its tag from `scalar_tag`; they are kept as 32-bit floats.

        Raises:
            OSError: If the file cannot be written.
        """
        kept = [(tag, value) for tag, value in scalars if -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT]
        length = sum(len(tag.entry) for tag, _ in kept) + _FLOAT.size * len(kept)
        head = _event(wall_seconds, step, _key(5, _BYTES) + _varint(length))
        floats = struct.pack(f"<{len(kept)}f", *[value for _, value in kept])
        parts, crc, pairs = [head], _checksum_after(_WORD, head), _table_of_pairs()
        for (tag, _), word, start in zip(kept, struct.unpack(f"<{len(kept)}I", floats), count(0, 4), strict=False):
            first, second, third, fourth = tag.tables
            crc = first[crc & 0xFF] ^ second[crc >> 8 & 0xFF] ^ third[crc >> 16 & 0xFF] ^ fourth[crc >> 24]
            crc ^= tag.checksum ^ word
            crc = pairs[crc & 0xFFFF] ^ (crc >> 16)
            crc = pairs[crc & 0xFFFF] ^ (crc >> 16)
            parts += (tag.entry, floats[start : start + 4])
        self._write(b"".join(parts), crc ^ _WORD)

    def add_text(self, wall_seconds: float, step: int, text: EventText) -> None:
        """Write a text.

        Raises:
            OSError: If the file cannot be written.
        """
        plugin = _field(1, _field(1, b"text"))
        shape = _field(2, _field(2, _key(1, _VARINT) + _varint(1)))
        content = text.text.encode("utf-8", "backslashreplace")
        tensor = _key(1, _VARINT) + _varint(_STRING_TENSOR) + shape + _field(8, content)
        tag = text.tag.encode("utf-8", "backslashreplace")
        value = _field(1, tag) + _field(9, plugin) + _field(8, tensor)
        self._write(_event(wall_seconds, step, _field(5, _field(1, value))))

    def flush(self) -> None:
        """Hand all events to the system, which keeps them if this process is killed.

        Raises:
            OSError: If the file cannot be written.
        """
        self._stream.flush()

    def _write(self, event: bytes, checksum: int | None = None) -> None:
        length = _LENGTH.pack(len(event))
        mark = _masked(crc32c(event) if checksum is None else checksum)
        self._stream.write(length + _masked(crc32c(length)) + event + mark)


def scalar_tag(tag: str) -> ScalarTag:
    """Return the entry of the numbers called `tag`."""
    name = _field(1, tag.encode("utf-8", "backslashreplace")) + _key(2, _FIXED32)
    entry = _key(1, _BYTES) + _varint(len(name) + _FLOAT.size) + name
    return ScalarTag(entry, _checksum_after(0, entry), _tables_of_shift(len(entry)))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum of `data`."""
    return _checksum_after(_WORD, data) ^ _WORD


def _checksum_after(crc: int, data: bytes) -> int:
    """Return a checksum, before its final inversion, after more bytes."""
    table, pairs = _table_of_pairs(), len(data) // 2
    for pair in struct.unpack_from(f"<{pairs}H", data):
        crc = table[(crc ^ pair) & 0xFFFF] ^ (crc >> 16)
    for byte in data[2 * pairs :]:
        crc = _shifted((crc ^ byte) & 0xFF) ^ (crc >> 8)
    return crc


@cache
def _tables_of_shift(length: int) -> tuple[list[int], ...]:
    """Return what each byte of a checksum, the lowest first, becomes after `length` bytes that are zero."""
    zeros = bytes(length)
    return tuple([_checksum_after(byte << place, zeros) for byte in range(256)] for place in (0, 8, 16, 24))


@cache
def _table_of_pairs() -> list[int]:
    """Return the remainder of each pair of bytes: half as many steps as with single bytes."""
    bytewise = [_shifted(byte) for byte in range(256)]
    once = [bytewise[pair & 0xFF] ^ (pair >> 8) for pair in range(65_536)]
    return [bytewise[remainder & 0xFF] ^ (remainder >> 8) for remainder in once]


def _shifted(remainder: int) -> int:
    """Return a remainder after eight more bits."""
    for _ in range(8):
        remainder = (remainder >> 1) ^ (_POLYNOMIAL if remainder & 1 else 0)
    return remainder


def _masked(crc: int) -> bytes:
    return _CHECKSUM.pack((((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _WORD)


def _event(wall_seconds: float, step: int, content: bytes) -> bytes:
    return _key(1, _FIXED64) + _DOUBLE.pack(wall_seconds) + _key(2, _VARINT) + _varint(step) + content


def _field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(number: int) -> bytes:
    """Return a number that is not negative in seven bits a byte, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_UNITS: Final = {
    "_bytes_per_s": ("_GB_per_s", 1 / GB),
    "_bytes": ("_GiB", 1 / GIB),
    "_watts": ("_W", 1.0),
    "_joules": ("_kJ", 1e-3),
    "_celsius": ("_C", 1.0),
    "_mhz": ("_MHz", 1.0),
    "_fraction": ("", 1.0),
}
"""Endings of quantities with those of their tags and the factor. A GiB keeps its digits in 32 bits, bytes do not."""


class TensorBoardRun:
    """A run in its own folder, `FOLDER/NAME/events.out.tfevents.…`; fractions are from 0 to 1.

    Raises:
        RecordingError: If the folder has a run of this name already, or cannot be written.
    """

    interval_seconds = 1.0

    def __init__(self, folder: Path, start: RunStart) -> None:
        self.place = folder / start.name
        self._folder = folder
        if next(self.place.glob("*tfevents*"), None) is not None:
            raise file_exists_error(self.place)
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable_error(self.place, error) from error
        # TensorBoard reads the files of a run in the order of their names.
        path = self.place / f"events.out.tfevents.{max(0, int(start.wall_seconds)):010d}.{PROJECT}"
        self._stream = open_new(path)
        self._file = EventFile(self._stream, start.wall_seconds)
        self._tags: dict[tuple[str, str, bool], tuple[ScalarTag, float]] = {}

    @property
    def view_command(self) -> str:
        """Return the shell command that shows the run."""
        return shlex.join(("tensorboard", "--logdir", str(self._folder)))

    def add_values(self, moment: TrackedMoment) -> None:
        """Write the values of a moment.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.add_scalars(moment.wall_seconds, moment.step, self._scalars(moment))

    def _scalars(self, moment: TrackedMoment) -> Iterator[tuple[ScalarTag, float]]:
        tags = self._tags
        for is_peak, group in ((False, moment.values), (True, moment.peaks)):
            for owner, quantities in group.items():
                for name, value in quantities.items():
                    known = tags.get((owner, name, is_peak))
                    if known is None:
                        tag, factor = tensorboard_tag(owner, name)
                        known = scalar_tag(f"{tag}/max" if is_peak else tag), factor
                        tags[owner, name, is_peak] = known
                    yield known[0], value * known[1]

    def add_text(self, tag: str, note: TextNote) -> None:
        """Write a text, as Markdown, under `tag`.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.add_text(note.wall_seconds, note.step, EventText(tag, note.text))

    def add_plan(self, plan: TrackedPlan, note: TextNote) -> None:  # the text has all of it
        """Write the plan as text.

        Raises:
            OSError: If the file cannot be written.
        """
        self.add_text("plan", note)

    def flush(self) -> None:
        """Hand all events to the system.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.flush()

    def close(self, wall_seconds: float) -> None:  # an event file has no end
        """Close the file.

        Raises:
            RecordingError: If the file cannot be written.
        """
        try:
            self._stream.close()
        except OSError as error:
            raise RecordingError(self.place, f"cannot be written ({error.strerror or error})") from error


def tensorboard_tag(owner: str, quantity: str) -> tuple[str, float]:
    """Return the tag of a quantity, such as `gpu/0/memory_used_GiB`, and the factor to its unit."""
    for ending, (unit, factor) in _UNITS.items():
        if quantity.endswith(ending):
            return f"{owner}/{quantity.removesuffix(ending)}{unit}", factor
    return f"{owner}/{quantity}", 1.0
