"""How likely it is that a need finds room on a card.

Neither is one number. Each uncertain term states what is expected of it and two ends, and so does the memory that the
card gives a process. An end is read as a quantile: one case in twenty lies beyond it.

- The device context: the least and the most that was measured on cards of its kind (`overhead`).
- The allocator's slack: nothing, and one hole as large as the largest tensor.
- CUDA graphs, buffers and steps of engines, communicators: the ranges that their terms name with their sources.
- Formulas that were checked against traces: a hundredth below, a twentieth above.
- The usable memory: the spread of the measured devices of the family (`hardware.usable`).

**Between the ends** a quantity is distributed as a normal one cut at the expected amount, with a width of its own on
each side, so that it may lean to one side as the measured ranges do.

**Together** the quantities are taken as fully dependent: all at their lower end, or all at their upper one. What moves
them has one cause, a driver or a library that is older or newer than the one a figure comes from; and of all ways in
which they may depend on each other this one spreads their sum the most, so that no certainty rests on errors that
cancel. Quantiles then add up, and the quantile of the peak is the largest of those of the phases.

**Beyond the ends** nothing is stated. There the chance falls by a factor e for each twentieth of the card; that
assumption decides no verdict.
"""

from math import erf, exp, sqrt
from typing import Final, NamedTuple

from planner.memory.result import Verdict

LIKELY_TO_FIT: Final = 0.95
"""From this chance on a need *fits*; from an even chance on it is *tight*; below that it does *not fit*."""
_BEYOND: Final = 1 - LIKELY_TO_FIT
_NORMAL_QUANTILE: Final = 1.6448536269514722
"""Where the standard normal distribution reaches 95 %."""
_TAIL_SHARE: Final = 0.05


class Interval(NamedTuple):
    """An uncertain number of bytes: one case in twenty is below `low`, half are below `bytes`, one is above `high`."""

    low: int
    bytes: int
    high: int


class Margin(NamedTuple):
    """What is left of a card's memory, less than nothing where it is too little: at worst, as expected, and at best."""

    worst: int
    expected: int
    best: int


def margin_of(need: Interval, room: Interval) -> Margin:
    """Return what `need` leaves of `room`: at worst the most is needed where the least is given."""
    return Margin(room.low - need.high, room.bytes - need.bytes, room.high - need.low)


def verdict_of(margin: Margin) -> Verdict:
    """Return the verdict that the chance of `margin` stands for, without computing it."""
    if margin.worst >= 0:
        return "fits"
    return "tight" if margin.expected >= 0 else "does-not-fit"


def chance_of(margin: Margin, capacity_bytes: int) -> float:
    """Return the probability, 0 to 1, that nothing is missing where `margin` is left of `capacity_bytes`.

    It never rises where all three of the margin fall, so that it never rises as a workload grows.

    **Formula**: Φ(1.645 · m / (m − worst)) for an expected margin m ≥ 0, Φ(1.645 · m / (best − m)) below; beyond the
    ends 1 − 0.05 · exp(−20 · worst / C), and 0.05 · exp(20 · best / C).
    """
    worst, expected, best = margin
    if worst >= 0:
        return 1 - _BEYOND * exp(-worst / _tail(capacity_bytes))
    if best < 0:
        return _BEYOND * exp(best / _tail(capacity_bytes))
    side = expected - worst if expected >= 0 else best - expected
    return 0.5 + 0.5 * erf(_NORMAL_QUANTILE / sqrt(2) * expected / side)


def _tail(capacity_bytes: int) -> float:
    return _TAIL_SHARE * max(capacity_bytes, 1)
