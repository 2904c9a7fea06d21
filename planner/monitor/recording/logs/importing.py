"""Opens logs of other programs as recordings."""

from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Final

from planner.errors import RecordingError
from planner.monitor.readings.events import Moment
from planner.monitor.recording.logs.tables import NO_TIMES, ODD_TIMES, Table, read_nvtop
from planner.monitor.recording.logs.ticks import Line, TooManyCardsError, updates_of
from planner.monitor.recording.recording import Recording, open_regular, read_recording, recording_of_bytes
from planner.monitor.recording.records import VERSION, End, Header
from planner.monitor.recording.writer import RecordingWriter
from planner.storage import UnreadableFileError, decoded, read_regular
from planner.units import MIB

_MOST_BYTES: Final = 64 * MIB
_PROGRAM: Final = "another program's log"
_GZIP: Final = b"\x1f\x8b"
_KNOWN: Final = (
    "It takes the CSV of nvidia-smi --query-gpu, nvidia-smi dmon, dcgmi dmon, the JSON of nvtop -s, "
    "and CSV with columns named as theirs."
)
_OF_PROCESSES: Final = "is a log of processes, not of cards"
_ASK_FOR_CARDS: Final = (
    "Log the cards: nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,power.draw "
    "--format=csv -l 1 > log.csv"
)


def open_recording(path: Path) -> Recording:
    """Return a recording of this program, or another program's log as one.

    Raises:
        RecordingError: If it is neither.
    """
    return read_recording(path) if is_recording(path) else import_log(path)


def is_recording(path: Path) -> bool:
    """Return whether a file is of this program, rather than another program's log.

    Raises:
        RecordingError: If it cannot be read.
    """
    with open_regular(path) as stream:
        return stream.read(len(_GZIP)) == _GZIP


def import_log(path: Path) -> Recording:
    """Return another program's log as a recording: UTF-8 or UTF-16, with blank, list and `[N/A]` cells, many cards.

    Raises:
        RecordingError: If it is none that is known, too large, or cannot be read.
    """
    try:
        text = decoded(read_regular(path, "log", _MOST_BYTES))
    except UnreadableFileError as error:
        raise RecordingError(path, error.reason, error.hint) from error
    if not text.strip("\ufeff\0 \t\r\n"):
        raise RecordingError(path, "is empty", "If it is being written, look again once something is in it.")
    return recording_of_text(text, path)


def recording_of_text(text: str, path: Path) -> Recording:
    """Return the text of a log as a recording; `path` says where it is from, and its date when, where it has none.

    Raises:
        RecordingError: If it is none that is known.
    """
    day = _day(path)
    table = Table(text, day)
    lines = list(read_nvtop(text) if text.lstrip("\ufeff \t\r\n").startswith(("[", "{")) else table.lines())
    if not any(line.readings for line in lines):
        if table.tells_processes:
            raise RecordingError(path, _OF_PROCESSES, _ASK_FOR_CARDS)
        raise RecordingError(path, "is no log of cards that is known", _KNOWN)
    notes = [*table.notes, *([] if any(line.at for line in lines) else [ODD_TIMES if table.has_times else NO_TIMES])]
    if table.bad_lines:
        notes.append(f"{table.bad_lines:,} of its lines could not be read.")
    return recording_of_bytes(_written(lines, day, path), path, tuple(notes))


def _written(lines: list[Line], day: date, path: Path) -> bytes:
    stream = BytesIO()
    writer, moment = RecordingWriter(stream), Moment(0.0, 0.0)
    writer.put(Header(VERSION, _PROGRAM, 0.0), moment)
    try:
        for moment, update in updates_of(lines, day):
            writer.put(update, moment)
    except TooManyCardsError as error:
        raise RecordingError(path, str(error), _KNOWN) from error
    writer.put(End(moment.wall_seconds), moment)
    writer.end()
    return stream.getvalue()


def _day(path: Path) -> date:
    try:
        return date.fromtimestamp(path.stat().st_mtime)
    except (OSError, ValueError):
        return date(2000, 1, 1)
