"""Safe partial reading of untrusted files, local or remote."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Final, Protocol

from planner.errors import ModelFileError
from planner.storage import CHECK_PATH

_SHOWN: Final = 60
_TRUNCATED: Final = "Download or copy the file again: it ends too early."
# Non-blocking, so that opening a pipe that replaced the file does not wait for its other end.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class ByteSource(Protocol):
    """A local or remote file of known size; `place` names it in errors."""

    @property
    def place(self) -> str:
        """Return the file's name for error messages."""
        ...

    @property
    def size(self) -> int:
        """Return the file's size in bytes."""
        ...

    def read(self, offset: int, count: int) -> bytes:
        """Return exactly `count` bytes from `offset` on.

        Raises:
            ModelFileError: If the file has fewer bytes, or cannot be read.
        """
        ...


class LocalFile:
    """A regular file on this machine."""

    def __init__(self, path: Path, stream: BufferedReader) -> None:
        self._path, self._stream = path, stream
        self._size = os.fstat(stream.fileno()).st_size

    @property
    def place(self) -> str:
        """Return the file's path as text."""
        return str(self._path)

    @property
    def size(self) -> int:
        """Return the file's size in bytes, as the file system states it."""
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        """Return exactly `count` bytes from `offset` on.

        Raises:
            ModelFileError: If the file has fewer bytes, or cannot be read.
        """
        check_span(self, offset, count)
        data = self.read_up_to(offset, count)
        if len(data) != count:
            # The reported size may be wrong: the file may be shrinking.
            raise truncated_file_error(self, offset, count)
        return data

    def read_up_to(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on, even beyond the reported size.

        Raises:
            ModelFileError: If they cannot be read.
        """
        try:
            self._stream.seek(offset)
            return self._stream.read(count)
        except OSError as error:
            raise unreadable_file_error(self._path, error) from error


@contextmanager
def open_local(path: Path) -> Iterator[LocalFile]:
    """Open the regular file at `path`.

    Raises:
        ModelFileError: If it is missing, a folder, a pipe, a device, or not readable.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFileError(path, "is not a regular file", "Choose a model's config.json or its weights.")
        stream = os.fdopen(os.open(path, _FLAGS), "rb")
    except (OSError, ValueError) as error:
        raise unreadable_file_error(path, error) from error
    with stream:
        yield LocalFile(path, stream)


def read_whole(path: Path, limit: int, kind: str) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; `kind` names its kind in errors.

    Raises:
        ModelFileError: If it cannot be read or is larger.
    """
    with open_local(path) as file:
        # Files of /proc report a size of 0.
        found = b"" if file.size > limit else file.read_up_to(0, limit + 1)
    size = max(file.size, len(found))
    if size > limit:
        reason = f"is {size / 2**20:,.0f} MiB; a {kind} has at most {limit / 2**20:.0f} MiB"
        raise ModelFileError(path, reason, f"Choose the model's {kind}.")
    return found


def check_span(source: ByteSource, offset: int, count: int) -> None:
    """Raise a `ModelFileError` if `count` bytes from `offset` on extend beyond the end of `source`.

    Raises:
        ModelFileError: If the file has fewer bytes.
    """
    if offset + count > source.size:
        raise truncated_file_error(source, offset, count)


def truncated_file_error(source: ByteSource, offset: int, count: int) -> ModelFileError:
    """Return the error for a file that is too short."""
    return ModelFileError(
        source.place, f"is cut short: bytes {offset:,} to {offset + count:,} of {source.size:,} are needed", _TRUNCATED
    )


def unreadable_file_error(path: Path, error: OSError | ValueError) -> ModelFileError:
    """Return the error for a file that cannot be opened or read."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ModelFileError(path, f"cannot be read ({reason})", CHECK_PATH)


def quoted_text(text: str) -> str:
    """Return `text`, which comes from a file, in quotes, shortened and safe to print."""
    return ascii(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!a}…"
