"""Result of a serving simulation: percentiles with their ranges, throughput, cache, and one minute in detail."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import astuple
from itertools import accumulate
from math import exp, floor, log
from typing import Final, Literal

from pydantic import Field

from planner.base import Spec, record
from planner.serving.targets import Latency, LatencyTarget

PERCENTS: Final = (50.0, 75.0, 90.0, 95.0, 99.0)
"""Percentiles of each table."""
_PER_RATIO: Final = 200
"""Bins for each factor e: one is 0.5 % wide."""
ServingLimit = Literal["prompts", "decoding", "cache", "sequences", "idle"]
"""What holds a service up: reading prompts, decoding, room in the KV cache, sequences at once, or nothing."""


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


@record
class Percentile:
    """A percentile of a time in seconds, with a range in which four of five measurements lie.

    The range has the error of the step times and that of the sample; the one from `sampling_low_seconds` to
    `sampling_high_seconds` that of the sample alone.
    """

    percent: float
    seconds: float
    low_seconds: float
    high_seconds: float
    sampling_low_seconds: float
    sampling_high_seconds: float


class LatencyTable(Spec):
    """Mean and percentiles of one time of the requests."""

    latency: Latency
    number: int
    """Requests, or tokens for the time between tokens."""
    mean_seconds: float
    low_mean_seconds: float
    high_mean_seconds: float
    percentiles: tuple[Percentile, ...]

    def percentile(self, percent: float) -> Percentile:
        """Return the percentile `percent`, between two of the table linear in the percentage.

        Raises:
            ValueError: If `percent` is not between 0 and 100.
        """
        if not 0 < percent < 100:
            raise ValueError(f"a percentile is between 0 and 100, not {percent:g}")
        rows = self.percentiles
        after = next((row for row in rows if row.percent >= percent), rows[-1])
        before = next((row for row in reversed(rows) if row.percent <= percent), rows[0])
        if after.percent <= before.percent:
            return after
        share = (percent - before.percent) / (after.percent - before.percent)
        _, *columns = zip(astuple(before), astuple(after), strict=True)
        return Percentile(percent, *(low + share * (high - low) for low, high in columns))


class TargetResult(Spec):
    """Figure of a target with its range, and whether it is within the limit."""

    target: LatencyTarget
    seconds: float
    low_seconds: float
    high_seconds: float
    holds: bool
    """Whether the estimate is within the limit."""
    surely: bool
    """Whether the upper end of the range is within the limit as well."""

    @property
    def margin(self) -> float:
        """Return by how much of the limit the estimate stays below it; negative above it."""
        return 1 - self.seconds / self.target.seconds


class GoodputResult(Spec):
    """Share of the requests that meet all limits of a goodput target, with its range."""

    share: float
    low_share: float
    high_share: float
    holds: bool
    requests_per_second: float
    """Answered requests that meet the limits: their share of those after the warm-up, of all that are answered."""


class CacheUse(Spec):
    """Use of the KV cache of all replicas together."""

    capacity_tokens: int | None
    """None where each sequence has a slot of its own."""
    mean_fraction: float | None
    highest_fraction: float | None
    preemptions: int
    """Requests that lost their cache and were read again."""
    prefix_hit_fraction: float
    """Share of the prompt tokens that were found in the cache of earlier requests."""
    ram_hit_fraction: float = 0.0
    """Share of the prompt tokens that were brought back from RAM; part of the share above."""


@record
class RequestBar:
    """One request of the minute in detail: when it came, was scheduled, gave its first token and ended, in seconds."""

    request: int
    replica: int
    prompt_tokens: int
    output_tokens: int
    arrival: float
    scheduled: float | None
    first_token: float | None
    end: float | None
    preempted: tuple[float, ...]


@record
class MinuteMoment:
    """State of a replica at the begin of a step: requests that wait, that are read and that are answered."""

    seconds: float
    replica: int
    waiting: int
    reading: int
    decoding: int
    cache_fraction: float


class MinuteInDetail(Spec):
    """The requests of one simulated minute, or of as much of it as there is, and the state of the replicas."""

    begin_seconds: float
    end_seconds: float
    requests: tuple[RequestBar, ...]
    moments: tuple[MinuteMoment, ...]


class ServingSimulation(Spec):
    """Simulated service: how long its requests take on these GPUs, at this traffic.

    Percentiles leave out the requests of the warm-up. `unsupported` is the reason if nothing was simulated; the other
    figures are then empty.
    """

    unsupported: str | None = None
    """Reason if nothing was simulated."""
    requests: int = 0
    """Requests that were simulated, with those of the warm-up."""
    warm_up_requests: int = 0
    """Requests at the beginning that percentiles leave out."""
    rejected: int = 0
    """Requests that are longer than the cache."""
    seconds: float = 0.0
    """Simulated time."""
    replicas: int = 1
    """Replicas of the model."""
    cards: int = 1
    """GPUs of all replicas together."""
    offered_requests_per_second: float | None = None
    """Requests that arrive per second; None if clients set the rate."""
    requests_per_second: float = 0.0
    """Requests that ended per second, on all GPUs together."""
    output_tokens_per_second: float = 0.0
    """Answered tokens per second, on all GPUs together."""
    input_tokens_per_second: float = 0.0
    """Prompt tokens of the answered requests per second, on all GPUs together."""
    latencies: tuple[LatencyTable, ...] = ()
    """Tables of the time to first token, between tokens of a request, to the end, and between any two tokens."""
    targets: tuple[TargetResult, ...] = ()
    """Each target with its figure."""
    goodput: GoodputResult | None = None
    """Share of good answers; None if there is no such target."""
    cache: CacheUse | None = None
    """Use of the KV cache."""
    busy_fraction: float = 0.0
    """Share of the time in which the replicas work."""
    prompt_fraction: float = 0.0
    """Share of the time in which they read prompts, with or without decoding in the same step."""
    mean_running: float = 0.0
    """Requests that a replica answers at once in the mean, while it works."""
    limit: ServingLimit = "idle"
    """What most holds the requests up."""
    saturated: bool = False
    """Whether more requests arrive than are answered, so that times grow without end."""
    minute: MinuteInDetail | None = None
    """One minute in detail; None where it was not asked for, or requests are answered in batches."""
    seed: int = 0
    """Seed of the random numbers."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""

    @property
    def holds(self) -> bool:
        """Return whether all targets are met, and no request is rejected or left behind."""
        kept = all(target.holds for target in self.targets) and (self.goodput is None or self.goodput.holds)
        return self.unsupported is None and kept and not self.saturated and not self.rejected

    def latency(self, name: Latency) -> LatencyTable | None:
        """Return the table of one time, or None if no request had it."""
        return next((table for table in self.latencies if table.latency == name), None)


class RatePoint(Spec):
    """Figures of a service at one rate of requests, for curves over the rate."""

    requests_per_second: float = Field(gt=0)
    simulation: ServingSimulation


class ServingCurve(Spec):
    """A simulated service with its figures over the rate of requests."""

    simulation: ServingSimulation
    curve: tuple[RatePoint, ...]
