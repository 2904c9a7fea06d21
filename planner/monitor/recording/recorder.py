"""Writes what is seen into a file while it is seen; a process that is killed loses a quarter of a second of it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic, time
from typing import Any, BinaryIO, Final, Self

from planner import __version__
from planner.monitor.readings.events import Moment
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.records import VERSION, End, Header, Mark, PlannedRun, Record
from planner.monitor.recording.writer import RecordingWriter, open_new, unwritable

PROGRAM: Final = f"gpu-planner {__version__}"
"""What this program calls itself in its files."""
_FLUSH_SECONDS: Final = 0.25
# A disk that does not answer for so many updates is given up: a quarter of an hour at the fastest rate.
_MOST_WAITING: Final = 9_000
_DISK_HANGS: Final = "the disk does not take what is written"
# A disk that hangs must not keep the window from closing.
_PATIENCE_SECONDS: Final = 5.0


class Recorder:
    """Records updates into `path`; nothing that it is told ever waits for the disk.

    Begin with the inventory that stands, then note every update. `close` it, or use it as a context manager.

    Raises:
        RecordingError: If there is a file of that name already, unless it may be replaced, or it cannot be made.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self._stream = open_new(path, replace=replace)
        self._writer = _begun(self._stream, path)
        self._queue: Queue[tuple[Record, Moment] | None] = Queue(_MOST_WAITING)
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
        """Return why nothing is written any more, none while all is well."""
        return self._failure

    def note(self, update: Inventory | Sample) -> None:
        """Take down an update."""
        self._put(update)

    def mark(self, text: str) -> Mark:
        """Take down a note of this moment, and return it."""
        mark = Mark(monotonic(), time(), text)
        self._put(mark)
        return mark

    def note_plan(self, plan: Mapping[str, Any]) -> None:
        """Take down the plan that stands beside what is seen, as plain values; the last one holds."""
        self._put(PlannedRun(plan))

    def close(self) -> None:
        """Write the rest and the proper end; what could not be written is in `failure`."""
        if self._is_closed:
            return
        self._is_closed = True
        self._put(End(time()))
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_PATIENCE_SECONDS)
        self._thread.join(_PATIENCE_SECONDS)
        if self._thread.is_alive():
            self._failure = _DISK_HANGS

    def _put(self, record: Record) -> None:
        if self._failure is not None:
            return
        try:
            self._queue.put_nowait((record, _now()))
        except Full:
            self._failure = _DISK_HANGS

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
        """Put what comes within one flush after the first of it; return whether more may come."""
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


def _begun(stream: BinaryIO, path: Path) -> RecordingWriter:
    """Return a writer that has written what the file is, so that it is a recording from its first moment on."""
    writer, now = RecordingWriter(stream), _now()
    try:
        writer.put(Header(VERSION, PROGRAM, now.wall_seconds), now)
        writer.flush()
    except OSError as error:
        with suppress(OSError):
            stream.close()
        raise unwritable(path, error) from error
    return writer


def _now() -> Moment:
    return Moment(monotonic(), time())
