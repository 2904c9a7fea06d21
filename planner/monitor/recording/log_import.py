"""Import of logs as recordings: CSV of nvidia-smi, DCGM, amd-smi and scripts, dmon's columns, nvtop's JSON."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from planner.errors import RecordingError
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import FACTS
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.files import RecordingWriter
from planner.monitor.recording.log_columns import LogHeader, parse_header, parse_readings, parse_time, parse_unit
from planner.monitor.recording.log_names import (
    BUS_ID_COLUMNS,
    CARD_INDEX_COLUMNS,
    CARD_NAME_COLUMNS,
    NVTOP_FIELDS,
    UUID_COLUMNS,
)
from planner.monitor.recording.recording import MonitorRecording, open_regular, read_recording, recording_from_bytes
from planner.monitor.recording.records import FORMAT_VERSION, MAX_CARDS_PER_MACHINE, RecordingEnd, RecordingHeader
from planner.parsing import json_values
from planner.storage import UnreadableFileError, decode_text, read_regular
from planner.units import KIB, MIB

DEFAULT_INTERVAL_SECONDS: Final = 1.0
"""Interval of lines without a time: the default of nvidia-smi dmon, dcgmi dmon and nvtop."""
# The log had a driver; an empty text would mean that there was no driver.
_UNKNOWN_DRIVER: Final = "not reported"
_FACTS: Final = frozenset(metric.name for metric in FACTS)


class CardLogLine(NamedTuple):
    """Readings of one GPU in one log line; `card` is the GPU's label in the log, empty without one."""

    at: datetime | None
    readings: Mapping[str, Reading]
    card: str = ""
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None


class TooManyCardsError(ValueError):
    """The log names more GPUs than a machine can have."""


def updates_from_lines(lines: Iterable[CardLogLine], day: date) -> Iterator[tuple[Timestamp, Inventory | Sample]]:
    """Yield the inventories and samples of a log; `day` is the date of a log without times.

    Raises:
        TooManyCardsError: If there are more than `MOST_CARDS`.
    """
    clock, cards = _LogClock(day), _LogCards()
    for lines_by_card in _lines_by_time(lines):
        moment = clock.timestamp(next(iter(lines_by_card.values())).at)
        known = cards.devices
        readings = {
            cards.uuid(key, line): {name: reading for name, reading in line.readings.items() if name not in _FACTS}
            for key, line in lines_by_card.items()
        }
        if cards.devices != known:
            yield moment, Inventory(_UNKNOWN_DRIVER, devices=cards.devices)
        yield moment, Sample(*moment, readings)


def _lines_by_time(lines: Iterable[CardLogLine]) -> Iterator[dict[str, CardLogLine]]:
    """Group the lines between two mentions of the same GPU: one line per GPU at one time."""
    lines_by_card: dict[str, CardLogLine] = {}
    for line in lines:
        key = line.uuid or line.bus_id or line.card or _unnamed_card_key(line, lines_by_card)
        if key in lines_by_card:
            yield lines_by_card
            lines_by_card = {}
            key = line.uuid or line.bus_id or line.card or "0"
        lines_by_card[key] = line
    if lines_by_card:
        yield lines_by_card


def _unnamed_card_key(line: CardLogLine, lines_by_card: dict[str, CardLogLine]) -> str:
    """Return a key for a GPU that the log does not name: lines with the same time are of different GPUs."""
    first = next(iter(lines_by_card.values()), None)
    is_same_time = first is not None and line.at is not None and line.at == first.at
    return str(len(lines_by_card)) if is_same_time else "0"


