"""Traffic of a service: when requests arrive, their lengths, what prompts have in common; presets with sources."""

import math
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.paths import catalog_dir
from planner.records import read_records
from planner.serving.targets import Targets
from planner.units import HOURS_PER_DAY

_LONGEST: Final = 100_000_000
_MOST_REQUESTS: Final = 1_000_000
_MOST_BURSTINESS: Final = 100.0

Rate = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, description="mean number of requests per second")]
Burstiness = Annotated[
    float,
    Field(
        gt=0,
        le=_MOST_BURSTINESS,
        allow_inf_nan=False,
        description="shape of the gamma distribution of the times between requests: 1 is a Poisson process, lower "
        "values come in bursts, higher ones more evenly (as `vllm bench serve --burstiness`)",
    ),
]


class RandomArrivals(Spec):
    """Requests that arrive at random at a constant mean rate."""

    kind: Literal["random"] = "random"
    requests_per_second: Rate
    burstiness: Burstiness = 1.0


class DailyArrivals(Spec):
    """Requests that arrive at random at a rate that changes from hour to hour of the day.

    `requests_per_second` is the mean of the day, and `hourly_shares` the relative load of each hour. A simulation shows
    the hour with the highest load.
    """

    kind: Literal["daily"] = "daily"
    requests_per_second: Rate
    hourly_shares: tuple[float, ...] = Field(description="relative load of each of the 24 hours")
    burstiness: Burstiness = 1.0

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        shares = self.hourly_shares
        if len(shares) != HOURS_PER_DAY or min(shares) < 0 or not 0 < sum(shares) < math.inf:
            raise ValueError("hourly_shares needs 24 non-negative numbers that are not all zero")
        return self

    @property
    def highest_rate(self) -> float:
        """Return the rate of the hour with the highest load, in requests per second."""
        return self.requests_per_second * max(self.hourly_shares) * HOURS_PER_DAY / sum(self.hourly_shares)


class ConcurrentClients(Spec):
    """A constant number of clients, each of which sends its next request when the answer has ended.

    Benchmarks with a fixed concurrency (`vllm bench serve --max-concurrency`) do so without `think_seconds`.
    """

    kind: Literal["clients"] = "clients"
    clients: int = Field(ge=1, le=_MOST_REQUESTS)
    think_seconds: float = Field(
        default=0.0, ge=0, le=1e6, allow_inf_nan=False, description="mean pause between an answer and the next request"
    )


class TracedArrivals(Spec):
    """The arrival times of the traffic's own trace, which come `speed` times as fast."""

    kind: Literal["trace"] = "trace"
    speed: float = Field(default=1.0, gt=0, le=1e6, allow_inf_nan=False)


Arrivals = Annotated[RandomArrivals | DailyArrivals | ConcurrentClients | TracedArrivals, Field(discriminator="kind")]


class FixedLength(Spec):
    """The same number of tokens in each request."""

    kind: Literal["fixed"] = "fixed"
    tokens: int = Field(ge=1, le=_LONGEST)


class LogNormalLength(Spec):
    """Numbers of tokens whose logarithm is normally distributed, cut off at `most_tokens`."""

    kind: Literal["log-normal"] = "log-normal"
    median_tokens: float = Field(ge=1, le=_LONGEST)
    p90_tokens: float = Field(ge=1, le=_LONGEST, description="number of tokens that one request in ten exceeds")
    most_tokens: int = Field(default=1_000_000, ge=1, le=_LONGEST)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.p90_tokens < self.median_tokens:
            raise ValueError("p90_tokens must be at least median_tokens")
        if self.most_tokens < self.median_tokens:
            raise ValueError("most_tokens must be at least median_tokens")
        return self


class TracedLength(Spec):
    """The numbers of tokens of the traffic's own trace."""

    kind: Literal["trace"] = "trace"


Lengths = Annotated[FixedLength | LogNormalLength | TracedLength, Field(discriminator="kind")]


