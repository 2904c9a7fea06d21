"""One file out of a zip archive from the network, within limits that a hostile archive cannot pass."""

import io
import zipfile
import zlib
from typing import Final

from planner.errors import PriceError
from planner.units import MIB

MOST_UNPACKED_BYTES: Final = 200 * MIB
_PIECE_BYTES: Final = 1 * MIB
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


def unpack(content: bytes, member: str, provider: str, most_bytes: int = MOST_UNPACKED_BYTES) -> bytes:
    """Return the file `member`, which must be the only one in the archive.

    Raises:
        PriceError: If `content` is no such archive, is cut off, or unpacks to more than `most_bytes`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if names != [member]:
                raise PriceError(provider, f"its archive holds {_named(names)} instead of {member}")
            return _inflated(archive, member, provider, most_bytes)
    except _BROKEN as error:
        raise PriceError(provider, f"its archive cannot be read ({error})") from error


def _inflated(archive: zipfile.ZipFile, member: str, provider: str, most_bytes: int) -> bytes:
    """Return what is in it, counting what really comes out: the size in the head may be a lie."""
    found = bytearray()
    with archive.open(member) as stream:
        while piece := stream.read(_PIECE_BYTES):
            found += piece
            if len(found) > most_bytes:
                raise PriceError(provider, f"its archive unpacks to more than {most_bytes:,} bytes")
    return bytes(found)


def _named(names: list[str]) -> str:
    return f"{len(names):,} files" if len(names) != 1 else names[0][:100]