class _LogCards:
    """GPUs that were named in the log lines read so far."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def uuid(self, key: str, line: CardLogLine) -> str:
        """Return the UUID of a line's GPU, or a substitute, and record the GPU's fixed properties."""
        known = self._devices.get(key) or self._add_card(key, line)
        facts = {name: reading for name, reading in line.readings.items() if name in _FACTS}
        if any(known.facts.get(name) != reading for name, reading in facts.items()):
            known = self._devices[key] = replace(known, facts={**known.facts, **facts})
        return known.uuid

    def _add_card(self, key: str, line: CardLogLine) -> Device:
        count = len(self._devices)
        if count == MAX_CARDS_PER_MACHINE:
            raise TooManyCardsError(f"it names more than {MAX_CARDS_PER_MACHINE:,} GPUs")
        index = int(line.card) if line.card.isascii() and line.card.isdigit() and len(line.card) < 5 else count
        device = Device(line.uuid or f"log-{key}", line.name or f"GPU {line.card or index}", index, line.bus_id or "")
        self._devices[key] = device
        return device


class _LogClock:
    """Assigns strictly increasing times, even if the log's times go backwards."""

    def __init__(self, day: date) -> None:
        self._midnight = datetime(day.year, day.month, day.day)
        self._first: datetime | None = None
        self._shift = 0.0
        self._last: float | None = None
        self._step = DEFAULT_INTERVAL_SECONDS

    def timestamp(self, at: datetime | None) -> Timestamp:
        """Return the timestamp for a time in the log, later than all before; None is a default interval later."""
        if at is None:
            seconds = 0.0 if self._last is None else self._last + DEFAULT_INTERVAL_SECONDS
            self._last = seconds
            return Timestamp(seconds, self._midnight.timestamp() + seconds)
        self._first = self._first or at
        seconds = (at - self._first).total_seconds() + self._shift
        if self._last is not None:
            if seconds <= self._last:
                self._shift += self._last + self._step - seconds
                seconds = self._last + self._step
            self._step = seconds - self._last
        self._last = seconds
        return Timestamp(seconds, at.timestamp())


_MAX_BYTES: Final = 64 * MIB
_PROGRAM: Final = "another program's log"
_GZIP: Final = b"\x1f\x8b"
_SUPPORTED_LOGS_HINT: Final = (
    "Supported are recordings of GPU Planner, the CSV of nvidia-smi --query-gpu, nvidia-smi dmon, dcgmi dmon, the JSON "
    "of nvtop -s, and CSV with the same column names."
)
_PROCESS_LOG_REASON: Final = "a log of processes, not of GPUs"
_LOG_GPUS_HINT: Final = (
    "Log the GPUs: nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,power.draw "
    "--format=csv -l 1 > log.csv"
)


def open_recording(path: Path, columns: str | None = None) -> MonitorRecording:
    """Open a recording of this program, or import another program's log; for `columns` see `import_log`.

    Raises:
        RecordingError: If the file is neither a recording nor a supported log.
    """
    return read_recording(path) if is_recording(path) else import_log(path, columns)


def is_recording(path: Path) -> bool:
    """Return whether a file is a recording of this program rather than another program's log.

    Raises:
        RecordingError: If the file cannot be read.
    """
    with open_regular(path) as stream:
        return stream.read(len(_GZIP)) == _GZIP


def import_log(path: Path, columns: str | None = None) -> MonitorRecording:
    """Import a log: UTF-8 or UTF-16, with blank, list and `[N/A]` cells, and any number of GPUs.

    `columns` names the columns of a log without a header line, separated by commas, as in `nvidia-smi --query-gpu`.

    Raises:
        RecordingError: If the format is unknown, the columns are not named, or the file is too large or cannot be read.
    """
    try:
        text = decode_text(read_regular(path, "log", _MAX_BYTES))
    except UnreadableFileError as error:
        raise RecordingError(path, error.reason, error.hint) from error
    if not text.strip("\ufeff\0 \t\r\n"):
        raise RecordingError(path, "the file is empty", "If it is still being written, try again later.")
    return recording_from_text(text, path, columns)


