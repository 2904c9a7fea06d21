"""Recognition of log columns by their names.

A free-form name such as `GPU Memory Used (MiB)` or `power_W` is a set of words in any order with any separators; its
unit is the last word, or is given in brackets after the name.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from planner.monitor.recording.logs.names import (
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
