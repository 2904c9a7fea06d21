"""Writes what is seen into a file while it is seen; a process that is killed loses half a second of it at most."""

import os
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic, time
from typing import Any, BinaryIO, Final, Self

from planner import __version__
from planner.errors import RecordingError
from planner.monitor.events import Moment
from planner.monitor.inventory import Inventory
from planner.monitor.recording.records import VERSION, End, Header, Mark, PlannedRun, Record
from planner.monitor.recording.writer import RecordingWriter
from planner.monitor.sample import Sample

PROGRAM: Final = f"gpu-planner {__version__}"
"""What this program calls itself in its files."""
_FLUSH_SECONDS: Final = 0.5
# A disk that does not answer for so many updates is given up: a quarter of an hour at the fastest rate.
_MOST_WAITING: Final = 9_000


class Recorder:
    """Records updates into `path`; nothing that it is told ever waits for the disk.

    Begin with the inventory that stands, then note every update. `close` it, or use it as a context manager.

    Raises:
        RecordingError: If there is a file of that name already, unless it may be replaced, or it cannot be made.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self._stream = _open(path, replace=replace)
        self._queue: Queue[tuple[Record, Moment] | None] = Queue(_MOST_WAITING)
        self._failure: str | None = None
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()
        self._put(Header(VERSION, PROGRAM, time()))

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
        if not self._stream.closed:
            self._put(End(time()))
            self._queue.put(None)
            self._thread.join()

    def _put(self, record: Record) -> None:
        if self._failure is not None:
            return
        try:
            self._queue.put_nowait((record, Moment(monotonic(), time())))
        except Full:
            self._failure = "the disk does not take what is written"

    def _run(self) -> None:
        with self._stream as stream:
            try:
                self._write_all(stream)
            except (OSError, ValueError, TypeError) as error:
                self._failure = str(error)
                self._drain()

    def _write_all(self, stream: BinaryIO) -> None:
        writer = RecordingWriter(stream)
        is_open = True
        while is_open:
            is_open = self._write_some(writer)
            writer.flush()
        writer.end()
        os.fsync(stream.fileno())

    def _write_some(self, writer: RecordingWriter) -> bool:
        """Put what comes within one flush after the first of it; return whether more may come."""
        item = self._queue.get()
        due = monotonic() + _FLUSH_SECONDS
        while item is not None:
            record, at = item
            writer.put(record, at)
            try:
                item = self._queue.get(timeout=max(0.0, due - monotonic()))
            except Empty:
                return True
        return False

    def _drain(self) -> None:
        """Let whoever closes this go on."""
        while self._queue.get() is not None:
            pass


def _open(path: Path, *, replace: bool) -> BinaryIO:
    try:
        return path.open("wb" if replace else "xb")
    except FileExistsError as error:
        raise RecordingError(path, "there is a file of that name", "Take another name, or move it away.") from error
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
        raise RecordingError(path, reason, "Check the folder and its rights.") from error
