"""Parsing of single log cells: numbers with or without units, times, and reasons for missing values."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from math import isfinite
from typing import Final

from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.recording.logs.names import UNITS, LogField

_NUMBER: Final = re.compile(r"(-?\d{1,30}(?:\.\d{0,30})?(?:e[+-]?\d{1,3})?)\s*(%|[a-z][a-z/]{0,8})?", re.IGNORECASE)
_PERFORMANCE_STATE: Final = re.compile(r"p(\d{1,2})", re.IGNORECASE)
_BITS: Final = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
# Texts that nvidia-smi writes instead of a value, by their first letters.
_CAUSES_BY_TEXT: Final = {
    "n/a": Cause.NOT_SUPPORTED,
    "not supported": Cause.NOT_SUPPORTED,
    "requested functionality": Cause.NOT_SUPPORTED,
    "-": Cause.NOT_SUPPORTED,
    "insufficient permissions": Cause.NO_PERMISSION,
    "function not found": Cause.MISSING_SYMBOL,
    "gpu is lost": Cause.LOST,
    "gpu requires reset": Cause.LOST,
    "unknown error": Cause.FAILED,
}
_TIME_FORMATS: Final = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y%m%d %H:%M:%S")
_TIME_OF_DAY: Final = re.compile(r"\d{1,2}:\d\d:\d\d(?:\.\d{1,6})?")
# A larger number is a time since 1970 (2001 or later); a smaller number counts seconds from the start of the log.
_MIN_EPOCH_SECONDS: Final = 1e9
# A number from here on is in milliseconds.
_MIN_EPOCH_MILLISECONDS: Final = 1e12
# Not every operating system supports times outside these years.
_FIRST_YEAR: Final = 1971
_LAST_YEAR: Final = 3000


def parse_reading(cell: str, field: LogField) -> Reading | None:
    """Return the reading in a cell; None if the cell is blank or not a number."""
    text = cell.strip().strip("[]").strip()
    if not text:
        return None
    cause = next((cause for start, cause in _CAUSES_BY_TEXT.items() if _starts_with_marker(start, text.lower())), None)
    if cause is not None:
        return missing(cause)
    value = _parse_value(text, field)
    return None if value is None else checked_reading(BY_NAME[field.metric], value)


def parse_unit(cell: str) -> str | None:
    """Return the unit of the number in a cell, "" for a bare number, None if the cell is not a number."""
    match = _NUMBER.fullmatch(cell.strip())
    return None if match is None else (match[2] or "").lower()


def parse_time(cell: str, day: date) -> datetime | None:
    """Return the local time in a cell, on `day` if the cell has no date; None if the cell is not a time."""
    text = cell.strip()
    if _TIME_OF_DAY.fullmatch(text):
        text = f"{day:%Y/%m/%d} {text}"
    for time_format in _TIME_FORMATS:
        try:
            return datetime.strptime(text, time_format)
        except ValueError:
            continue
    try:
        at = _time_from_number(float(text), day) if parse_unit(text) == "" else _time_from_iso(text)
    except (ValueError, OverflowError, OSError):
        return None
    return at if _FIRST_YEAR <= at.year <= _LAST_YEAR else None


def parse_readings(cells: Mapping[str, str], fields: Mapping[str, LogField]) -> dict[str, Reading]:
    """Return readings by metric from cells by column name; of duplicates, the first reading with a value."""
    readings: dict[str, Reading] = {}
    for name, cell in cells.items():
        field = fields.get(name)
        if field is None:
            continue
        reading = parse_reading(cell, field)
        known = readings.get(field.metric)
        if reading is not None and (known is None or known.value is None):
            readings[field.metric] = reading
    return readings


def _starts_with_marker(start: str, text: str) -> bool:
    return text == start if start == "-" else text.startswith(start)


def _parse_value(text: str, field: LogField) -> float | None:
    if _BITS.fullmatch(text):
        return int(text, 16)
    if state := _PERFORMANCE_STATE.fullmatch(text):
        return float(state[1])
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    unit = match[2]
    per_one = field.per_one if unit is None else UNITS.get(unit.lower())
    value = None if per_one is None else float(match[1]) * per_one
    return value if value is not None and isfinite(value) else None


def _time_from_number(number: float, day: date) -> datetime:
    if number < _MIN_EPOCH_SECONDS:
        return datetime(day.year, day.month, day.day) + timedelta(seconds=number)
    return datetime.fromtimestamp(number / 1e3 if number >= _MIN_EPOCH_MILLISECONDS else number)


def _time_from_iso(text: str) -> datetime:
    # Python does not parse nanoseconds, which `date --iso-8601=ns` writes.
    at = datetime.fromisoformat(re.sub(r"([.,]\d{6})\d+", r"\1", text).replace(",", "."))
    return at.replace(tzinfo=None) if at.tzinfo is None else at.astimezone().replace(tzinfo=None)
