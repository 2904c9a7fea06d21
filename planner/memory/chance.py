"""Probability that a workload fits on a card.

Memory need and usable memory are both uncertain. Each uncertain term has an expected value and two bounds, and so has
the usable memory of the card. A bound is a quantile: one case in twenty lies beyond it.

- The GPU context: the minimum and maximum measured on cards of the same kind (`overhead`).
- The allocator's slack: from zero to one hole as large as the largest tensor.
- CUDA graphs, engine buffers and steps, communicators: the ranges given with a source in their terms.
- Formulas that were checked against traces: from 1 % below to 5 % above the estimate.
- Where the version of the software is not known, all tensors together: the spread of published measurements (`Spread`),
  but no less than 99 % of what is stored, such as weights and caches.
- The usable memory: the spread of the measured devices of the family (`hardware.usable`).

**Between the bounds** a quantity has a split normal distribution: each side of the expected value has a width of its
own, since the measured ranges are not symmetric.

**Together** the quantities are fully dependent: all at their lower bound, or all at their upper bound. They have one
cause, a driver or library older or newer than the measured one; and full dependence spreads their sum the
most, so that no certainty rests on errors that cancel. Quantiles then add up, and the quantile of the peak is the
largest of those of the phases.

**Beyond the bounds** nothing is known. There the probability falls by a factor e for each twentieth of the card's
memory; no verdict depends on that assumption.
"""

from math import erf, exp, sqrt
from typing import Final, NamedTuple

from planner.memory.result import Verdict

LIKELY_TO_FIT: Final = 0.95
"""Minimum probability of the verdict *fits*; from 0.5 on the verdict is *tight*, below 0.5 *does not fit*."""
_BEYOND: Final = 1 - LIKELY_TO_FIT
_NORMAL_QUANTILE: Final = 1.6448536269514722
"""The 95 % quantile of the standard normal distribution."""
_TAIL_SHARE: Final = 0.05
_STORED_SHARE: Final = 0.99
"""Least share of the stored bytes, as of formulas that were checked against traces."""


class ByteInterval(NamedTuple):
    """An uncertain size in bytes: 5 % of cases lie below `low`, half below `bytes`, and 5 % above `high`."""

    low: int
    bytes: int
    high: int


class Spread(NamedTuple):
    """Shares of the counted bytes by which one measurement in twenty lies further `below`, and one further `above`.

    They are those of published measurements, of software whose version is not known: older ones kept other tensors
    (`benchmarks/accuracy.py` leaves one source out at a time).
    """

    below: float
    above: float

    def around(self, counted: ByteInterval, stored: int = 0) -> ByteInterval:
        """Return `counted` with bounds at least as far from its expected value as these shares.

        The lower bound keeps the `stored` bytes, such as weights: no version of a program holds fewer of them.
        """
        low, expected, high = counted
        least = max(int(expected * (1 - self.below)), int(_STORED_SHARE * stored))
        most = int(expected * (1 + self.above))
        return ByteInterval(least if least < low else low, expected, most if most > high else high)


KNOWN_VERSION: Final = Spread(0.0, 0.0)
"""No further spread: the bytes were counted in the version that runs."""


class Margin(NamedTuple):
    """Free memory of a card in bytes in the worst, expected and best case; negative where memory is missing."""

    worst: int
    expected: int
    best: int


def memory_margin(need: ByteInterval, usable: ByteInterval) -> Margin:
    """Return the free memory that `need` leaves of `usable` bytes; worst case: highest need, lowest usable memory."""
    return Margin(usable.low - need.high, usable.bytes - need.bytes, usable.high - need.low)


def margin_verdict(margin: Margin) -> Verdict:
    """Return the verdict for `margin`: fits, tight or does-not-fit."""
    if margin.worst >= 0:
        return "fits"
    return "tight" if margin.expected >= 0 else "does-not-fit"


def probability_of_fit(margin: Margin, capacity_bytes: int) -> float:
    """Return the probability, 0 to 1, that a card of `capacity_bytes` has enough memory, from its free-memory `margin`.

    The probability never rises when all three values of the margin fall, so it never rises as a workload grows.

    **Formula**: Φ(1.645 · m / (m − worst)) for an expected margin m ≥ 0, Φ(1.645 · m / (best − m)) below; beyond the
    bounds 1 − 0.05 · exp(−20 · worst / C), and 0.05 · exp(20 · best / C).
    """
    worst, expected, best = margin
    if worst >= 0:
        return 1 - _BEYOND * exp(-worst / _tail_width_bytes(capacity_bytes))
    if best < 0:
        return _BEYOND * exp(best / _tail_width_bytes(capacity_bytes))
    side = expected - worst if expected >= 0 else best - expected
    return 0.5 + 0.5 * erf(_NORMAL_QUANTILE / sqrt(2) * expected / side)


def _tail_width_bytes(capacity_bytes: int) -> float:
    """Return the bytes (5 % of the card's memory) in which fit probability beyond the bounds falls by a factor e."""
    return _TAIL_SHARE * max(capacity_bytes, 1)
