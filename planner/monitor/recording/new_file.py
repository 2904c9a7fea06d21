"""Files that are written for people: opened so that none is lost, and what is said where that cannot be."""

from pathlib import Path
from typing import BinaryIO

from planner.errors import RecordingError


def open_new(path: Path, *, replace: bool = False) -> BinaryIO:
    """Return a new file as a stream to write into.

    Raises:
        RecordingError: If there is a file of that name already, unless it may be replaced, or it cannot be made.
    """
    try:
        return path.open("wb" if replace else "xb")
    except FileExistsError as error:
        raise taken(path) from error
    except OSError as error:
        raise unwritable(path, error) from error


def write_new(path: Path, data: bytes) -> None:
    """Write a new file, whole or not at all.

    Raises:
        RecordingError: If there is a file of that name already, or it cannot be written.
    """
    try:
        with open_new(path) as stream:
            stream.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def taken(path: Path) -> RecordingError:
    """Return what to say of a name that is taken."""
    return RecordingError(path, "there is a file of that name", "Take another name, or move it away.")


def unwritable(path: Path, error: OSError) -> RecordingError:
    """Return what to say of a file that cannot be written."""
    reason = f"cannot be written ({error.strerror or error})"
    return RecordingError(path, reason, "Check the folder, its rights, and the room on the disk.")
