"""Unpacking of zip and gzip files, up to the size that their reader allows."""

import gzip
import zipfile
import zlib
from io import BytesIO
from typing import IO, Final

from planner.parsing import CORRECT_IT
from planner.storage import UnreadableFileError
from planner.units import MIB

_PIECE_BYTES: Final = 1 * MIB


def unpack_zip(data: bytes, member: str, most_bytes: int) -> bytes:
    """Return the file `member` of a zip archive, in which it must be the only one.

    Raises:
        UnreadableFileError: If it is not such an archive, is truncated, or unpacks to more than `most_bytes`.
    """
    broken = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
            if names != [member]:
                found = f"{len(names):,} files" if len(names) != 1 else names[0][:100]
                raise UnreadableFileError(f"contains {found} instead of {member}", CORRECT_IT)
            with archive.open(member) as stream:
                return _unpacked(stream, most_bytes)
    except broken as error:
        raise UnreadableFileError(f"cannot be unpacked ({error})", CORRECT_IT) from error


def unpack_gzip(data: bytes, most_bytes: int) -> bytes:
    """Return the content of a gzip file.

    Raises:
        UnreadableFileError: If it is damaged, or unpacks to more than `most_bytes`.
    """
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            return _unpacked(stream, most_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(f"cannot be unpacked ({error})", CORRECT_IT) from error


def _unpacked(stream: IO[bytes] | gzip.GzipFile, most_bytes: int) -> bytes:
    """Return all that a stream unpacks to; the true size is limited, since the size that is stated may be wrong."""
    content = bytearray()
    while piece := stream.read(_PIECE_BYTES):
        content += piece
        if len(content) > most_bytes:
            raise UnreadableFileError(f"unpacks to more than {most_bytes:,} bytes", "Choose a smaller file.")
    return bytes(content)
