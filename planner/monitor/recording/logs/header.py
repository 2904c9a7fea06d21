"""Recognition of log columns by their names, or by the units of their cells if there is no header.

A free-form name such as `GPU Memory Used (MiB)` or `power_W` is a set of words in any order with any separators; its
unit is the last word, or stands in brackets after the name.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final, NamedTuple

from planner.monitor.recording.logs.cells import parse_time, parse_unit
from planner.monitor.recording.logs.names import AMD_SMI, FIELDS, KNOWN, PERCENT, PROCESSES, TIMES, UNITS, LogField
from planner.units import MIB

_WORD: Final = re.compile(r"[a-z0-9]+|%")
# Each word as the table below spells it; what says nothing is left out.
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
# As a name's last word or in brackets behind it, each as `UNITS` has it.
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
_SIZES: Final = frozenset({"mib", "mb", "gib", "gb", "b"})
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
    """Return the quantity in a column, with its unit; None if unknown, or if the unit does not fit it.

    `name` is in lower case; `unit` is the text in brackets after it.
    """
    words, unit = _WORD.findall(name), _UNIT_WORDS.get(unit, unit)
    if not unit and len(words) > 1 and words[-1] in _UNIT_WORDS:
        unit = _UNIT_WORDS[words.pop()]
    words_known = frozenset(_SYNONYMS.get(word, word) for word in words) - _FILLER_WORDS
    field = _QUANTITIES.get(_completed(words_known, unit))
    if field is None or not unit:
        return field
    return field._replace(per_one=UNITS[unit]) if unit in UNITS and _suits(field, unit) else None


def _completed(words_known: frozenset[str], unit: str) -> frozenset[str]:
    """Return the words completed by the unit: `memory_mb` is memory used, `gpu_usage_percent` utilization."""
    if words_known == {"memory"} and unit in _SIZES:
        return frozenset({"memory", "used"})
    return frozenset({"utilization"}) if words_known == {"used"} and unit == "%" else words_known


def _suits(field: LogField, unit: str) -> bool:
    """Return whether a unit fits a quantity: `memory_usage_percent` is not a size, `energy_kwh` not joules."""
    if field.metric.endswith("_fraction"):
        return unit == "%"
    return (unit in _SIZES) == field.metric.endswith("_bytes") and unit != "%"


_UNIT: Final = re.compile(r"(.*\S)\s*[\[(]([^\])]{1,12})[\])]")
_PLACE: Final = re.compile(r"(?:[0-9a-f]{8}|[0-9a-f]{4}):[0-9a-f]{2}:[0-9a-f]{2}\.\d", re.IGNORECASE)
_STATE: Final = re.compile(r"P\d{1,2}")
_AMD_ONLY: Final = "gfx_activity"
# The order in which people ask nvidia-smi for what has the same unit.
_BY_UNIT: Final = {
    "%": ("utilization.gpu", "utilization.memory"),
    "w": ("power.draw", "power.limit"),
    "mhz": ("clocks.sm", "clocks.mem"),
}


class LogHeader(NamedTuple):
    """Column names in lower case, and the quantities among them with the units that the header states."""

    names: tuple[str, ...]
    fields: dict[str, LogField]

    def first(self, wanted: frozenset[str]) -> int | None:
        """Return the index of the first column with one of these names."""
        return next((place for place, name in enumerate(self.names) if name in wanted), None)

    def times(self) -> tuple[int, ...]:
        """Return the indices of the time: one column, or a date and a time."""
        if {"date", "time"} <= set(self.names):
            return self.names.index("date"), self.names.index("time")
        place = self.first(TIMES)
        return () if place is None else (place,)


def parse_header(cells: Sequence[str]) -> LogHeader | None:
    """Return the header in a line, None if it is not a header; that of a log of processes has no fields."""
    if any(cell.lstrip()[:1].isdigit() for cell in cells):
        return None
    parted = list(map(_parted, cells))
    names = tuple(name for name, _ in parted)
    if not PROCESSES.isdisjoint(names):
        return LogHeader(names, {})
    known = FIELDS | AMD_SMI if _AMD_ONLY in names else FIELDS
    told = {name: _with_unit(known[name], unit) if name in known else parse_column(name, unit) for name, unit in parted}
    fields = {name: field for name, field in told.items() if field is not None}
    is_header = len(fields.keys() | KNOWN.intersection(names)) >= min(2, len(names))
    return LogHeader(names, fields) if fields and is_header else None


def guess_header(rows: Sequence[Sequence[str]], day: date) -> LogHeader | None:
    """Return a header for rows without one, guessed from their units; None if there are no units."""
    if not rows or not any(parse_unit(cell) for cell in rows[0]):
        return None
    names = list(_guessed_names(rows[0], day))
    _name_memory_columns(names, rows)
    return LogHeader(tuple(names), {name: FIELDS[name] for name in names if name in FIELDS})


def _parted(cell: str) -> tuple[str, str]:
    """Return a column's name and its unit: `power.draw [W]`."""
    text = cell.strip().strip("\"'#").strip().lower()
    match = _UNIT.fullmatch(text)
    return (text, "") if match is None else (match[1], match[2].strip())


def _with_unit(field: LogField, unit: str) -> LogField:
    return field._replace(per_one=UNITS[unit]) if unit in UNITS else field


def _guessed_names(row: Sequence[str], day: date) -> Iterator[str]:
    seen: dict[str, int] = {}
    for cell in row:
        unit = parse_unit(cell)
        names = _BY_UNIT.get(unit or "", ())
        count = seen[unit or ""] = seen.get(unit or "", -1) + 1
        if count < len(names):
            yield names[count]
        elif unit:
            yield unit
        elif unit == "" and not float(cell) >= 1e9:
            yield "temperature.gpu" if len(seen) > 1 else "index"
        else:
            yield _name_of_text(cell.strip(), day)


def _name_of_text(text: str, day: date) -> str:
    if parse_time(text, day) is not None:
        return "timestamp"
    if text.startswith(("GPU-", "MIG-")):
        return "uuid"
    return "pci.bus_id" if _PLACE.fullmatch(text) else "pstate" if _STATE.fullmatch(text) else "name"


def _name_memory_columns(names: list[str], rows: Sequence[Sequence[str]]) -> None:
    """Name the columns in MiB: the first is memory used; a second is the total or the free memory."""
    places = [place for place, name in enumerate(names) if name == "mib"]
    if len(places) > 2 or not places:
        return
    names[places[0]] = "memory.used"
    if len(places) == 2:
        second = {row[places[1]].strip() for row in rows if len(row) == len(names)}
        names[places[1]] = "memory.total" if len(second) == 1 else "memory.free"
