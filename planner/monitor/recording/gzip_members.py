"""File format of recordings: lines in consecutive gzip members, flushed so that a truncated file loses little.

`zcat` reads it. Each member can be read independently, and all flushed data without later data.
"""

import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import BinaryIO, Final, NamedTuple

from planner.units import KIB, MIB

MAX_LINE_BYTES: Final = 8 * MIB
"""Maximum length of a valid line in bytes; a sample of a thousand cards is shorter."""
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
