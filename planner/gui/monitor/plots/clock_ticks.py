"""Where the marks of a time axis stand: at round times of the clock; arithmetic only."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import lru_cache
from math import ceil
from typing import Final

from planner.present import format as fmt

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_STEPS: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
)


def clock_text(wall_seconds: float, zone: tzinfo | None = None) -> str:
    """Return the clock time to the second: `14:05:09`."""
    return f"{datetime.fromtimestamp(wall_seconds, zone):%H:%M:%S}"


def clock_ticks(
    start: float, end: float, wanted: int, wall_of: Callable[[float], float], zone: tzinfo | None = None
) -> list[tuple[float, str]]:
    """Return at most about `wanted` marks from `start` to `end`, each with its clock time; at midnight the day."""
    return list(_ticks(start, end, wanted, wall_of(start), zone))


# All plots of a grid ask for the same.
@lru_cache(maxsize=4)
def _ticks(
    start: float, end: float, wanted: int, wall_at_start: float, zone: tzinfo | None
) -> tuple[tuple[float, str], ...]:
    least = (end - start) / max(1, wanted)
    step = next((step for step in _STEPS if step >= least), _DAY)
    offset = datetime.fromtimestamp(wall_at_start, zone).astimezone(zone).utcoffset()
    local = wall_at_start + (offset.total_seconds() if offset is not None else 0.0)
    begin = ceil(local / step)
    marks = []
    for number in range(begin, begin + int((end - start) / step) + 1):
        time = start + number * step - local
        if time <= end:
            marks.append((time, _text(wall_at_start + number * step - local, step, zone)))
    return tuple(marks)


def _text(wall_seconds: float, step: float, zone: tzinfo | None) -> str:
    moment = datetime.fromtimestamp(round(wall_seconds, 1), zone)
    if step >= _MINUTE and (moment.hour, moment.minute) == (0, 0):
        return fmt.date(moment.date().isoformat()).rpartition(" ")[0]
    if step >= _MINUTE:
        return f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S}" if step >= 1 else f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"
