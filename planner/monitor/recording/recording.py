"""Reading of recordings: span, marks and plan are loaded at once, updates are streamed."""

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import BadLineError
from planner.monitor.recording.gzip_members import DamagedSpan, MemberStart, read_lines
from planner.monitor.recording.records import (
    SAMPLE_START,
    VERSION,
    Record,
    RecordedMark,
    RecordedPlan,
    RecordingEnd,
    RecordingHeader,
    read_record,
)

_MAX_MARKS: Final = 10_000
_MAX_BAD_LINES: Final = 10_000
_HOW_TO_RECORD: Final = (
    "Open a file written by “Record or stop…” in the window's Monitor menu, or by `gpu-planner monitor --record` in a "
    "shell."
)


class DataLoss(NamedTuple):
    """Missing data: whether the end is cut off, damaged places, the bytes of the file they affect, and bad lines."""

    is_cut: bool = False
    places: int = 0
    lost_bytes: int = 0
    bad_lines: int = 0


class TimedUpdate(NamedTuple):
    """An update and its time by the monotonic clock."""

    monotonic_seconds: float
    update: Inventory | Sample


class MonitorRecording:
    """A recording file. Each iteration streams it from disk, so that a day of eight cards fits in memory.

    `notes` are remarks on an imported log of another program. Times are monotonic seconds.

    Raises:
        RecordingError: If the file is not a recording, or one of a later version.
        OSError: If it cannot be read.
    """

    def __init__(self, open_stream: Callable[[], BinaryIO], path: Path, notes: tuple[str, ...] = ()) -> None:
        self.path, self.notes = path, notes
        self._open = open_stream
        contents = _Contents(path)
        with closing(open_stream()) as stream:
            contents.scan(stream)
        if contents.header is None:
            raise RecordingError(path, "is not a recording of the monitor", _HOW_TO_RECORD)
        self.header: Final = contents.header
        self.samples: Final = contents.samples
        self.first, self.last = contents.first, contents.last
        self.marks: Final = tuple(contents.marks)
        self.plan: Final = contents.plan
        self.loss: Final = contents.loss
        self._members: Final = tuple(contents.members)

    @property
    def start(self) -> float:
        """Return the time of the first sample; 0 if there is none."""
        return 0.0 if self.first is None else self.first.monotonic_seconds

    @property
    def seconds(self) -> float:
        """Return the duration, from the first sample to the last."""
        return 0.0 if self.last is None else max(0.0, self.last.monotonic_seconds - self.start)

    def __iter__(self) -> Iterator[Inventory | Sample]:
        return (timed.update for timed in self.timed())

    def content(self) -> bytes:
        """Return the bytes of the file, which exist only in memory for an imported log.

        Raises:
            OSError: If they can no longer be read.
        """
        with closing(self._open()) as stream:
            return stream.read()

    def timed(self, since: float | None = None) -> Iterator[TimedUpdate]:
        """Yield the updates with their times; with `since`, from somewhat before that time on, inventory first.

        Raises:
            OSError: If the file can no longer be read.
        """
        with closing(self._open()) as stream:
            yield from _updates(read_lines(stream, self._offset(since)))

    def _offset(self, since: float | None) -> int:
        offset = 0
        for place, first in self._members:
            if since is None or first > since:
                break
            offset = place
        return offset


