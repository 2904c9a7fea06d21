"""A service: how many cards answer so many requests a day, how busy they are, and how long requests wait."""

from math import ceil
from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.performance.inference.request import Run, read_prompt
from planner.performance.inference.throughput import Queued, queued, sequences_that_fit

_DAY_SECONDS: Final = 86_400
_BUSY_AT_MOST: Final = 0.8
"""Share of what cards bring that is planned with at the peak: beyond it waits grow with 1 ÷ (1 − share)."""


class Demand(Spec):
    """Requests of equal lengths, spread over the day with one peak."""

    requests_per_day: float = Field(gt=0, le=1e12)
    peak_factor: float = Field(default=3.0, ge=1, le=1_000, description="requests at the peak beside the day's mean")
    prompt_tokens: int = Field(ge=1, le=100_000_000)
    answer_tokens: int = Field(ge=1, le=100_000_000)
    slowest_token_seconds: float | None = Field(
        default=None, gt=0, description="the longest time between two tokens of an answer that is let pass"
    )
    busy_fraction: float = Field(default=_BUSY_AT_MOST, gt=0, lt=1, description="of what the cards bring, at the peak")

    @property
    def peak_per_second(self) -> float:
        """Return the requests of a second at the peak."""
        return self.requests_per_day * self.peak_factor / _DAY_SECONDS


class Served(Spec):
    """What a service takes: replicas of `cards_each` cards, and how they do at the peak.

    Without replicas `reason` says why there is no way.
    """

    replicas: int | None = None
    cards: int | None = None
    sequences: int | None = Field(default=None, description="at once, in each replica")
    requests_per_second: float | None = Field(default=None, description="that all replicas can answer")
    tokens_per_second: float | None = Field(default=None, description="of answers, that all replicas can write")
    peak_utilization_fraction: float | None = None
    mean_utilization_fraction: float | None = None
    first_token_seconds: float | None = Field(default=None, description="waiting included, at the peak")
    output_token_seconds: float | None = Field(default=None, description="with all sequences at work")
    queue_seconds: float | None = Field(default=None, description="mean wait for a free place at the peak")
    reason: str | None = None


def serve(run: Run, weights: str, card_bytes: float, demand: Demand) -> Served:
    """Return the fewest replicas of `run` that answer `demand`, each on cards with `card_bytes` of memory.

    **Formula**: replicas = ⌈peak ÷ (busy · requests of a replica)⌉; the wait is that of Erlang's C formula with a place
    for each sequence that fits.

    **Source**: A. K. Erlang, 1917 (M/M/c); `queued` for what a replica brings.

    **Assumes** Poisson arrivals, and requests that take exponentially distributed times.
    """
    most = sequences_that_fit(run, weights, demand.prompt_tokens + demand.answer_tokens, card_bytes)
    if not most:
        return Served(reason="the weights and one sequence do not fit on the cards of a replica")
    each = _quick_enough(run, most, demand)
    if each is None:
        return Served(reason=f"a single sequence takes longer than {demand.slowest_token_seconds:g} s for each token")
    peak = demand.peak_per_second
    replicas = ceil(peak / (demand.busy_fraction * each.requests_per_second))
    reading = read_prompt(run, 1, demand.prompt_tokens).seconds
    wait = wait_seconds(peak, replicas * each.requests_per_second, replicas * each.sequences)
    return Served(
        replicas=replicas,
        cards=replicas * run.sharing.tensor * run.sharing.stages,
        sequences=each.sequences,
        requests_per_second=replicas * each.requests_per_second,
        tokens_per_second=replicas * each.tokens_per_second,
        peak_utilization_fraction=peak / (replicas * each.requests_per_second),
        mean_utilization_fraction=peak / demand.peak_factor / (replicas * each.requests_per_second),
        first_token_seconds=wait + reading,
        output_token_seconds=each.output_token_seconds,
        queue_seconds=wait,
    )


def _quick_enough(run: Run, most: int, demand: Demand) -> Queued | None:
    """Return what the most sequences bring with which each is quick enough, found by bisection."""
    limit = demand.slowest_token_seconds
    found = _with(run, most, demand)
    if limit is None or found.output_token_seconds <= limit:
        return found
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if _with(run, middle, demand).output_token_seconds <= limit:
            low = middle
        else:
            high = middle
    return _with(run, low, demand) if low else None


def _with(run: Run, sequences: int, demand: Demand) -> Queued:
    return queued(run, sequences, demand.prompt_tokens, demand.answer_tokens)


def wait_seconds(arrivals_per_second: float, answered_per_second: float, places: int) -> float:
    """Return the mean wait for one of `places`, which together answer more than arrives.

    **Formula**: C(c, a) · s ÷ (c − a), a = c · arrivals ÷ answered, s = c ÷ answered.

    **Source**: A. K. Erlang, 1917, by the recursion of the B formula.
    """
    offered = places * arrivals_per_second / answered_per_second
    blocked = 1.0
    for place in range(1, places + 1):
        blocked = offered * blocked / (place + offered * blocked)
    waits = blocked / (1 - offered / places * (1 - blocked))
    return waits * places / answered_per_second / (places - offered)
