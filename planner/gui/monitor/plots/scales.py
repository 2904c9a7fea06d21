"""How a quantity is told and where its axis ends; arithmetic only."""

from typing import Final, NamedTuple

from planner.gui.widgets.ticks import nice_step, round_ticks
from planner.monitor.readings.metrics import Unit
from planner.present import format as fmt
from planner.units import GIB, MIB

_FRACTION_TOP: Final = 1.0
_COOLEST: Final = 20.0
_ROOM: Final = 1.05
_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


class Range(NamedTuple):
    """The ends of an axis, in the quantity's own unit."""

    low: float
    high: float


def value_text(unit: Unit, value: float | None) -> str:
    """Return a value with its unit."""
    if value is None:
        return fmt.UNKNOWN
    if unit == "fraction":
        return fmt.percent(value)
    if unit == "bytes":
        return fmt.size(round(value))
    if unit == "bytes/s":
        per, name = _rate_unit(value)
        return fmt.quantity(value / per, name)
    return fmt.quantity(value, unit)


def axis_range(unit: Unit, seen: Range | None, lines: tuple[float, ...]) -> Range:
    """Return the ends of an axis that shows what is seen and the lines in it, moving as little as can be."""
    highest = max((seen.high if seen else 0.0, *lines))
    if unit == "fraction":
        return Range(0.0, max(_FRACTION_TOP, highest) * 1.02)
    if unit == "°C":
        lowest = min(seen.low if seen else _COOLEST, _COOLEST)
        return Range(10.0 * (lowest // 10), max(highest, 2 * _COOLEST) + 5)
    if lines and highest == max(lines):
        return Range(0.0, highest * _ROOM)
    return Range(0.0, _ceiling(highest * _ROOM) if highest > 0 else 1.0)


def axis_ticks(unit: Unit, ends: Range, wanted: int) -> list[tuple[float, str]]:
    """Return about `wanted` marks at round numbers, each with its unit."""
    per, name = _axis_unit(unit, ends.high)
    ticks = round_ticks(ends.low / per, ends.high / per, wanted)
    return [(place * per, f"{text}{fmt.THIN}{name}") for place, text in ticks]


def _axis_unit(unit: Unit, highest: float) -> tuple[float, str]:
    if unit == "fraction":
        return 0.01, "%"
    if unit == "bytes":
        return (GIB, "GiB") if highest >= GIB else (MIB, "MiB")
    return _rate_unit(highest) if unit == "bytes/s" else (1.0, unit)


def _rate_unit(value: float) -> tuple[float, str]:
    return next((rate for rate in _RATES if value >= rate[0]), _RATES[-1])


def _ceiling(value: float) -> float:
    """Return the next multiple of a fourth of a round number, so that the axis seldom changes."""
    step = nice_step(value / 4)
    return step * -(-value // step)
