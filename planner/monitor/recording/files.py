"""Files of recordings: lines in consecutive gzip members, flushed so that a truncated file loses little.

`zcat` reads them. Each member can be read independently, and all flushed data without later data.
"""

import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.recording.records import Record, RecordedPlan, RecordingHeader, record_line
from planner.units import KIB, MIB

MAX_LINE_BYTES: Final = 8 * MIB
"""Maximum length of a valid line in bytes; a sample of a thousand GPUs is shorter."""
_GZIP: Final = 16 + zlib.MAX_WBITS
# Start of every member that this program writes: gzip, deflate, no name, no time.
_MAGIC: Final = b"\x1f\x8b\x08" + bytes(5)
_READ_BYTES: Final = 64 * KIB
_MAX_STEP_BYTES: Final = 1 * MIB
# At most this much compressed data is lost before damage.
_PIECE_BYTES: Final = 64
# In a file with more damaged places, the search for the next member would take too long.
_MAX_DAMAGES: Final = 100


class MemberStart(NamedTuple):
    """Start of a gzip member, as a byte offset in the file."""

    offset: int


class DamagedSpan(NamedTuple):
    """Unreadable part of the file; `is_end` if the file merely ends within a member."""

    offset: int
    lost_bytes: int
    is_end: bool


class MemberWriter:
    """Writes lines to `stream`; all flushed lines can be read even if the program is killed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def write(self, lines: bytes) -> None:
        """Write complete lines and flush the stream to the operating system.

        Raises:
            OSError: If the lines cannot be written.
        """
        self._write_compressed(self._compressor.compress(lines) + self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def end_member(self) -> None:
        """End the current member, so that later lines can be read independently.

        Raises:
            OSError: If the end of the member cannot be written.
        """
        self._write_compressed(self._compressor.flush())
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def _write_compressed(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


def read_lines(stream: BinaryIO, offset: int = 0) -> Iterator[MemberStart | DamagedSpan | bytes]:
    """Yield the lines from the member at `offset` on, with member starts and damaged spans in between.

    An incomplete line at the end of readable data is left out. Memory use is bounded, even for a malicious file.

    Raises:
        OSError: If the file cannot be read.
    """
    size, damages = stream.seek(0, os.SEEK_END), 0
    while offset < size:
        end, is_cut = yield from _read_member(stream, offset)
        if end is None:
            damages += 1
            end = size if is_cut or damages > _MAX_DAMAGES else _next_member_offset(stream, offset + 1, size)
            yield DamagedSpan(offset, end - offset, is_cut)
        offset = end


def _read_member(stream: BinaryIO, offset: int) -> Generator[MemberStart | bytes, None, tuple[int | None, bool]]:
    """Yield the lines of one member; return the member's end, None if damaged, and whether the file ends there."""
    decompressor, rest = zlib.decompressobj(_GZIP), b""
    stream.seek(offset)
    yield MemberStart(offset)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail or stream.read(_READ_BYTES)
        if not data:
            return None, True
        before = decompressor.copy()
        try:
            # A little compressed data may expand to very much: it is decompressed in limited steps.
            *lines, rest = (rest + decompressor.decompress(data, _MAX_STEP_BYTES)).split(b"\n")
        except zlib.error:
            yield from (rest + b"".join(_data_before_damage(before, data))).split(b"\n")[:-1]
            return None, False
        yield from lines
        if len(rest) > MAX_LINE_BYTES:
            return None, False
    return stream.tell() - len(decompressor.unused_data), False


def _data_before_damage(decompressor: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """Yield the decompressed data up to the damage, which is within the next `_MAX_STEP_BYTES`."""
    pieces = (data[position : position + _PIECE_BYTES] for position in range(0, len(data), _PIECE_BYTES))
    with suppress(zlib.error):
        yield from map(decompressor.decompress, pieces)


def _next_member_offset(stream: BinaryIO, offset: int, size: int) -> int:
    """Return the offset at which the next member may start; the file's size if there is none."""
    stream.seek(offset)
    tail = b""
    while data := stream.read(_READ_BYTES):
        position = (tail + data).find(_MAGIC)
        if position >= 0:
            return stream.tell() - len(tail) - len(data) + position
        tail = data[-len(_MAGIC) :]
    return size


# Damage costs at most one member, and a jump reads at most one; shorter members would make the file larger.
_MEMBER_SECONDS: Final = 60.0


class RecordingWriter:
    """Writes records to `stream`. Every member begins with the header, the plan and the current inventory.

    Therefore each member can be read independently.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._member_writer = MemberWriter(stream)
        self._pending_lines: list[bytes] = []
        self._context_lines: dict[type, bytes] = {}
        self._member_start_seconds: float | None = None

    def put(self, record: Record, at: Timestamp) -> bool:
        """Add a record observed at `at`; return whether the record started a new member.

        Raises:
            OSError: If the previous member cannot be written.
        """
        if self._member_start_seconds is None:
            self._member_start_seconds = at.monotonic_seconds
        is_member_over = at.monotonic_seconds - self._member_start_seconds >= _MEMBER_SECONDS
        if is_member_over:
            self.flush()
            self._member_writer.end_member()
            self._member_start_seconds = at.monotonic_seconds
            self._pending_lines += self._context_lines.values()
        line = record_line(record)
        if isinstance(record, Inventory):
            line = record_line(at) + line
        if isinstance(record, RecordingHeader | RecordedPlan | Inventory):
            self._context_lines[type(record)] = line
        self._pending_lines.append(line)
        return is_member_over

    def flush(self) -> None:
        """Write all added records to the file, which makes the records safe if this process is killed.

        Raises:
            OSError: If the records cannot be written.
        """
        if self._pending_lines:
            self._member_writer.write(b"".join(self._pending_lines))
            self._pending_lines.clear()

    def end(self) -> None:
        """Write all added records and the end of the last member.

        Raises:
            OSError: If the file cannot be written.
        """
        self.flush()
        self._member_writer.end_member()


def open_new(path: Path, *, replace: bool = False) -> BinaryIO:
    """Create a file and open it for writing in binary mode.

    Raises:
        RecordingError: If the file exists and `replace` is False, or it cannot be created.
    """
    try:
        return path.open("wb" if replace else "xb")
    except FileExistsError as error:
        raise file_exists_error(path) from error
    except OSError as error:
        raise unwritable_error(path, error) from error


def write_new(path: Path, data: bytes) -> None:
    """Write a new file, completely or not at all.

    Raises:
        RecordingError: If the file exists, or cannot be written.
    """
    try:
        with open_new(path) as stream:
            stream.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise unwritable_error(path, error) from error


def file_exists_error(path: Path) -> RecordingError:
    """Return the error for a file that already exists."""
    return RecordingError(path, "the file already exists", "Choose another name, or move the file.")


def unwritable_error(path: Path, error: OSError) -> RecordingError:
    """Return the error for a file that cannot be written."""
    reason = f"cannot be written ({error.strerror or error})"
    return RecordingError(path, reason, "Check the folder, its permissions, and the free disk space.")
