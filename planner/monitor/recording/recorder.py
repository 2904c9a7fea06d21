"""Recorder that writes updates to a file from a separate thread; killing the program loses a quarter of a second."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic, time
from typing import Any, BinaryIO, Final, Self

from planner import __version__
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.files import RecordingWriter, open_new, unwritable_error
from planner.monitor.recording.records import (
    FORMAT_VERSION,
    Record,
    RecordedMark,
    RecordedPlan,
    RecordingEnd,
    RecordingHeader,
)

PROGRAM_NAME: Final = f"gpu-planner {__version__}"
"""Name of this program in its recordings."""
_FLUSH_SECONDS: Final = 0.25
# Recording stops if a disk blocks for this many updates: a quarter of an hour at the fastest rate.
_MAX_QUEUED: Final = 9_000
_DISK_BLOCKED: Final = "cannot write to the disk"
# A disk that hangs must not keep the window from closing.
_CLOSE_TIMEOUT_SECONDS: Final = 5.0


class Recorder:
    """Records updates to the file `path` without ever blocking the caller on the disk.

    Call `note` with the current inventory, then with every update. Call `close`, or use it as a context manager.

    Raises:
        RecordingError: If the file exists and `replace` is False, or the file cannot be created.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self._stream = open_new(path, replace=replace)
        self._writer = _begin_recording(self._stream, path)
        self._queue: Queue[tuple[Record, Timestamp] | None] = Queue(_MAX_QUEUED)
        self._failure: str | None = None
        self._is_closed = False
        self._thread = Thread(target=self._write_until_closed, name="recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def failure(self) -> str | None:
        """Return the reason why recording failed, None if there was no failure."""
        return self._failure

    def note(self, update: Inventory | Sample) -> None:
        """Record an inventory or sample."""
        self._enqueue(update)

    def mark(self, text: str) -> RecordedMark:
        """Record a user's note at the current time, and return the recorded mark."""
        mark = RecordedMark(monotonic(), time(), text)
        self._enqueue(mark)
        return mark

    def note_plan(self, plan: Mapping[str, Any]) -> None:
        """Record the active plan as JSON values; a later plan replaces an earlier plan."""
        self._enqueue(RecordedPlan(plan))

    def close(self) -> None:
        """Write all queued records and the end record; `failure` reports errors."""
        if self._is_closed:
            return
        self._is_closed = True
        self._enqueue(RecordingEnd(time()))
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_CLOSE_TIMEOUT_SECONDS)
        self._thread.join(_CLOSE_TIMEOUT_SECONDS)
        if self._thread.is_alive():
            self._failure = _DISK_BLOCKED

    def _enqueue(self, record: Record) -> None:
        if self._failure is not None:
            return
        try:
            self._queue.put_nowait((record, _current_timestamp()))
        except Full:
            self._failure = _DISK_BLOCKED

    def _write_until_closed(self) -> None:
        try:
            with self._stream as stream:
                self._write_all(stream)
        except OSError as error:
            self._failure = error.strerror or str(error)
        except (ValueError, TypeError) as error:
            # The plan contains values that JSON does not support.
            self._failure = str(error)

    def _write_all(self, stream: BinaryIO) -> None:
        is_open = True
        while is_open:
            is_open = self._write_batch()
            self._writer.flush()
        self._writer.end()
        os.fsync(stream.fileno())

    def _write_batch(self) -> bool:
        """Write the records of one flush interval; return whether more may follow."""
        item = self._queue.get()
        due = monotonic() + _FLUSH_SECONDS
        while item is not None:
            record, at = item
            self._writer.put(record, at)
            remaining_seconds = due - monotonic()
            if remaining_seconds <= 0:
                return True
            try:
                item = self._queue.get(timeout=remaining_seconds)
            except Empty:
                return True
        return False


def _begin_recording(stream: BinaryIO, path: Path) -> RecordingWriter:
    """Return a writer that has already written the header, so that the file is a valid recording from the start."""
    writer, now = RecordingWriter(stream), _current_timestamp()
    try:
        writer.put(RecordingHeader(FORMAT_VERSION, PROGRAM_NAME, now.wall_seconds), now)
        writer.flush()
    except OSError as error:
        with suppress(OSError):
            stream.close()
        raise unwritable_error(path, error) from error
    return writer


def _current_timestamp() -> Timestamp:
    return Timestamp(monotonic(), time())
