"""Where the marks of a plot's axis stand; arithmetic only."""

from math import ceil, floor, log10
from typing import Final

from planner.present import format as fmt

_ROUND: Final = (1, 2, 2.5, 5, 10)


def round_ticks(low: float, high: float, wanted: int) -> list[tuple[float, str]]:
    """Return about `wanted` round numbers from `low` to `high`, each with its text."""
    step = nice_step((high - low) / max(1, wanted))
    return [(number * step, fmt.plain(number * step)) for number in range(ceil(low / step), floor(high / step) + 1)]


def nice_step(raw: float) -> float:
    """Return the smallest round number that is at least `raw`, and 1 where there is nothing to divide."""
    if raw <= 0:
        return 1
    scale = 10.0 ** floor(log10(raw))
    return scale * next(factor for factor in _ROUND if raw <= factor * scale or factor == _ROUND[-1])
