"""Counts of durations in bins of equal ratio, from which percentiles of millions of them are read."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import exp, floor, log
from typing import Final

_PER_RATIO: Final = 200
"""Bins for each factor e: one is 0.5 % wide."""


class DurationCounts:
    """Numbers of durations by their size, half a percent apart."""

    def __init__(self) -> None:
        self.bins: dict[int, float] = {}
        self.total = 0.0
        self.number = 0.0

    def add(self, seconds: float, number: float) -> None:
        """Count `number` durations of `seconds` seconds each."""
        place = floor(_PER_RATIO * log(seconds)) if seconds > 0 else -10_000
        self.bins[place] = self.bins.get(place, 0.0) + number
        self.total += seconds * number
        self.number += number

    def include(self, other: "DurationCounts") -> None:
        """Count the durations of `other` as well."""
        for place, number in other.bins.items():
            self.bins[place] = self.bins.get(place, 0.0) + number
        self.total += other.total
        self.number += other.number

    @property
    def mean(self) -> float | None:
        """Return the mean duration in seconds, None if there is none."""
        return self.total / self.number if self.number else None

    def percentiles(self, percents: Iterable[float]) -> list[float]:
        """Return the durations that the given percentages of all do not exceed, in seconds; needs one at least."""
        places = sorted(self.bins)
        passed = list(accumulate(self.bins[place] for place in places))
        found = (places[bisect_left(passed, percent / 100 * passed[-1])] for percent in percents)
        return [exp((place + 0.5) / _PER_RATIO) for place in found]
