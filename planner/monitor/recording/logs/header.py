"""What the columns of a log are: by their names, or where it has none, by their units.

A name of people's own, `GPU Memory Used (MiB)` or `power_W`, is the words that it is made of, in any order and parted
in any way; its unit is the last of them, or stands in brackets behind.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final, NamedTuple

from planner.monitor.recording.logs.cells import moment_of, unit_of
from planner.monitor.recording.logs.names import AMD_SMI, FIELDS, KNOWN, PERCENT, PROCESSES, TIMES, UNITS, Field
from planner.units import MIB

_WORD: Final = re.compile(r"[a-z0-9]+|%")
# Each word as the table below spells it; what says nothing is left out.
_SAME: Final = {
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
_SAYING_NOTHING: Final = frozenset({"gpu", "nvidia", "current", "draw", "speed"})
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
    frozenset({"utilization"}): Field("utilization_fraction", PERCENT),
    frozenset({"utilization", "memory"}): Field("memory_controller_fraction", PERCENT),
    frozenset({"utilization", "encoder"}): Field("encoder_fraction", PERCENT),
    frozenset({"utilization", "decoder"}): Field("decoder_fraction", PERCENT),
    frozenset({"memory", "used"}): Field("memory_used_bytes", MIB),
    frozenset({"memory", "free"}): Field("memory_free_bytes", MIB),
    frozenset({"memory", "total"}): Field("memory_total_bytes", MIB),
    frozenset({"memory", "limit"}): Field("memory_total_bytes", MIB),
    frozenset({"power"}): Field("power_watts"),
    frozenset({"power", "used"}): Field("power_watts"),
    frozenset({"power", "limit"}): Field("power_limit_watts"),
    frozenset({"energy"}): Field("energy_joules"),
    frozenset({"temperature"}): Field("temperature_celsius"),
    frozenset({"temperature", "memory"}): Field("memory_temperature_celsius"),
    frozenset({"clock"}): Field("sm_clock_mhz"),
    frozenset({"clock", "sm"}): Field("sm_clock_mhz"),
    frozenset({"clock", "memory"}): Field("memory_clock_mhz"),
    frozenset({"fan"}): Field("fan_fraction", PERCENT),
}


def field_of(name: str, unit: str = "") -> Field | None:
    """Return the quantity that a column is, with its unit; none where it is none, or its unit is not that of it.

    `name` is in small letters; `unit` is what stood in brackets behind it.
    """
    words, unit = _WORD.findall(name), _UNIT_WORDS.get(unit, unit)
    if not unit and len(words) > 1 and words[-1] in _UNIT_WORDS:
        unit = _UNIT_WORDS[words.pop()]
    said = frozenset(_SAME.get(word, word) for word in words) - _SAYING_NOTHING
    field = _QUANTITIES.get(_completed(said, unit))
    if field is None or not unit:
        return field
    return field._replace(per_one=UNITS[unit]) if unit in UNITS and _suits(field, unit) else None


def _completed(said: frozenset[str], unit: str) -> frozenset[str]:
    """Return the words with what only the unit tells: `memory_mb` is what is used, `gpu_usage_percent` the use."""
    if said == {"memory"} and unit in _SIZES:
        return frozenset({"memory", "used"})
    return frozenset({"utilization"}) if said == {"used"} and unit == "%" else said


def _suits(field: Field, unit: str) -> bool:
    """Return whether a quantity is told in a unit: `memory_usage_percent` is no size, and `energy_kwh` no joules."""
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


class Header(NamedTuple):
    """The columns' names in small letters, and the quantities among them with the units that the header tells."""

    names: tuple[str, ...]
    fields: dict[str, Field]

    def first(self, wanted: frozenset[str]) -> int | None:
        """Return the place of the first column of one of these names."""
        return next((place for place, name in enumerate(self.names) if name in wanted), None)

    def times(self) -> tuple[int, ...]:
        """Return the places of the time: one column, or a date and a time."""
        if {"date", "time"} <= set(self.names):
            return self.names.index("date"), self.names.index("time")
        place = self.first(TIMES)
        return () if place is None else (place,)


def header_of(cells: Sequence[str]) -> Header | None:
    """Return the header that a line is, none where it is no header; that of a log of processes has no fields."""
    if any(cell.lstrip()[:1].isdigit() for cell in cells):
        return None
    parted = list(map(_parted, cells))
    names = tuple(name for name, _ in parted)
    if not PROCESSES.isdisjoint(names):
        return Header(names, {})
    known = FIELDS | AMD_SMI if _AMD_ONLY in names else FIELDS
    told = {name: _with_unit(known[name], unit) if name in known else field_of(name, unit) for name, unit in parted}
    fields = {name: field for name, field in told.items() if field is not None}
    is_header = len(fields.keys() | KNOWN.intersection(names)) >= min(2, len(names))
    return Header(names, fields) if fields and is_header else None


def guessed_header(rows: Sequence[Sequence[str]], day: date) -> Header | None:
    """Return the header of rows without one, by the units in them; none where there are no units."""
    if not rows or not any(unit_of(cell) for cell in rows[0]):
        return None
    names = list(_guessed_names(rows[0], day))
    _tell_memory(names, rows)
    return Header(tuple(names), {name: FIELDS[name] for name in names if name in FIELDS})


def _parted(cell: str) -> tuple[str, str]:
    """Return a column's name and its unit: `power.draw [W]`."""
    text = cell.strip().strip("\"'#").strip().lower()
    match = _UNIT.fullmatch(text)
    return (text, "") if match is None else (match[1], match[2].strip())


def _with_unit(field: Field, unit: str) -> Field:
    return field._replace(per_one=UNITS[unit]) if unit in UNITS else field


def _guessed_names(row: Sequence[str], day: date) -> Iterator[str]:
    seen: dict[str, int] = {}
    for cell in row:
        unit = unit_of(cell)
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
    if moment_of(text, day) is not None:
        return "timestamp"
    if text.startswith(("GPU-", "MIG-")):
        return "uuid"
    return "pci.bus_id" if _PLACE.fullmatch(text) else "pstate" if _STATE.fullmatch(text) else "name"


def _tell_memory(names: list[str], rows: Sequence[Sequence[str]]) -> None:
    """Name the columns in MiB: one is what is used; of two, the second is what there is or what is free."""
    places = [place for place, name in enumerate(names) if name == "mib"]
    if len(places) > 2 or not places:
        return
    names[places[0]] = "memory.used"
    if len(places) == 2:
        second = {row[places[1]].strip() for row in rows if len(row) == len(names)}
        names[places[1]] = "memory.total" if len(second) == 1 else "memory.free"