class SharedPrefixes(Spec):
    """Beginnings that prompts have in common, such as system prompts: each prompt begins with one of `prefixes`."""

    tokens: int = Field(ge=1, le=_LONGEST, description="length of a common beginning, which is part of the prompt")
    prefixes: int = Field(default=1, ge=1, le=_MOST_REQUESTS, description="number of different beginnings")
    share: float = Field(default=1.0, gt=0, le=1, description="share of the requests that begin with one of them")


class Sessions(Spec):
    """Conversations: the prompt of a turn has all earlier prompts and answers before the new tokens."""

    turns: float = Field(ge=1, le=10_000, description="mean number of turns, geometrically distributed")
    think_seconds: float = Field(
        default=0.0, ge=0, le=1e6, allow_inf_nan=False, description="mean pause between an answer and the next turn"
    )
    most_tokens: int | None = Field(
        default=None, ge=1, le=_LONGEST, description="context at which a session ends; none: no limit"
    )


class CommonPrefix(NamedTuple):
    """A prefix that several prompts share: its number, and its length in tokens."""

    name: int
    end: int


class TrafficTrace(Spec):
    """Recorded requests in the order of their arrival: seconds since the first, and tokens of prompts and answers.

    `beginnings` are those that each prompt has in common with others, the shortest first, where the record has them.
    """

    arrival_seconds: tuple[float, ...]
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    beginnings: tuple[tuple[CommonPrefix, ...], ...] = ()
    source: str = ""

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        number = len(self.arrival_seconds)
        if not 1 <= number <= _MOST_REQUESTS:
            raise ValueError(f"a trace has 1 to {_MOST_REQUESTS:,} requests, not {number:,}")
        if {len(self.input_tokens), len(self.output_tokens)} != {number}:
            raise ValueError("arrival_seconds, input_tokens and output_tokens must have the same length")
        if len(self.beginnings) not in (0, number):
            raise ValueError("beginnings must have the length of the trace, or be empty")
        if min(self.input_tokens) < 1 or min(self.output_tokens) < 1:
            raise ValueError("each request needs at least one input token and one output token")
        if any(later < earlier for earlier, later in zip(self.arrival_seconds, self.arrival_seconds[1:], strict=False)):
            raise ValueError("arrival_seconds must not decrease")
        return self

    def each(self, step: int) -> Self:
        """Return the trace of each `step`-th request."""
        columns = ("arrival_seconds", "input_tokens", "output_tokens", "beginnings")
        return self.evolve(**{name: getattr(self, name)[::step] for name in columns})

    @property
    def requests_per_second(self) -> float | None:
        """Return the mean rate of the trace, None if all requests arrive at once."""
        span = self.arrival_seconds[-1] - self.arrival_seconds[0]
        return (len(self.arrival_seconds) - 1) / span if span > 0 else None


