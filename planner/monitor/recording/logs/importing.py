"""Import of logs as recordings: CSV of nvidia-smi, DCGM, amd-smi and scripts, dmon's columns, nvtop's JSON."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.recording.logs.cells import parse_readings, parse_time, parse_unit
from planner.monitor.recording.logs.header import LogHeader, guess_header, parse_header
from planner.monitor.recording.logs.log_updates import LogLine, TooManyCardsError, updates_from_lines
from planner.monitor.recording.logs.names import BUS_IDS, CARD_NAMES, CARDS, NVTOP, UUIDS
from planner.monitor.recording.recording import MonitorRecording, open_regular, read_recording, recording_of_bytes
from planner.monitor.recording.records import VERSION, RecordingEnd, RecordingHeader
from planner.monitor.recording.writer import RecordingWriter
from planner.storage import UnreadableFileError, decode_text, read_regular
from planner.units import KIB, MIB

_MOST_BYTES: Final = 64 * MIB
_PROGRAM: Final = "another program's log"
_GZIP: Final = b"\x1f\x8b"
_KNOWN: Final = (
    "Supported are the CSV of nvidia-smi --query-gpu, nvidia-smi dmon, dcgmi dmon, the JSON of nvtop -s, "
    "and CSV with the same column names."
)
_OF_PROCESSES: Final = "is a log of processes, not of GPUs"
_ASK_FOR_CARDS: Final = (
    "Log the GPUs: nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,power.draw "
    "--format=csv -l 1 > log.csv"
)


def open_recording(path: Path) -> MonitorRecording:
    """Open a recording of this program, or import another program's log.

    Raises:
        RecordingError: If it is neither.
    """
    return read_recording(path) if is_recording(path) else import_log(path)


def is_recording(path: Path) -> bool:
    """Return whether a file is a recording of this program rather than another program's log.

    Raises:
        RecordingError: If it cannot be read.
    """
    with open_regular(path) as stream:
        return stream.read(len(_GZIP)) == _GZIP


def import_log(path: Path) -> MonitorRecording:
    """Import a log: UTF-8 or UTF-16, with blank, list and `[N/A]` cells, and any number of cards.

    Raises:
        RecordingError: If its format is unknown, it is too large, or it cannot be read.
    """
    try:
        text = decode_text(read_regular(path, "log", _MOST_BYTES))
    except UnreadableFileError as error:
        raise RecordingError(path, error.reason, error.hint) from error
    if not text.strip("\ufeff\0 \t\r\n"):
        raise RecordingError(path, "is empty", "If it is still being written, try again later.")
    return recording_of_text(text, path)


def recording_of_text(text: str, path: Path) -> MonitorRecording:
    """Import the text of a log; `path` is its origin, and its modification time dates a log without dates.

    Raises:
        RecordingError: If its format is unknown.
    """
    day = _day(path)
    table = _Table(text, day)
    lines = list(_read_nvtop(text) if text.lstrip("\ufeff \t\r\n").startswith(("[", "{")) else table.lines())
    if not any(line.readings for line in lines):
        if table.tells_processes:
            raise RecordingError(path, _OF_PROCESSES, _ASK_FOR_CARDS)
        raise RecordingError(path, "is not a supported GPU log", _KNOWN)
    notes = [*table.notes, *([] if any(line.at for line in lines) else [ODD_TIMES if table.has_times else NO_TIMES])]
    if table.bad_lines:
        notes.append(f"{table.bad_lines:,} of its lines could not be read.")
    return recording_of_bytes(_written(lines, day, path), path, tuple(notes))


def _written(lines: list[LogLine], day: date, path: Path) -> bytes:
    stream = BytesIO()
    writer, moment = RecordingWriter(stream), Timestamp(0.0, 0.0)
    writer.put(RecordingHeader(VERSION, _PROGRAM, 0.0), moment)
    try:
        for moment, update in updates_from_lines(lines, day):
            writer.put(update, moment)
    except TooManyCardsError as error:
        raise RecordingError(path, str(error), _KNOWN) from error
    writer.put(RecordingEnd(moment.wall_seconds), moment)
    writer.end()
    return stream.getvalue()


def _day(path: Path) -> date:
    try:
        return date.fromtimestamp(path.stat().st_mtime)
    except (OSError, ValueError):
        return date(2000, 1, 1)


NO_TIMES: Final = "The log has no times: an interval of one second is assumed."
ODD_TIMES: Final = "The log's times cannot be read: an interval of one second is assumed."
NO_HEADER: Final = "The log has no header: its columns were identified by their units and order."
# The widest line of nvidia-smi, with all its 241 fields, has 4 kB.
_MOST_CHARACTERS: Final = 64 * KIB
_GUESSED_BY: Final = 200
# What parts the cells: a spreadsheet of many countries writes semicolons, and commas within numbers.
_SEPARATORS: Final = (";", "\t", ",")
_DECIMAL_COMMA: Final = re.compile(r"(\d),(\d)")


class _Table:
    """Lines of a tabular log; its attributes are complete once `lines` is exhausted.

    `day` dates times without a date. `has_times` says whether there is a time column, `tells_processes` whether the log
    lists processes.
    """

    def __init__(self, text: str, day: date) -> None:
        self.notes: list[str] = []
        self.bad_lines = 0
        self.has_times = self.tells_processes = False
        self._rows, self._day = text.splitlines(), day
        self._separator = _separator_of(self._rows)
        self._header: LogHeader | None = None
        self._at: datetime | None = None

    def lines(self) -> Iterator[LogLine]:
        """Yield the readings of each line."""
        rows = [row for row in map(self._cells, self._rows) if row]
        for place, row in enumerate(rows):
            if (header := parse_header(row)) is not None:
                self._header = header
                self.has_times = self.has_times or bool(header.times())
                self.tells_processes = self.tells_processes or not header.fields
            elif not self._is_note(row):
                if self._header is None:
                    self._guess(rows[place : place + _GUESSED_BY])
                yield from self._line(row)

    def _guess(self, rows: Sequence[Sequence[str]]) -> None:
        self._header = guess_header(rows, self._day)
        if self._header is not None:
            self.notes.append(NO_HEADER)

    def _cells(self, line: str) -> list[str]:
        """Return the cells of a line, none where it is blank or too long to be one."""
        text = line.strip().lstrip("\ufeff\0")
        if not text or len(text) > _MOST_CHARACTERS:
            return []
        if self._separator is not None and self._separator in text:
            return _parts(text, self._separator)
        # DCGM says "GPU 0" in its first column; its header has one word there.
        cells = text.removeprefix("#").split()
        is_entity = len(cells) > 1 and cells[0].replace("-", "").isalpha() and cells[1].isdigit()
        return [cells[1] if cells[0] == "GPU" else " ".join(cells[:2]), *cells[2:]] if is_entity else cells

    def _is_note(self, row: list[str]) -> bool:
        """Return whether a row is none of readings: the units under a header, or a time for the rows below it."""
        text = " ".join(row)
        at = parse_time(text, self._day) if len(row) < 3 and parse_unit(text) is None else None
        self._at = at or self._at
        return at is not None or row[0].lower() in ("id", "idx", "yyyymmdd", "hh:mm:ss") or row[0].startswith("# ")

    def _line(self, row: list[str]) -> Iterator[LogLine]:
        header = self._header
        if header is None or len(row) != len(header.names):
            self.bad_lines += 1
            return
        readings = parse_readings(dict(zip(header.names, row, strict=True)), header.fields)
        if readings:
            yield LogLine(
                self._time(header, row),
                readings,
                _cell(header, row, CARDS) or "",
                _cell(header, row, CARD_NAMES),
                _cell(header, row, UUIDS),
                _cell(header, row, BUS_IDS),
            )
        else:
            self.bad_lines += 1

    def _time(self, header: LogHeader, row: list[str]) -> datetime | None:
        places = header.times()
        return parse_time(" ".join(row[place] for place in places), self._day) if places else self._at


def _separator_of(rows: Sequence[str]) -> str | None:
    """Return what parts the cells of most lines; none where columns are parted by spaces."""
    lines = [line for line in rows[:_GUESSED_BY] if line.strip()]
    counts = {separator: sum(separator in line for line in lines) for separator in _SEPARATORS}
    most = max(counts, key=lambda separator: counts[separator])
    return most if counts[most] else None


def _parts(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return cells if separator == "," else [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]


def _cell(header: LogHeader, row: list[str], names: frozenset[str]) -> str | None:
    place = header.first(names)
    text = "" if place is None else row[place].strip()
    return None if not text or text.startswith("[") else text


# nvtop 3.3.0 leaves out some commas (Syllo/nvtop issue 438), so they are put in where they lack.
_NO_COMMA: Final = re.compile(r"([\"\dleE}\]])([ \t\r]*\n\s*\")")
_BETWEEN: Final = re.compile(r"[\s,]*")


def _read_nvtop(text: str) -> Iterator[LogLine]:
    """Yield the readings of each card in each of nvtop's snapshots; an incomplete one at the end is left out."""
    for snapshot in _values(_NO_COMMA.sub(r"\1,\2", text)):
        cards = snapshot.get("gpus") if isinstance(snapshot, dict) else snapshot
        for number, card in enumerate(cards if isinstance(cards, list) else ()):
            if isinstance(card, dict):
                yield _nvtop_line(number, card)


def _values(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while (place := _after(text, place)) < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield value


def _after(text: str, place: int) -> int:
    """Return where the next value begins."""
    match = _BETWEEN.match(text, place)
    return place if match is None else match.end()


def _nvtop_line(number: int, card: dict[str, Any]) -> LogLine:
    cells = {key: str(value) for key, value in card.items() if isinstance(value, str | int | float)}
    return LogLine(None, parse_readings(cells, NVTOP), str(number), cells.get("device_name"), place=cells.get("pci"))