def recording_from_text(text: str, path: Path, columns: str | None = None) -> MonitorRecording:
    """Import the text of a log; the modification time of its file `path` dates a log without dates.

    Raises:
        RecordingError: If the format is unknown, or the columns are not named.
    """
    day = _modification_day(path)
    table = _LogTable(text, day, _named_header(columns, path))
    lines = list(_read_nvtop(text) if text.lstrip("\ufeff \t\r\n").startswith(("[", "{")) else table.lines())
    if not any(line.readings for line in lines):
        if table.lists_processes:
            raise RecordingError(path, _PROCESS_LOG_REASON, _LOG_GPUS_HINT)
        if table.unnamed_row:
            columns = f"Its first line has {len(table.unnamed_row)} columns: {', '.join(table.unnamed_row)}"
            command = f"gpu-planner monitor --import {path.name} --columns timestamp,utilization.gpu,…"
            hint = f"{columns}. Name them in this order, as in nvidia-smi --query-gpu: {command}"
            raise RecordingError(path, _NO_HEADER_REASON, f"{hint} --record {path.stem}.gpurec")
        raise RecordingError(path, "not a supported GPU log", _SUPPORTED_LOGS_HINT)
    notes = [] if any(line.at for line in lines) else [ODD_TIMES if table.has_times else NO_TIMES]
    if table.bad_lines:
        notes.append(f"{table.bad_lines:,} of its lines could not be read.")
    return recording_from_bytes(_recording_content(lines, day, path), path, tuple(notes))


def _recording_content(lines: list[CardLogLine], day: date, path: Path) -> bytes:
    stream = BytesIO()
    writer, moment = RecordingWriter(stream), Timestamp(0.0, 0.0)
    writer.put(RecordingHeader(FORMAT_VERSION, _PROGRAM, 0.0), moment)
    try:
        for moment, update in updates_from_lines(lines, day):
            writer.put(update, moment)
    except TooManyCardsError as error:
        raise RecordingError(path, str(error), _SUPPORTED_LOGS_HINT) from error
    writer.put(RecordingEnd(moment.wall_seconds), moment)
    writer.end()
    return stream.getvalue()


def _modification_day(path: Path) -> date:
    try:
        return date.fromtimestamp(path.stat().st_mtime)
    except (OSError, ValueError):
        return date(2000, 1, 1)


NO_TIMES: Final = "The log has no times: an interval of one second is assumed."
ODD_TIMES: Final = "The log's times cannot be read: an interval of one second is assumed."
_NO_HEADER_REASON: Final = "has no header line, so which quantity each column holds is not known"
# The longest line of nvidia-smi, with all its 241 fields, has 4 kB.
_MAX_LINE_CHARACTERS: Final = 64 * KIB
_MAX_SEPARATOR_ROWS: Final = 200
# Separators of cells: in many countries, spreadsheets write semicolons, and commas within numbers.
_SEPARATORS: Final = (";", "\t", ",")
_DECIMAL_COMMA: Final = re.compile(r"(\d),(\d)")


def _named_header(columns: str | None, path: Path) -> LogHeader | None:
    """Return the header that a user named, None without one."""
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    header = parse_header(names)
    if header is None or not header.fields:
        reason = f"cannot be read with the columns {columns!r}, none of which is known"
        raise RecordingError(path, reason, _SUPPORTED_LOGS_HINT)
    return header