class Traffic(Spec):
    """Requests to a service: their arrivals, the lengths of prompts and answers, common beginnings and sessions.

    In sessions, `input` is the length of the new tokens of each turn. Arrivals are those of sessions, not of turns.
    """

    arrivals: Arrivals
    input: Lengths
    output: Lengths
    prefixes: SharedPrefixes | None = None
    sessions: Sessions | None = None
    trace: TrafficTrace | None = Field(default=None, repr=False)

    @classmethod
    def of_trace(cls, trace: TrafficTrace, speed: float = 1.0) -> Self:
        """Return the traffic that repeats `trace`, `speed` times as fast."""
        return cls(arrivals=TracedArrivals(speed=speed), input=TracedLength(), output=TracedLength(), trace=trace)

    @model_validator(mode="after")
    def _check_trace(self) -> Self:
        traced = (self.arrivals.kind, self.input.kind, self.output.kind)
        if "trace" in traced and self.trace is None:
            raise ValueError("arrivals or lengths are those of a trace, but there is no trace")
        if self.arrivals.kind == "trace" and self.sessions is not None:
            raise ValueError("a trace has the arrivals of each request, so that sessions cannot be added")
        if self.arrivals.kind == "clients" and self.sessions is not None:
            raise ValueError("clients send one request after the other; sessions need arrivals at a rate")
        return self

    @property
    def requests_per_second(self) -> float | None:
        """Return the mean rate of requests in the busiest hour, all turns counted; None if clients set it."""
        turns = 1.0 if self.sessions is None else self.sessions.turns
        match self.arrivals:
            case RandomArrivals(requests_per_second=rate):
                return rate * turns
            case DailyArrivals():
                return self.arrivals.highest_rate * turns
            case TracedArrivals(speed=speed):
                rate_of_trace = None if self.trace is None else self.trace.requests_per_second
                return None if rate_of_trace is None else speed * rate_of_trace
            case _:
                return None

    def at_rate(self, requests_per_second: float) -> Self:
        """Return the same traffic at another mean rate of requests in the busiest hour.

        Raises:
            ValueError: If clients set the rate, or all requests of a trace arrive at once.
        """
        present = self.requests_per_second
        if present is None:
            raise ValueError("this traffic has no rate that could be changed")
        factor = requests_per_second / present
        arrivals = self.arrivals
        if isinstance(arrivals, TracedArrivals):
            return self.evolve(arrivals=arrivals.evolve(speed=arrivals.speed * factor))
        assert not isinstance(arrivals, ConcurrentClients)
        return self.evolve(arrivals=arrivals.evolve(requests_per_second=arrivals.requests_per_second * factor))

    def with_longer(self, input_factor: float = 1.0, output_factor: float = 1.0) -> Self:
        """Return the same traffic with prompts and answers that are longer by the factors."""
        trace = self.trace
        if trace is not None:
            trace = trace.evolve(
                input_tokens=tuple(max(1, round(input_factor * tokens)) for tokens in trace.input_tokens),
                output_tokens=tuple(max(1, round(output_factor * tokens)) for tokens in trace.output_tokens),
            )
        return self.evolve(
            input=_longer(self.input, input_factor), output=_longer(self.output, output_factor), trace=trace
        )


def _longer(lengths: FixedLength | LogNormalLength | TracedLength, factor: float) -> Spec:
    match lengths:
        case FixedLength(tokens=tokens):
            return FixedLength(tokens=max(1, round(factor * tokens)))
        case LogNormalLength():
            return LogNormalLength(
                median_tokens=max(1.0, factor * lengths.median_tokens),
                p90_tokens=max(1.0, factor * lengths.p90_tokens),
                most_tokens=max(1, round(max(factor, 1.0) * lengths.most_tokens)),
            )
        case _:
            return lengths


def share_of_traffic(traffic: Traffic, replicas: int) -> Traffic:
    """Return the requests of one of `replicas` replicas that get them in turn.

    **Formula**: each n-th arrival of a process whose distances have a gamma distribution of shape k has shape n · k.
    """
    if replicas == 1:
        return traffic
    arrivals = traffic.arrivals
    if isinstance(arrivals, RandomArrivals | DailyArrivals):
        shape = min(arrivals.burstiness * replicas, _MOST_BURSTINESS)
        rate = arrivals.requests_per_second / replicas
        return traffic.evolve(arrivals=arrivals.evolve(requests_per_second=rate, burstiness=shape))
    if isinstance(arrivals, ConcurrentClients):
        return traffic.evolve(arrivals=arrivals.evolve(clients=max(1, -(-arrivals.clients // replicas))))
    assert traffic.trace is not None
    return traffic.evolve(trace=traffic.trace.each(replicas))


class TrafficPreset(Spec):
    """The traffic of a kind of service, at one request per second, and targets that suit it."""

    id: str = Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")
    title: str = Field(min_length=3)
    summary: str = Field(min_length=10, description="one sentence about the service")
    traffic: Traffic
    targets: Targets
    sources: tuple[str, ...] = Field(min_length=1, description="source of each number")
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the sources were read")
    notes: tuple[str, ...] = Field(default=(), description="what was assumed")


def load_traffic_presets(folder: Path | None = None) -> tuple[TrafficPreset, ...]:
    """Return the presets in `folder`, by default the bundled ones.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field.
    """
    return read_records(folder or catalog_dir() / "traffic", TrafficPreset)
