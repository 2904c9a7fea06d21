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
_STATE: Final = re.compile(r"p(\d{1,2})", re.IGNORECASE)
_BITS: Final = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
# What nvidia-smi writes in place of a value, by its first letters.
_CAUSES: Final = {
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
_FORMS: Final = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y%m%d %H:%M:%S")
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d:\d\d(?:\.\d{1,6})?")
# Seconds since 1970 that stand for 2001 and later; a smaller number counts from the start of the log.
_FIRST_SECONDS: Final = 1e9
# A thousand times as many are milliseconds.
_FIRST_MILLISECONDS: Final = 1e12
# Outside of these not every system can tell a time.
_FIRST_YEAR: Final = 1971
_LAST_YEAR: Final = 3000


def parse_reading(cell: str, field: LogField) -> Reading | None:
    """Return the reading in a cell; None if it is blank or not a number."""
    text = cell.strip().strip("[]").strip()
    if not text:
        return None
    cause = next((cause for start, cause in _CAUSES.items() if _is_start(start, text.lower())), None)
    if cause is not None:
        return missing(cause)
    value = _value(text, field)
    return None if value is None else checked_reading(BY_NAME[field.metric], value)


def parse_unit(cell: str) -> str | None:
    """Return the unit after a cell's number, "" for a bare number, None if the cell is not a number."""
    match = _NUMBER.fullmatch(cell.strip())
    return None if match is None else (match[2] or "").lower()


def parse_time(cell: str, day: date) -> datetime | None:
    """Return the local time in a cell; `day` dates a time without a date."""
    text = cell.strip()
    if _CLOCK.fullmatch(text):
        text = f"{day:%Y/%m/%d} {text}"
    for form in _FORMS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    try:
        at = _of_number(float(text), day) if parse_unit(text) == "" else _of_iso(text)
    except (ValueError, OverflowError, OSError):
        return None
    return at if _FIRST_YEAR <= at.year <= _LAST_YEAR else None


def parse_readings(cells: Mapping[str, str], fields: Mapping[str, LogField]) -> dict[str, Reading]:
    """Return the readings of cells by column name; of duplicates, the first with a value."""
    found: dict[str, Reading] = {}
    for name, cell in cells.items():
        field = fields.get(name)
        if field is None:
            continue
        reading = parse_reading(cell, field)
        known = found.get(field.metric)
        if reading is not None and (known is None or known.value is None):
            found[field.metric] = reading
    return found


def _is_start(start: str, text: str) -> bool:
    return text == start if start == "-" else text.startswith(start)


def _value(text: str, field: LogField) -> float | None:
    if _BITS.fullmatch(text):
        return int(text, 16)
    if state := _STATE.fullmatch(text):
        return float(state[1])
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    unit = match[2]
    per_one = field.per_one if unit is None else UNITS.get(unit.lower())
    value = None if per_one is None else float(match[1]) * per_one
    return value if value is not None and isfinite(value) else None


def _of_number(number: float, day: date) -> datetime:
    if number < _FIRST_SECONDS:
        return datetime(day.year, day.month, day.day) + timedelta(seconds=number)
    return datetime.fromtimestamp(number / 1e3 if number >= _FIRST_MILLISECONDS else number)


def _of_iso(text: str) -> datetime:
    # Nanoseconds, as date --iso-8601=ns writes them, are more than Python takes.
    at = datetime.fromisoformat(re.sub(r"([.,]\d{6})\d+", r"\1", text).replace(",", "."))
    return at.replace(tzinfo=None) if at.tzinfo is None else at.astimezone().replace(tzinfo=None)
