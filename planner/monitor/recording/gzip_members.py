"""File format of recordings: lines in consecutive gzip members, flushed so that a cut loses little.

`zcat` reads it. Each member can be read without the others, and each flush without what follows.
"""

import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import BinaryIO, Final, NamedTuple

from planner.units import KIB, MIB

MAX_LINE_BYTES: Final = 8 * MIB
"""Longest valid line; a sample of a thousand cards is shorter."""
_GZIP: Final = 16 + zlib.MAX_WBITS
# What every member starts with here: gzip, deflate, no name, no time.
_MAGIC: Final = b"\x1f\x8b\x08" + bytes(5)
_READ_BYTES: Final = 64 * KIB
_OUT_BYTES: Final = 1 * MIB
# Of data in which a broken place is, so much is lost before it.
_STEP_BYTES: Final = 64
# A file with more broken places is not worth the time that looking for the next member takes.
_MOST_DAMAGES: Final = 100


class MemberStart(NamedTuple):
    """A gzip member starts at this byte of the file."""

    offset: int


class DamagedSpan(NamedTuple):
    """Unreadable bytes of the file; `is_end` if the file merely ends within a member."""

    offset: int
    lost_bytes: int
    is_end: bool


class MemberWriter:
    """Writes lines to `stream`; everything flushed can be read whatever happens next."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def write(self, lines: bytes) -> None:
        """Write whole lines and hand them to the operating system.

        Raises:
            OSError: If they cannot be written.
        """
        self._out(self._compressor.compress(lines) + self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def end_member(self) -> None:
        """End the member, so that later lines can be read without it.

        Raises:
            OSError: If its end cannot be written.
        """
        self._out(self._compressor.flush())
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def _out(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


def read_lines(stream: BinaryIO, offset: int = 0) -> Iterator[MemberStart | DamagedSpan | bytes]:
    """Yield the lines from the member at `offset` on, with the starts of members and damaged spans.

    An incomplete line at the end of readable data is left out. Memory use is bounded, whatever the file claims to hold.

    Raises:
        OSError: If the file cannot be read.
    """
    size, damages = stream.seek(0, os.SEEK_END), 0
    while offset < size:
        end, is_cut = yield from _read_member(stream, offset)
        if end is None:
            damages += 1
            end = size if is_cut or damages > _MOST_DAMAGES else _next_member(stream, offset + 1, size)
            yield DamagedSpan(offset, end - offset, is_cut)
        offset = end


def _read_member(stream: BinaryIO, offset: int) -> Generator[MemberStart | bytes, None, tuple[int | None, bool]]:
    """Yield the lines of one member; return its end, None if damaged, and whether the file ends within it."""
    decompressor, rest = zlib.decompressobj(_GZIP), b""
    stream.seek(offset)
    yield MemberStart(offset)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail or stream.read(_READ_BYTES)
        if not data:
            return None, True
        before = decompressor.copy()
        try:
            # A little data may hold much: it is taken out bit by bit.
            *lines, rest = (rest + decompressor.decompress(data, _OUT_BYTES)).split(b"\n")
        except zlib.error:
            yield from (rest + b"".join(_until_damage(before, data))).split(b"\n")[:-1]
            return None, False
        yield from lines
        if len(rest) > MAX_LINE_BYTES:
            return None, False
    return stream.tell() - len(decompressor.unused_data), False


def _until_damage(decompressor: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """Yield the decompressed data up to the damage, which lies within the next `_OUT_BYTES`."""
    pieces = (data[place : place + _STEP_BYTES] for place in range(0, len(data), _STEP_BYTES))
    with suppress(zlib.error):
        yield from map(decompressor.decompress, pieces)


def _next_member(stream: BinaryIO, offset: int, size: int) -> int:
    """Return where the next member may start; the file's size if there is none."""
    stream.seek(offset)
    kept = b""
    while data := stream.read(_READ_BYTES):
        place = (kept + data).find(_MAGIC)
        if place >= 0:
            return stream.tell() - len(kept) - len(data) + place
        kept = data[-len(_MAGIC) :]
    return size
