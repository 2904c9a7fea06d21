"""What scripts of people's own call the quantities: `utilization_gpu_percent`, `GPU Memory Used (MiB)`, `power_W`.

A name is the words that it is made of, in any order and parted in any way; its unit is the last of them, or stands in
brackets behind.
"""

import re
from typing import Final

from planner.monitor.recording.logs.names import PERCENT, UNITS, Field
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
