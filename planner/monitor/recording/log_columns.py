"""Recognition of log columns by their names, and parsing of their cells.

A free-form name such as `GPU Memory Used (MiB)` or `power_W` is a set of words in any order with any separators; its
unit is the last word, or is given in brackets after the name.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from math import isfinite
from typing import Final, NamedTuple

from planner.monitor.readings.metrics import BY_NAME, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.recording.log_names import (
    AMD_SMI_FIELDS,
    FIELDS_BY_COLUMN,
    KNOWN_COLUMNS,
    PERCENT,
    PROCESS_LOG_COLUMNS,
    TIME_COLUMNS,
    UNITS,
    LogField,
)
from planner.units import MIB

_WORD: Final = re.compile(r"[a-z0-9]+|%")
# Synonyms of the words in the table of quantities below.
_SYNONYMS: Final = {
    "util": "utilization",
    "utilisation": "utilization",
    "usage": "used",
    "mem": "memory",
    "vram": "memory",
    "fb": "memory",
    "temp": "temperature",
    "clk": "clock",
    "clocks": "clock",
    "freq": "clock",
    "frequency": "clock",
    "max": "limit",
    "cap": "limit",
    "enc": "encoder",
    "dec": "decoder",
    "core": "gpu",
    "graphics": "sm",
}
_FILLER_WORDS: Final = frozenset({"gpu", "nvidia", "current", "draw", "speed"})
# Spellings of units, as the last word of a name or in brackets after it, with their keys in `UNITS`.
_UNIT_WORDS: Final = {
    "%": "%",
    "percent": "%",
    "pct": "%",
    "perc": "%",
    "w": "w",
    "watt": "w",
    "watts": "w",
    "mw": "mw",
    "c": "c",
    "celsius": "c",
    "degc": "c",
    "°c": "c",
    "mhz": "mhz",
    "mib": "mib",
    "mb": "mb",
    "gib": "gib",
    "gb": "gb",
    "b": "b",
    "bytes": "b",
    "j": "j",
    "joules": "j",
    "mj": "mj",
}
_SIZE_UNITS: Final = frozenset({"mib", "mb", "gib", "gb", "b"})
_QUANTITIES: Final = {
    frozenset({"utilization"}): LogField("utilization_fraction", PERCENT),
    frozenset({"utilization", "memory"}): LogField("memory_controller_fraction", PERCENT),
    frozenset({"utilization", "encoder"}): LogField("encoder_fraction", PERCENT),
    frozenset({"utilization", "decoder"}): LogField("decoder_fraction", PERCENT),
    frozenset({"memory", "used"}): LogField("memory_used_bytes", MIB),
    frozenset({"memory", "free"}): LogField("memory_free_bytes", MIB),
    frozenset({"memory", "total"}): LogField("memory_total_bytes", MIB),
    frozenset({"memory", "limit"}): LogField("memory_total_bytes", MIB),
    frozenset({"power"}): LogField("power_watts"),
    frozenset({"power", "used"}): LogField("power_watts"),
    frozenset({"power", "limit"}): LogField("power_limit_watts"),
    frozenset({"energy"}): LogField("energy_joules"),
    frozenset({"temperature"}): LogField("temperature_celsius"),
    frozenset({"temperature", "memory"}): LogField("memory_temperature_celsius"),
    frozenset({"clock"}): LogField("sm_clock_mhz"),
    frozenset({"clock", "sm"}): LogField("sm_clock_mhz"),
    frozenset({"clock", "memory"}): LogField("memory_clock_mhz"),
    frozenset({"fan"}): LogField("fan_fraction", PERCENT),
}


def parse_column(name: str, unit: str = "") -> LogField | None:
    """Return the quantity and unit of a column; None if the quantity is unknown, or the unit does not fit.

    `name` is in lower case; `unit` is the text in brackets after the name.
    """
    words, unit = _WORD.findall(name), _UNIT_WORDS.get(unit, unit)
    if not unit and len(words) > 1 and words[-1] in _UNIT_WORDS:
        unit = _UNIT_WORDS[words.pop()]
    known_words = frozenset(_SYNONYMS.get(word, word) for word in words) - _FILLER_WORDS
    field = _QUANTITIES.get(_words_implied_by_unit(known_words, unit))
    if field is None or not unit:
        return field
    return field._replace(per_one=UNITS[unit]) if unit in UNITS and _unit_fits(field, unit) else None


def _words_implied_by_unit(known_words: frozenset[str], unit: str) -> frozenset[str]:
    """Return the words completed with what the unit implies: `memory_mb` means memory used, `usage_%` utilization."""
    if known_words == {"memory"} and unit in _SIZE_UNITS:
        return frozenset({"memory", "used"})
    return frozenset({"utilization"}) if known_words == {"used"} and unit == "%" else known_words


def _unit_fits(field: LogField, unit: str) -> bool:
    """Return whether a unit fits a quantity: `memory_usage_percent` is not a size, `energy_kwh` not joules."""
    if field.metric.endswith("_fraction"):
        return unit == "%"
    return (unit in _SIZE_UNITS) == field.metric.endswith("_bytes") and unit != "%"


_NAME_AND_UNIT: Final = re.compile(r"(.*\S)\s*[\[(]([^\])]{1,12})[\])]")
_AMD_ONLY: Final = "gfx_activity"


class LogHeader(NamedTuple):
    """Column names of a log in lower case, and the metric and unit of each recognized quantity by column name."""

    names: tuple[str, ...]
    fields: dict[str, LogField]

    def first_index(self, names: frozenset[str]) -> int | None:
        """Return the index of the first column with a name in `names`, None if there is none."""
        return next((index for index, name in enumerate(self.names) if name in names), None)

    def time_indices(self) -> tuple[int, ...]:
        """Return the indices of the time column, or of the date and time columns; empty without times."""
        if {"date", "time"} <= set(self.names):
            return self.names.index("date"), self.names.index("time")
        index = self.first_index(TIME_COLUMNS)
        return () if index is None else (index,)


def parse_header(cells: Sequence[str]) -> LogHeader | None:
    """Return the header in a line, None if the line is not a header; a log of processes has no fields."""
    if any(cell.lstrip()[:1].isdigit() for cell in cells):
        return None
    columns = list(map(_split_unit, cells))
    names = tuple(name for name, _ in columns)
    if not PROCESS_LOG_COLUMNS.isdisjoint(names):
        return LogHeader(names, {})
    known = FIELDS_BY_COLUMN | AMD_SMI_FIELDS if _AMD_ONLY in names else FIELDS_BY_COLUMN
    fields_or_none = {
        name: _with_unit(known[name], unit) if name in known else parse_column(name, unit) for name, unit in columns
    }
    fields = {name: field for name, field in fields_or_none.items() if field is not None}
    is_header = len(fields.keys() | KNOWN_COLUMNS.intersection(names)) >= min(2, len(names))
    return LogHeader(names, fields) if fields and is_header else None


def _split_unit(cell: str) -> tuple[str, str]:
    """Split a header cell such as `power.draw [W]` into name and unit."""
    text = cell.strip().strip("\"'#").strip().lower()
    match = _NAME_AND_UNIT.fullmatch(text)
    return (text, "") if match is None else (match[1], match[2].strip())


def _with_unit(field: LogField, unit: str) -> LogField:
    return field._replace(per_one=UNITS[unit]) if unit in UNITS else field


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
