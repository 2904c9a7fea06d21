"""Reading of recordings: time span, marks and plan are loaded at once, updates are streamed."""

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
from planner.monitor.recording.files import DamagedSpan, MemberStart, read_lines
from planner.monitor.recording.records import (
    FORMAT_VERSION,
    SAMPLE_START,
    Record,
    RecordedMark,
    RecordedPlan,
    RecordingEnd,
    RecordingHeader,
    read_record,
)
from planner.storage import CHECK_PATH

_MAX_MARKS: Final = 10_000
_MAX_BAD_LINES: Final = 10_000
_MAX_REASON: Final = 200
_HOW_TO_RECORD: Final = (
    "Open a file written by “Record or stop…” in the window's Monitor menu, or by `gpu-planner monitor --record` in a "
    "shell."
)


class DataLoss(NamedTuple):
    """Data lost from a recording file: a cut-off end, damaged places with their size in bytes, and bad lines.

    `reason` says what is wrong with the first bad line.
    """

    is_cut: bool = False
    places: int = 0
    lost_bytes: int = 0
    bad_lines: int = 0
    reason: str = ""


class TimedUpdate(NamedTuple):
    """An update and its time by the monotonic clock."""

    monotonic_seconds: float
    update: Inventory | Sample


class MonitorRecording:
    """A recording file. Each iteration streams the file from disk, so that even long recordings need little memory.

    `notes` are remarks on an imported log of another program. Times are monotonic seconds.

    Raises:
        RecordingError: If the file is not a recording, or was written by a later version.
        OSError: If the file cannot be read.
    """

    def __init__(self, open_stream: Callable[[], BinaryIO], path: Path, notes: tuple[str, ...] = ()) -> None:
        self.path, self.notes = path, notes
        self._open = open_stream
        contents = _RecordingIndex(path)
        with closing(open_stream()) as stream:
            contents.scan(stream)
        if contents.header is None:
            raise RecordingError(path, "not a recording of the monitor", _HOW_TO_RECORD)
        self.header: Final = contents.header
        self.samples: Final = contents.samples
        self.first, self.last = contents.first, contents.last
        self.marks: Final = tuple(contents.marks)
        self.plan: Final = contents.plan
        self.loss: Final = contents.loss
        self._members: Final = tuple(contents.members)

    @property
    def start(self) -> float:
        """Return the monotonic time of the first sample, 0 if there is no sample."""
        return 0.0 if self.first is None else self.first.monotonic_seconds

    @property
    def seconds(self) -> float:
        """Return the duration from the first sample to the last."""
        return 0.0 if self.last is None else max(0.0, self.last.monotonic_seconds - self.start)

    def __iter__(self) -> Iterator[Inventory | Sample]:
        return (timed.update for timed in self.timed())

    def content(self) -> bytes:
        """Return the content of the recording file, which exists only in memory for an imported log.

        Raises:
            OSError: If the file can no longer be read.
        """
        with closing(self._open()) as stream:
            return stream.read()

    def timed(self, since: float | None = None) -> Iterator[TimedUpdate]:
        """Yield the updates with their times; with `since`, from shortly before that time on, inventory first.

        Raises:
            OSError: If the file can no longer be read.
        """
        with closing(self._open()) as stream:
            yield from _updates(read_lines(stream, self._member_offset_before(since)))

    def _member_offset_before(self, since: float | None) -> int:
        """Return the offset of the last gzip member that begins no later than `since`, 0 by default."""
        offset = 0
        for start_offset, first in self._members:
            if since is None or first > since:
                break
            offset = start_offset
        return offset


