"""Recorder that writes updates to a file from a thread of its own; a kill loses a quarter of a second."""

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
from planner.monitor.recording.records import VERSION, Record, RecordedMark, RecordedPlan, RecordingEnd, RecordingHeader
from planner.monitor.recording.writer import RecordingWriter, open_new, unwritable_error

PROGRAM: Final = f"gpu-planner {__version__}"
"""Name of this program in its recordings."""
_FLUSH_SECONDS: Final = 0.25
# A disk that does not answer for so many updates is given up: a quarter of an hour at the fastest rate.
_MAX_QUEUED: Final = 9_000
_DISK_STALLED: Final = "the disk does not accept data"
# A disk that hangs must not keep the window from closing.
_CLOSE_TIMEOUT_SECONDS: Final = 5.0


class Recorder:
    """Records updates into `path` without ever blocking the caller on the disk.

    Begin with the current inventory, then note every update. `close` it, or use it as a context manager.

    Raises:
        RecordingError: If the file exists and `replace` is False, or it cannot be created.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self._stream = open_new(path, replace=replace)
        self._writer = _begin_recording(self._stream, path)
        self._queue: Queue[tuple[Record, Timestamp] | None] = Queue(_MAX_QUEUED)
        self._failure: str | None = None
        self._is_closed = False
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def failure(self) -> str | None:
        """Return why recording stopped, None while all is well."""
        return self._failure

    def note(self, update: Inventory | Sample) -> None:
        """Record an update."""
        self._put(update)

    def mark(self, text: str) -> RecordedMark:
        """Record a note at the current time, and return it."""
        mark = RecordedMark(monotonic(), time(), text)
        self._put(mark)
        return mark

    def note_plan(self, plan: Mapping[str, Any]) -> None:
        """Record the active plan, as plain values; the last one counts."""
        self._put(RecordedPlan(plan))

    def close(self) -> None:
        """Write the rest and the proper end; an error is reported by `failure`."""
        if self._is_closed:
            return
        self._is_closed = True
        self._put(RecordingEnd(time()))
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_CLOSE_TIMEOUT_SECONDS)
        self._thread.join(_CLOSE_TIMEOUT_SECONDS)
        if self._thread.is_alive():
            self._failure = _DISK_STALLED

    def _put(self, record: Record) -> None:
        if self._failure is not None:
            return
        try:
            self._queue.put_nowait((record, _now()))
        except Full:
            self._failure = _DISK_STALLED

    def _run(self) -> None:
        try:
            with self._stream as stream:
                self._write_all(stream)
        except OSError as error:
            self._failure = error.strerror or str(error)
        except (ValueError, TypeError) as error:
            # A plan of values that JSON does not know.
            self._failure = str(error)

    def _write_all(self, stream: BinaryIO) -> None:
        is_open = True
        while is_open:
            is_open = self._write_some()
            self._writer.flush()
        self._writer.end()
        os.fsync(stream.fileno())

    def _write_some(self) -> bool:
        """Write the records of one flush interval; return whether more may follow."""
        item = self._queue.get()
        due = monotonic() + _FLUSH_SECONDS
        while item is not None:
            record, at = item
            self._writer.put(record, at)
            left = due - monotonic()
            if left <= 0:
                return True
            try:
                item = self._queue.get(timeout=left)
            except Empty:
                return True
        return False


def _begin_recording(stream: BinaryIO, path: Path) -> RecordingWriter:
    """Return a writer that has written what the file is, so that it is a recording from its first moment on."""
    writer, now = RecordingWriter(stream), _now()
    try:
        writer.put(RecordingHeader(VERSION, PROGRAM, now.wall_seconds), now)
        writer.flush()
    except OSError as error:
        with suppress(OSError):
            stream.close()
        raise unwritable_error(path, error) from error
    return writer


def _now() -> Timestamp:
    return Timestamp(monotonic(), time())
