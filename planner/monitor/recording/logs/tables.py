"""Logs with a line for each card, CSV of nvidia-smi, DCGM, amd-smi and scripts, dmon's columns, and nvtop's JSON."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final

from planner.monitor.recording.logs.cells import moment_of, readings_of, unit_of
from planner.monitor.recording.logs.header import Header, guessed_header, header_of
from planner.monitor.recording.logs.names import CARDS, NVTOP, PLACES, TITLES, UUIDS
from planner.monitor.recording.logs.ticks import Line
from planner.units import KIB

NO_TIMES: Final = "The log has no times: its lines were taken to be a second apart."
ODD_TIMES: Final = "The log's times cannot be read: its lines were taken to be a second apart."
NO_HEADER: Final = "The log has no header: its columns were told apart by their units and their order."
# The widest line of nvidia-smi, with all its 241 fields, has 4 kB.
_MOST_CHARACTERS: Final = 64 * KIB
_GUESSED_BY: Final = 200
# What parts the cells: a spreadsheet of many countries writes semicolons, and commas within numbers.
_SEPARATORS: Final = (";", "\t", ",")
_DECIMAL_COMMA: Final = re.compile(r"(\d),(\d)")


class Table:
    """The lines of such a log; what is said of it is complete once they were gone through.

    `day` dates times without a date. `has_times` says whether there is a column for them, `tells_processes` whether the
    log is of processes.
    """

    def __init__(self, text: str, day: date) -> None:
        self.notes: list[str] = []
        self.bad_lines = 0
        self.has_times = self.tells_processes = False
        self._rows, self._day = text.splitlines(), day
        self._separator = _separator_of(self._rows)
        self._header: Header | None = None
        self._at: datetime | None = None

    def lines(self) -> Iterator[Line]:
        """Yield what each line says."""
        rows = [row for row in map(self._cells, self._rows) if row]
        for place, row in enumerate(rows):
            if (header := header_of(row)) is not None:
                self._header = header
                self.has_times = self.has_times or bool(header.times())
                self.tells_processes = self.tells_processes or not header.fields
            elif not self._is_note(row):
                if self._header is None:
                    self._guess(rows[place : place + _GUESSED_BY])
                yield from self._line(row)

    def _guess(self, rows: Sequence[Sequence[str]]) -> None:
        self._header = guessed_header(rows, self._day)
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
        at = moment_of(text, self._day) if len(row) < 3 and unit_of(text) is None else None
        self._at = at or self._at
        return at is not None or row[0].lower() in ("id", "idx", "yyyymmdd", "hh:mm:ss") or row[0].startswith("# ")

    def _line(self, row: list[str]) -> Iterator[Line]:
        header = self._header
        if header is None or len(row) != len(header.names):
            self.bad_lines += 1
            return
        readings = readings_of(dict(zip(header.names, row, strict=True)), header.fields)
        if readings:
            yield Line(
                self._time(header, row),
                readings,
                _cell(header, row, CARDS) or "",
                _cell(header, row, TITLES),
                _cell(header, row, UUIDS),
                _cell(header, row, PLACES),
            )
        else:
            self.bad_lines += 1

    def _time(self, header: Header, row: list[str]) -> datetime | None:
        places = header.times()
        return moment_of(" ".join(row[place] for place in places), self._day) if places else self._at


def _separator_of(rows: Sequence[str]) -> str | None:
    """Return what parts the cells of most lines; none where columns are parted by spaces."""
    lines = [line for line in rows[:_GUESSED_BY] if line.strip()]
    counts = {separator: sum(separator in line for line in lines) for separator in _SEPARATORS}
    most = max(counts, key=lambda separator: counts[separator])
    return most if counts[most] else None


def _parts(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return cells if separator == "," else [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]


def _cell(header: Header, row: list[str], names: frozenset[str]) -> str | None:
    place = header.first(names)
    text = "" if place is None else row[place].strip()
    return None if not text or text.startswith("[") else text


# nvtop 3.3.0 leaves out some commas (Syllo/nvtop issue 438), so they are put in where they lack.
_NO_COMMA: Final = re.compile(r"([\"\dleE}\]])([ \t\r]*\n\s*\")")
_BETWEEN: Final = re.compile(r"[\s,]*")


def read_nvtop(text: str) -> Iterator[Line]:
    """Yield what each of nvtop's snapshots says of each card; what is half written at the end is left out."""
    for snapshot in _values(_NO_COMMA.sub(r"\1,\2", text)):
        cards = snapshot.get("gpus") if isinstance(snapshot, dict) else snapshot
        for number, card in enumerate(cards if isinstance(cards, list) else ()):
            if isinstance(card, dict):
                yield _line(number, card)


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


def _line(number: int, card: dict[str, Any]) -> Line:
    cells = {key: str(value) for key, value in card.items() if isinstance(value, str | int | float)}
    return Line(None, readings_of(cells, NVTOP), str(number), cells.get("device_name"), place=cells.get("pci"))
