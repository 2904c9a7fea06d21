"""Since when a card does what it does, told by its use: what stands before that is of something else."""

from typing import Final, NamedTuple

from planner.monitor.diagnosis.stretch import Run, Stretch

ACTIVE: Final = 0.1
"""From here on a card does something. **Source** gpu-usage-audit: a utilisation of 10 % or more is active."""

# A card that did nothing for so long has stopped, unless it waits again and again.
_REST_SECONDS: Final = 30.0
# The same share as in the rules on cards that are idle.
_BUT_FOR_MOMENTS: Final = 0.95


class Phase(NamedTuple):
    """When it began, and since when the card waits, if it does: nobody can tell yet whether the work goes on."""

    start: float
    wait_start: float | None = None


def phase_of(use: Stretch) -> Phase:
    """Return the phase at the end of what was seen of a card's use.

    It begins with the first work, with a rest, or with the work after it. A rest is a wait that is long, and longer
    than all other waits together. Moments of use on an idle card are no work.
    """
    runs = list(use.runs(ACTIVE))
    if use.quantile(_BUT_FOR_MOMENTS) >= ACTIVE:
        return _phase(runs)
    # What an idle card does at this moment may be the beginning of work.
    return Phase(runs[-1].start if runs[-1].is_above else use.times[0])


def _phase(runs: list[Run]) -> Phase:
    first, last = 0 if runs[0].is_above else 1, len(runs) - 1
    rest = _rest(runs, first)
    if rest is None:
        return Phase(runs[first].start, None if runs[last].is_above else runs[last].start)
    return Phase(runs[last].start) if rest == last else _phase(runs[rest:])


def _rest(runs: list[Run], first: int) -> int | None:
    """Return the place of the wait from `first` on that ends one work, or parts two; none where there is none."""
    waits = {place: runs[place].seconds for place in range(first, len(runs)) if not runs[place].is_above}
    longest = max(waits, key=lambda place: waits[place], default=None)
    if longest is None or waits[longest] < _REST_SECONDS:
        return None
    return longest if 2 * waits[longest] > sum(waits.values()) else None
