"""Writing of records into gzip members, each of which begins with everything needed to read it alone."""

from pathlib import Path
from typing import BinaryIO, Final

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.recording.gzip_members import MemberWriter
from planner.monitor.recording.records import Record, RecordedPlan, RecordingHeader, record_line

# A broken place costs at most one member, and a jump reads at most one; shorter ones would make the file larger.
_MEMBER_SECONDS: Final = 60.0


class RecordingWriter:
    """Writes records to `stream`. Every member begins with the header, the plan and the current inventory.

    So each member can be read alone.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._blocks = MemberWriter(stream)
        self._waiting: list[bytes] = []
        self._standing: dict[type, bytes] = {}
        self._began: float | None = None

    def put(self, record: Record, at: Timestamp) -> bool:
        """Add a record observed at `at`; return whether it started a new member.

        Raises:
            OSError: If the previous member cannot be written.
        """
        if self._began is None:
            self._began = at.monotonic_seconds
        is_over = at.monotonic_seconds - self._began >= _MEMBER_SECONDS
        if is_over:
            self.flush()
            self._blocks.end_member()
            self._began = at.monotonic_seconds
            self._waiting += self._standing.values()
        line = record_line(record)
        if isinstance(record, Inventory):
            line = record_line(at) + line
        if isinstance(record, RecordingHeader | RecordedPlan | Inventory):
            self._standing[type(record)] = line
        self._waiting.append(line)
        return is_over

    def flush(self) -> None:
        """Write the records added so far, so that they outlive this process.

        Raises:
            OSError: If they cannot be written.
        """
        if self._waiting:
            self._blocks.write(b"".join(self._waiting))
            self._waiting.clear()

    def end(self) -> None:
        """Write the rest.

        Raises:
            OSError: If it cannot be written.
        """
        self.flush()
        self._blocks.end_member()


def open_new(path: Path, *, replace: bool = False) -> BinaryIO:
    """Create a file for writing bytes.

    Raises:
        RecordingError: If it exists and `replace` is False, or it cannot be created.
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
        RecordingError: If it exists, or cannot be written.
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
