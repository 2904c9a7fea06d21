"""Since when a card does what it does, told by its use: what stands before that is of something else."""

from typing import Final, NamedTuple

from planner.monitor.diagnosis.stretch import Run, Stretch

ACTIVE: Final = 0.1
"""From here on a card does something. **Source** gpu-usage-audit: a utilisation of 10 % or more is active."""

# A card that did nothing for so long has stopped, or did before it began.
_REST_SECONDS: Final = 30.0
# Waits that come again and again are of one work: what ends it is longer than they by so much.
_LONGER_THAN_OTHERS: Final = 1.5
# The same share as in the rules on cards that are idle.
_BUT_FOR_MOMENTS: Final = 0.95


class Phase(NamedTuple):
    """When it began, and since when the card waits, if it does: nobody can tell yet whether the work goes on."""

    start: float
    wait_start: float | None = None


def phase_of(use: Stretch) -> Phase:
    """Return the phase at the end of what was seen of a card's use.

    It begins with the first work, or with the rest that follows work. Moments of use on an idle card are no work.
    """
    runs = list(use.runs(ACTIVE))
    if _is_idle(use):
        # What it does at this moment may be the beginning of work.
        return Phase(runs[-1].start if runs[-1].is_above else use.times[0])
    first = next(place for place, run in enumerate(runs) if run.is_above and not _is_moment(use, runs[place:]))
    last = runs[-1]
    if last.is_above:
        return Phase(runs[first].start)
    waits = (run.seconds for run in runs[first:-1] if not run.is_above)
    is_rest = last.seconds >= max(_REST_SECONDS, _LONGER_THAN_OTHERS * max(waits, default=0.0))
    return Phase(last.start) if is_rest else Phase(runs[first].start, last.start)


def _is_idle(use: Stretch) -> bool:
    return use.quantile(_BUT_FOR_MOMENTS) < ACTIVE


def _is_moment(use: Stretch, runs: list[Run]) -> bool:
    """Return whether a run of use stands in a long rest, which goes on after it."""
    if len(runs) < 3 or runs[1].seconds < _REST_SECONDS:
        return False
    before = use.until(runs[2].start)
    return before is not None and _is_idle(before)
