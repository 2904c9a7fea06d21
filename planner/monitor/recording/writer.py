"""Puts records into a recording's form: when a member ends, and what each member begins with."""

from typing import BinaryIO, Final

from planner.monitor.events import Moment
from planner.monitor.inventory import Inventory
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
