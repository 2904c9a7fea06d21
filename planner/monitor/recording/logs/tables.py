"""Logs with a line for each card: CSV of nvidia-smi, DCGM, amd-smi and scripts, and the columns of dmon."""

import csv
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Final

from planner.monitor.recording.logs.cells import moment_of, readings_of, unit_of
from planner.monitor.recording.logs.header import Header, guessed_header, header_of
from planner.monitor.recording.logs.names import CARDS, PLACES, TITLES, UUIDS
from planner.monitor.recording.logs.ticks import Line
from planner.units import KIB

NO_HEADER: Final = "The log has no header: its columns were told apart by their units and their order."
# The widest line of nvidia-smi, with all its 241 fields, has 4 kB.
_MOST_CHARACTERS: Final = 64 * KIB
_GUESSED_BY: Final = 200
_ENTITY: Final = "entity"


class Table:
    """The lines of such a log; `notes` and `bad_lines` are complete once they were gone through.

    `day` dates times without a date.
    """

    def __init__(self, text: str, day: date) -> None:
        self.notes: list[str] = []
        self.bad_lines = 0
        self._text, self._day = text, day
        self._header: Header | None = None
        self._at: datetime | None = None

    def lines(self) -> Iterator[Line]:
        """Yield what each line says."""
        rows = [row for row in map(self._cells, self._text.splitlines()) if row]
        for place, row in enumerate(rows):
            if (header := header_of(row)) is not None:
                self._header = header
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
        if "," in text:
            return next(csv.reader([text], skipinitialspace=True), [])
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


def _cell(header: Header, row: list[str], names: frozenset[str]) -> str | None:
    place = header.first(names)
    text = "" if place is None else row[place].strip()
    return None if not text or text.startswith("[") else text