class _RecordingIndex:
    """Index of a recording file: all records except samples, and the times of the first and last sample."""

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
        self._member_offset: int | None = None
        self._latest_sample_line = b""

    def scan(self, stream: BinaryIO) -> None:
        """Index the whole recording file in `stream`."""
        for item in read_lines(stream):
            if isinstance(item, bytes):
                self._note_line(item)
            elif isinstance(item, MemberStart):
                self._end_member()
                self._member_offset = item.offset
            else:
                self._note_damage(item)
        self._end_member()

    def _note_line(self, line: bytes) -> None:
        if not line.startswith(SAMPLE_START):
            self._note_record(line)
        elif self._member_offset is None:
            self.samples += 1
            self._latest_sample_line = line
        elif (at := self._sample_timestamp(line)) is not None:
            self.samples += 1
            self.members.append((self._member_offset, at.monotonic_seconds))
            self.first = self.first or at
            self.last, self._member_offset, self._latest_sample_line = at, None, b""

    def _end_member(self) -> None:
        """Record the time of the member's last sample."""
        if self._latest_sample_line:
            self.last = self._sample_timestamp(self._latest_sample_line) or self.last
            self._latest_sample_line = b""

    def _sample_timestamp(self, line: bytes) -> Timestamp | None:
        sample = self._read_record(line)
        return Timestamp(sample.monotonic_seconds, sample.wall_seconds) if isinstance(sample, Sample) else None

    def _note_record(self, line: bytes) -> None:
        record = self._read_record(line)
        if isinstance(record, RecordingHeader):
            self._note_header(record)
        elif isinstance(record, RecordedMark) and len(self.marks) < _MAX_MARKS:
            self.marks.append(record)
        elif isinstance(record, RecordedPlan):
            self.plan = record.plan
        elif isinstance(record, RecordingEnd):
            self.loss = self.loss._replace(is_cut=False)

    def _note_header(self, header: RecordingHeader) -> None:
        if header.version > FORMAT_VERSION:
            reason = f"was written by a later version ({header.program})"
            raise RecordingError(self._path, reason, "Update GPU Planner.")
        self.header = self.header or header

    def _read_record(self, line: bytes) -> Record | None:
        try:
            return read_record(line)
        except BadLineError as error:
            loss = self.loss
            self.loss = loss._replace(bad_lines=loss.bad_lines + 1, reason=loss.reason or str(error)[:_MAX_REASON])
        if self.header is None or self.loss.bad_lines > _MAX_BAD_LINES:
            raise RecordingError(self._path, "not a recording of the monitor", _HOW_TO_RECORD)
        return None

    def _note_damage(self, damage: DamagedSpan) -> None:
        if not damage.is_end:
            loss = self.loss
            self.loss = loss._replace(places=loss.places + 1, lost_bytes=loss.lost_bytes + damage.lost_bytes)


def _updates(lines: Iterator[MemberStart | DamagedSpan | bytes]) -> Iterator[TimedUpdate]:
    """Yield the updates in recorded lines; an unchanged inventory is left out."""
    current_inventory: Inventory | None = None
    at = 0.0
    pending: list[TimedUpdate] = []
    for line in lines:
        record = _valid_record(line) if isinstance(line, bytes) else None
        if isinstance(record, Timestamp):
            at = record.monotonic_seconds
        elif isinstance(record, Inventory) and record != current_inventory:
            current_inventory = record
            pending.append(TimedUpdate(at, record))
        elif isinstance(record, Sample):
            # An inventory and a sample are dated by different processes: the order in the file decides.
            yield from (timed._replace(monotonic_seconds=min(timed[0], record.monotonic_seconds)) for timed in pending)
            pending.clear()
            yield TimedUpdate(record.monotonic_seconds, record)
    yield from pending


def _valid_record(line: bytes) -> Record | None:
    try:
        return read_record(line)
    except BadLineError:
        return None


def read_recording(path: Path) -> MonitorRecording:
    """Open a complete or incomplete recording file.

    Raises:
        RecordingError: If the file cannot be read, or is not a recording.
    """
    return MonitorRecording(lambda: open_regular(path), path)


def recording_from_bytes(data: bytes, path: Path, notes: tuple[str, ...] = ()) -> MonitorRecording:
    """Return a recording from its file content; `path` and `notes` describe its origin.

    Raises:
        RecordingError: If `data` is not a recording.
    """
    return MonitorRecording(lambda: BytesIO(data), path, notes)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file in binary mode.

    Raises:
        RecordingError: If the path is a folder, a device or a pipe, or cannot be opened.
    """
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingError(path, "not a file", "Give the path of a recording.")
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(path, f"cannot be read ({reason})", CHECK_PATH) from error
