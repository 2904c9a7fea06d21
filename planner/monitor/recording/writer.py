"""Writing of records into gzip members that can be read independently."""

from pathlib import Path
from typing import BinaryIO, Final

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.recording.gzip_members import MemberWriter
from planner.monitor.recording.records import Record, RecordedPlan, RecordingHeader, record_line

# Damage costs at most one member, and a jump reads at most one; shorter members would make the file larger.
_MEMBER_SECONDS: Final = 60.0


class RecordingWriter:
    """Writes records to `stream`. Every member begins with the header, the plan and the current inventory.

    Therefore each member can be read independently.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._member_writer = MemberWriter(stream)
        self._pending_lines: list[bytes] = []
        self._context_lines: dict[type, bytes] = {}
        self._member_start_seconds: float | None = None

    def put(self, record: Record, at: Timestamp) -> bool:
        """Add a record observed at `at`; return whether the record started a new member.

        Raises:
            OSError: If the previous member cannot be written.
        """
        if self._member_start_seconds is None:
            self._member_start_seconds = at.monotonic_seconds
        is_member_over = at.monotonic_seconds - self._member_start_seconds >= _MEMBER_SECONDS
        if is_member_over:
            self.flush()
            self._member_writer.end_member()
            self._member_start_seconds = at.monotonic_seconds
            self._pending_lines += self._context_lines.values()
        line = record_line(record)
        if isinstance(record, Inventory):
            line = record_line(at) + line
        if isinstance(record, RecordingHeader | RecordedPlan | Inventory):
            self._context_lines[type(record)] = line
        self._pending_lines.append(line)
        return is_member_over

    def flush(self) -> None:
        """Write all added records to the file, which makes the records safe if this process is killed.

        Raises:
            OSError: If the records cannot be written.
        """
        if self._pending_lines:
            self._member_writer.write(b"".join(self._pending_lines))
            self._pending_lines.clear()

    def end(self) -> None:
        """Write all added records and the end of the last member.

        Raises:
            OSError: If the file cannot be written.
        """
        self.flush()
        self._member_writer.end_member()


def open_new(path: Path, *, replace: bool = False) -> BinaryIO:
    """Create a file and open it for writing in binary mode.

    Raises:
        RecordingError: If the file exists and `replace` is False, or it cannot be created.
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
        RecordingError: If the file exists, or cannot be written.
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
