"""Reading of user files within size limits, and atomic writing that survives a crash."""

import glob
import os
import stat
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

from planner.units import MIB

UNFINISHED_SUFFIX: Final = ".unfinished"
"""Suffix of files that are being written; one that remains was left by a killed process."""
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
CHECK_PATH: Final = "Check the path and its permissions."
"""Hint about a file that cannot be read."""


class UnreadableFileError(Exception):
    """A file that cannot be read; `reason` follows the file's name in a message, `hint` suggests a remedy."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def read_regular(path: Path, kind: str, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; `kind` names the file in errors, such as "plan".

    Raises:
        UnreadableFileError: If it is a folder, a device, too large or unreadable.
    """
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise UnreadableFileError(f"is a folder, not a {kind}", f"Name the {kind}'s file.")
        if not stat.S_ISREG(about.st_mode):
            raise UnreadableFileError(f"is a device or a pipe, not a {kind}", f"Name the {kind}'s file.")
        # The reported size may be wrong (a growing file, or one of /proc), so the limit applies to reading as well; but
        # to ask for that much at once takes as long as to read the file.
        if about.st_size <= limit:
            with path.open("rb") as stream:
                content = stream.read(about.st_size + 1)
                if len(content) > about.st_size:
                    content += stream.read(limit + 1 - len(content))
            if len(content) <= limit:
                return content
    except OSError as error:
        raise UnreadableFileError(f"cannot be read ({error.strerror})", CHECK_PATH) from error
    except ValueError as error:
        raise UnreadableFileError(f"is not a valid path ({error})", CHECK_PATH) from error
    reason = f"is too large for a {kind} ({about.st_size:,} bytes)"
    raise UnreadableFileError(reason, f"Open a file of at most {limit // MIB:,} MiB.")


def may_exist(path: Path) -> bool:
    """Return False if there is no such file, and True where that is unknown: reading it then says why."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def read_stored(path: Path, kind: str, limit: int) -> bytes | None:
    """Return the content of a file in the user's folder as `read_regular` does, or None if there is no such file.

    Raises:
        UnreadableFileError: If there is one that cannot be read, or the folder cannot be searched.
    """
    return read_regular(path, kind, limit) if may_exist(path) else None


def decode_text(data: bytes) -> str:
    """Return text decoded from UTF-8, or UTF-16 as in PowerShell; invalid bytes become replacement characters."""
    return data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig", "replace")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` to a temporary file in the folder of `path`, flush it to disk, and rename it over `path`.

    A symbolic link is followed: its target is replaced. An existing file keeps its permissions.

    Raises:
        OSError: If the folder is not writable; the old file stays untouched.
    """
    target = Path(os.path.realpath(path))
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        _write_and_rename(target, data)
    except FileNotFoundError:
        # A window that starts deletes unfinished files without asking who writes them (`delete_unfinished`).
        _write_and_rename(target, data)


def delete_unfinished(folder: Path, name: str | None = None) -> None:
    """Delete the unfinished files of killed processes in `folder`, of all files or of the one called `name`.

    A process that is still writing one writes it again, so that no clock has to tell how old a file is.
    """
    for file in folder.glob(f".{'*' if name is None else glob.escape(name)}.????????{UNFINISHED_SUFFIX}"):
        with suppress(OSError):
            file.unlink()


def set_aside(path: Path) -> Path | None:
    """Rename a file that cannot be read, so that nothing overwrites it; return its new path, None if it stays."""
    asides = (path.with_name(f"{path.name}.bad{number}") for number in chain(("",), count(2)))
    try:
        return path.replace(next(aside for aside in asides if not os.path.lexists(aside)))
    except OSError:
        return None


def _write_and_rename(target: Path, data: bytes) -> None:
    import tempfile  # most answers write no file

    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=UNFINISHED_SUFFIX)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(_file_permissions(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_stored(path: Path, content: str | bytes) -> None:
    """Write a file in the user's folder as `write_atomically` does, and create the folder if it is missing.

    Raises:
        OSError: If the folder cannot be created or is not writable.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def _file_permissions(target: Path) -> int:
    """Return the permissions of the file `target`, or those of a new file."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        # The umask can only be read by setting it.
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