class _LogTable:
    """A tabular log; its attributes are complete once `lines` is exhausted.

    `day` is the date of times without a date; `header` holds until a line of the log is a header. `has_times` is True
    if there is a time column, `lists_processes` if the log lists processes; `unnamed_row` is the first row if it
    holds values instead of names, else empty.
    """

    def __init__(self, text: str, day: date, header: LogHeader | None) -> None:
        self.bad_lines = 0
        self.has_times = header is not None and bool(header.time_indices())
        self.lists_processes = False
        self.unnamed_row: Sequence[str] = ()
        self._rows, self._day = text.splitlines(), day
        self._separator = _cell_separator(self._rows)
        self._header = header
        self._at: datetime | None = None

    def lines(self) -> Iterator[CardLogLine]:
        """Yield the GPU readings in each line."""
        for row in filter(None, map(self._split_line, self._rows)):
            if (header := parse_header(row)) is not None:
                self._header = header
                self.has_times = self.has_times or bool(header.time_indices())
                self.lists_processes = self.lists_processes or not header.fields
            elif not self._is_unit_or_time_row(row):
                yield from self._row_readings(row)

    def _split_line(self, line: str) -> list[str]:
        text = line.strip().lstrip("\ufeff\0")
        if not text or len(text) > _MAX_LINE_CHARACTERS:
            return []
        if self._separator is not None and self._separator in text:
            return _split_cells(text, self._separator)
        # DCGM writes "GPU 0" into its first column, for which its header has one word.
        cells = text.removeprefix("#").split()
        is_entity = len(cells) > 1 and cells[0].replace("-", "").isalpha() and cells[1].isdigit()
        return [cells[1] if cells[0] == "GPU" else " ".join(cells[:2]), *cells[2:]] if is_entity else cells

    def _is_unit_or_time_row(self, row: list[str]) -> bool:
        """Return whether a row holds units or a time for the rows below instead of readings."""
        text = " ".join(row)
        at = parse_time(text, self._day) if len(row) < 3 and parse_unit(text) is None else None
        self._at = at or self._at
        return at is not None or row[0].lower() in ("id", "idx", "yyyymmdd", "hh:mm:ss") or row[0].startswith("# ")

    def _row_readings(self, row: list[str]) -> Iterator[CardLogLine]:
        """Yield the GPU readings in a row; a row that does not fit the header counts as unreadable."""
        header = self._header
        if header is None and not self.bad_lines and any(parse_unit(cell) is not None for cell in row):
            self.unnamed_row = row
        if header is None or len(row) != len(header.names):
            self.bad_lines += 1
            return
        readings = parse_readings(dict(zip(header.names, row, strict=True)), header.fields)
        if readings:
            yield CardLogLine(
                self._row_time(header, row),
                readings,
                _cell_text(header, row, CARD_INDEX_COLUMNS) or "",
                _cell_text(header, row, CARD_NAME_COLUMNS),
                _cell_text(header, row, UUID_COLUMNS),
                _cell_text(header, row, BUS_ID_COLUMNS),
            )
        else:
            self.bad_lines += 1

    def _row_time(self, header: LogHeader, row: list[str]) -> datetime | None:
        indices = header.time_indices()
        return parse_time(" ".join(row[index] for index in indices), self._day) if indices else self._at


def _cell_separator(rows: Sequence[str]) -> str | None:
    """Return the separator in most lines, None if columns are separated by spaces."""
    lines = [line for line in rows[:_MAX_SEPARATOR_ROWS] if line.strip()]
    counts = {separator: sum(separator in line for line in lines) for separator in _SEPARATORS}
    most_frequent = max(counts, key=lambda separator: counts[separator])
    return most_frequent if counts[most_frequent] else None


def _split_cells(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return cells if separator == "," else [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]


def _cell_text(header: LogHeader, row: list[str], names: frozenset[str]) -> str | None:
    """Return the text in a row's first column with a name in `names`; None if blank or a marker such as `[N/A]`."""
    index = header.first_index(names)
    text = "" if index is None else row[index].strip()
    return None if not text or text.startswith("[") else text


# nvtop 3.3.0 leaves out some commas (Syllo/nvtop issue 438), so missing commas are inserted.
_MISSING_COMMA: Final = re.compile(r"([\"\dleE}\]])([ \t\r]*\n\s*\")")


def _read_nvtop(text: str) -> Iterator[CardLogLine]:
    """Yield the readings of each GPU in each nvtop snapshot; an incomplete last snapshot is left out."""
    for snapshot in json_values(_MISSING_COMMA.sub(r"\1,\2", text)):
        cards = snapshot.get("gpus") if isinstance(snapshot, dict) else snapshot
        for number, card in enumerate(cards if isinstance(cards, list) else ()):
            if isinstance(card, dict):
                yield _nvtop_line(number, card)


def _nvtop_line(number: int, card: dict[str, Any]) -> CardLogLine:
    cells = {key: str(value) for key, value in card.items() if isinstance(value, str | int | float)}
    return CardLogLine(
        None, parse_readings(cells, NVTOP_FIELDS), str(number), cells.get("device_name"), bus_id=cells.get("pci")
    )
