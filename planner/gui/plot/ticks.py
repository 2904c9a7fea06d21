"""Positions and labels of axis ticks at round numbers, powers of ten or round clock times."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from math import ceil, floor, log10
from typing import Final

from planner.present import format as fmt

Ticks = list[tuple[float, str]]
"""Position and label of each tick."""
_ROUND_FACTORS: Final = (1, 2, 2.5, 5, 10)
_FINER: Final = 2.5
"""The largest ratio of two round numbers that follow each other."""
_FINE_FACTORS: Final = (1, 2, 5)
_COARSE_FACTORS: Final = (1,)
_MILLION: Final = 1e6
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_CLOCK_STEPS: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
)


def nice_step(minimum: float) -> float:
    """Return the smallest round number that is at least `minimum`; 1 if `minimum` is not positive."""
    if minimum <= 0:
        return 1
    scale = 10.0 ** floor(log10(minimum))
    return scale * next(
        factor for factor in _ROUND_FACTORS if minimum <= factor * scale or factor == _ROUND_FACTORS[-1]
    )


def round_ticks(
    low: float, high: float, tick_count: int, format_value: Callable[[float], str] = fmt.plain, *, whole: bool = False
) -> Ticks:
    """Return about `tick_count` ticks at round numbers from `low` to `high`, at integers only if `whole`."""
    step = nice_step((high - low) / max(1, tick_count))
    if whole and step != round(step):
        step = nice_step(step * 2)
    if whole:
        step = max(1, step)
    values = _multiples(step, low, high)
    if len(values) < min(2, tick_count) and not whole:
        values = _multiples(nice_step(step / _FINER), low, high)  # a single tick gives no scale
    return [(value, format_value(value)) for value in values]


def _multiples(step: float, low: float, high: float) -> list[float]:
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def log_ticks(low: float, high: float, max_ticks: int, format_value: Callable[[float], str] = fmt.plain) -> Ticks:
    """Return logarithmic ticks from 10^`low` to 10^`high`: at 1, 2 and 5 if at most `max_ticks`, else at 1."""
    factors = _FINE_FACTORS if (high - low) * len(_FINE_FACTORS) <= max_ticks else _COARSE_FACTORS
    ticks = [
        (log10(factor) + exponent, factor * 10.0**exponent)
        for exponent in range(floor(low), ceil(high) + 1)
        for factor in factors
    ]
    return [(place, format_value(value)) for place, value in ticks if low <= place <= high]


def money_label(value: float) -> str:
    """Return a tick label for an amount in USD: `$2,000`, `$1.5 M`."""
    return f"${value / _MILLION:g} M" if value >= _MILLION else f"${value:,.10g}"


def clock_text(wall_seconds: float, zone: tzinfo | None = None) -> str:
    """Return the clock time to the second: `14:05:09`."""
    return f"{datetime.fromtimestamp(wall_seconds, zone):%H:%M:%S}"


def clock_ticks(
    start: float, end: float, tick_count: int, wall_of: Callable[[float], float], zone: tzinfo | None = None
) -> Ticks:
    """Return about `tick_count` ticks from `start` to `end` labeled with clock times, or at midnight with the date."""
    min_step = (end - start) / max(1, tick_count)
    step = next((step for step in _CLOCK_STEPS if step >= min_step), _DAY)
    wall_at_start = wall_of(start)
    offset = datetime.fromtimestamp(wall_at_start, zone).astimezone(zone).utcoffset()
    local = wall_at_start + (offset.total_seconds() if offset is not None else 0.0)
    begin = ceil(local / step)
    ticks = []
    for number in range(begin, begin + int((end - start) / step) + 1):
        time = start + number * step - local
        if time <= end:
            ticks.append((time, _clock_label(wall_at_start + number * step - local, step, zone)))
    return ticks


def _clock_label(wall_seconds: float, step: float, zone: tzinfo | None) -> str:
    moment = datetime.fromtimestamp(round(wall_seconds, 1), zone)
    if step >= _MINUTE and (moment.hour, moment.minute) == (0, 0):
        return fmt.date(moment.date().isoformat()).rpartition(" ")[0]
    if step >= _MINUTE:
        return f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S}" if step >= 1 else f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"
