"""The form of a recording's file: lines in gzip members one after the other, flushed so that a cut loses little.

`zcat` reads it. Each member can be read without the others, and each flush can be read without what follows.
"""

import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import BinaryIO, Final, NamedTuple

from planner.units import KIB, MIB

MAX_LINE_BYTES: Final = 8 * MIB
"""A sample of a thousand cards has less."""
_GZIP: Final = 16 + zlib.MAX_WBITS
# What every member starts with here: gzip, deflate, no name, no time.
_MAGIC: Final = b"\x1f\x8b\x08" + bytes(5)
_READ_BYTES: Final = 64 * KIB
_OUT_BYTES: Final = 1 * MIB
# Of data in which a broken place is, so much is lost before it.
_STEP_BYTES: Final = 64
# A file with more broken places is not worth the time that looking for the next member takes.
_MOST_DAMAGES: Final = 100


class Begin(NamedTuple):
    """A member begins at this byte of the file."""

    offset: int


class Damage(NamedTuple):
    """Bytes of the file that cannot be read; `is_end` where the file just ends within a member."""

    offset: int
    lost_bytes: int
    is_end: bool


class BlockWriter:
    """Writes lines to `stream`; what was flushed can be read whatever happens next."""

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
        """End the member, so that what follows can be read without it.

        Raises:
            OSError: If its end cannot be written.
        """
        self._out(self._compressor.flush())
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def _out(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


def read_lines(stream: BinaryIO, offset: int = 0) -> Iterator[Begin | Damage | bytes]:
    """Yield the lines from the member at `offset` on, where members begin, and what cannot be read.

    Half a line at the end of what can be read is left out. Needs little memory, whatever the file claims to hold.

    Raises:
        OSError: If the file cannot be read.
    """
    size, damages = stream.seek(0, os.SEEK_END), 0
    while offset < size:
        end, is_cut = yield from _read_member(stream, offset)
        if end is None:
            damages += 1
            end = size if is_cut or damages > _MOST_DAMAGES else _next_member(stream, offset + 1, size)
            yield Damage(offset, end - offset, is_cut)
        offset = end


def _read_member(stream: BinaryIO, offset: int) -> Generator[Begin | bytes, None, tuple[int | None, bool]]:
    """Yield what one member holds; return where it ends, none where it is broken, and whether the file ends within."""
    decompressor, rest = zlib.decompressobj(_GZIP), b""
    stream.seek(offset)
    yield Begin(offset)
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
    """Yield what `data` holds up to the place at which it is broken, which lies within the next `_OUT_BYTES`."""
    pieces = (data[place : place + _STEP_BYTES] for place in range(0, len(data), _STEP_BYTES))
    with suppress(zlib.error):
        yield from map(decompressor.decompress, pieces)


def _next_member(stream: BinaryIO, offset: int, size: int) -> int:
    """Return where the next member may begin, the file's size where none does."""
    stream.seek(offset)
    kept = b""
    while data := stream.read(_READ_BYTES):
        place = (kept + data).find(_MAGIC)
        if place >= 0:
            return stream.tell() - len(kept) - len(data) + place
        kept = data[-len(_MAGIC) :]
    return size
