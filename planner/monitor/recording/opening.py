"""Opens recordings of this program; `logs` opens those of others."""

import stat
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from planner.errors import RecordingError
from planner.monitor.recording.recording import Recording


def read_recording(path: Path) -> Recording:
    """Return what a file of `Recorder` holds, however it ended.

    Raises:
        RecordingError: If it cannot be read, or is no recording.
    """
    return Recording(lambda: open_regular(path), path)


def recording_of_bytes(data: bytes, path: Path, notes: tuple[str, ...] = ()) -> Recording:
    """Return a recording that is in memory; `path` and `notes` say where it is from.

    Raises:
        RecordingError: If it is none.
    """
    return Recording(lambda: BytesIO(data), path, notes)


def open_regular(path: Path) -> BinaryIO:
    """Return a file's bytes as a stream.

    Raises:
        RecordingError: If it is a folder, a device or a pipe, or cannot be opened.
    """
    try:
        # Opening a pipe would wait for whoever writes into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingError(path, "is no file", "Name a recording's file.")
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(path, f"cannot be read ({reason})", "Check the path and its rights.") from error
