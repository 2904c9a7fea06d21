"""Puts records into a recording's form: when a member ends, and what each member begins with."""

from pathlib import Path
from typing import BinaryIO, Final

from planner.errors import RecordingError
from planner.monitor.readings.events import Moment
from planner.monitor.readings.inventory import Inventory
from planner.monitor.recording.blocks import BlockWriter
from planner.monitor.recording.records import Header, PlannedRun, Record, record_line

# A broken place costs at most one member, and a jump reads at most one; shorter ones would make the file larger.
_MEMBER_SECONDS: Final = 60.0


class RecordingWriter:
    """Writes records to `stream`. Every member begins with what the file is, the plan and the cards that stand.

    So it can be read alone.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._blocks = BlockWriter(stream)
        self._waiting: list[bytes] = []
        self._standing: dict[type, bytes] = {}
        self._began: float | None = None

    def put(self, record: Record, at: Moment) -> bool:
        """Take a record that was seen at `at`; return whether it began a member.

        Raises:
            OSError: If a member was over and cannot be written.
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
        if isinstance(record, Header | PlannedRun | Inventory):
            self._standing[type(record)] = line
        self._waiting.append(line)
        return is_over

    def flush(self) -> None:
        """Write what was put so far, so that it outlives this process.

        Raises:
            OSError: If it cannot be written.
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