class _Contents:
    """Index of a file: all but the samples between the first and the last of each member."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header: RecordingHeader | None = None
        self.first: Timestamp | None = None
        self.last: Timestamp | None = None
        self.marks: list[RecordedMark] = []
        self.plan: Mapping[str, Any] | None = None
        self.members: list[tuple[int, float]] = []
        self.samples = 0
        self.loss = DataLoss(is_cut=True)
        self._begun: int | None = None
        self._latest = b""

    def scan(self, stream: BinaryIO) -> None:
        for found in read_lines(stream):
            if isinstance(found, bytes):
                self._note_line(found)
            elif isinstance(found, MemberStart):
                self._end_member()
                self._begun = found.offset
            else:
                self._note_damage(found)
        self._end_member()

    def _note_line(self, line: bytes) -> None:
        if not line.startswith(SAMPLE_START):
            self._note_other(line)
        elif self._begun is None:
            self.samples += 1
            self._latest = line
        elif (at := self._moment(line)) is not None:
            self.samples += 1
            self.members.append((self._begun, at.monotonic_seconds))
            self.first = self.first or at
            self.last, self._begun, self._latest = at, None, b""

    def _end_member(self) -> None:
        """Record the time of the member's last sample."""
        if self._latest:
            self.last = self._moment(self._latest) or self.last
            self._latest = b""

    def _moment(self, line: bytes) -> Timestamp | None:
        sample = self._read(line)
        return Timestamp(sample.monotonic_seconds, sample.wall_seconds) if isinstance(sample, Sample) else None

    def _note_other(self, line: bytes) -> None:
        record = self._read(line)
        if isinstance(record, RecordingHeader):
            self._note_header(record)
        elif isinstance(record, RecordedMark) and len(self.marks) < _MAX_MARKS:
            self.marks.append(record)
        elif isinstance(record, RecordedPlan):
            self.plan = record.plan
        elif isinstance(record, RecordingEnd):
            self.loss = self.loss._replace(is_cut=False)

    def _note_header(self, header: RecordingHeader) -> None:
        if header.version > VERSION:
            reason = f"was written by a later version ({header.program})"
            raise RecordingError(self._path, reason, "Update GPU Planner.")
        self.header = self.header or header

    def _read(self, line: bytes) -> Record | None:
        try:
            return read_record(line)
        except BadLineError:
            self.loss = self.loss._replace(bad_lines=self.loss.bad_lines + 1)
        if self.header is None or self.loss.bad_lines > _MAX_BAD_LINES:
            raise RecordingError(self._path, "is not a recording of the monitor", _HOW_TO_RECORD)
        return None

    def _note_damage(self, damage: DamagedSpan) -> None:
        if not damage.is_end:
            loss = self.loss
            self.loss = loss._replace(places=loss.places + 1, lost_bytes=loss.lost_bytes + damage.lost_bytes)


def _updates(found: Iterator[MemberStart | DamagedSpan | bytes]) -> Iterator[TimedUpdate]:
    """Yield the updates of lines; an unchanged inventory is left out."""
    standing: Inventory | None = None
    at = 0.0
    waiting: list[TimedUpdate] = []
    for line in found:
        record = _record(line) if isinstance(line, bytes) else None
        if isinstance(record, Timestamp):
            at = record.monotonic_seconds
        elif isinstance(record, Inventory) and record != standing:
            standing = record
            waiting.append(TimedUpdate(at, record))
        elif isinstance(record, Sample):
            # The clocks of who reads and who writes may differ: what comes first in the file came first.
            yield from (timed._replace(monotonic_seconds=min(timed[0], record.monotonic_seconds)) for timed in waiting)
            waiting.clear()
            yield TimedUpdate(record.monotonic_seconds, record)
    yield from waiting


def _record(line: bytes) -> Record | None:
    try:
        return read_record(line)
    except BadLineError:
        return None


def read_recording(path: Path) -> MonitorRecording:
    """Open a file written by `Recorder`, however it ended.

    Raises:
        RecordingError: If it cannot be read, or is not a recording.
    """
    return MonitorRecording(lambda: open_regular(path), path)


def recording_of_bytes(data: bytes, path: Path, notes: tuple[str, ...] = ()) -> MonitorRecording:
    """Return a recording that is in memory; `path` and `notes` describe its origin.

    Raises:
        RecordingError: If it is not a recording.
    """
    return MonitorRecording(lambda: BytesIO(data), path, notes)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes.

    Raises:
        RecordingError: If it is a folder, a device or a pipe, or cannot be opened.
    """
    try:
        # Opening a pipe would wait for whoever writes into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingError(path, "is not a file", "Give the path of a recording.")
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(path, f"cannot be read ({reason})", "Check the path and its permissions.") from error
