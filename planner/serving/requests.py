"""Requests drawn from traffic, in columns that a simulation fills with the times of each request."""

from collections.abc import Callable, Iterator
from math import exp, log
from random import Random
from typing import Final

from planner.serving.traffic import (
    CommonPrefix,
    ConcurrentClients,
    DailyArrivals,
    FixedLength,
    LogNormalLength,
    Sessions,
    TracedLength,
    Traffic,
    TrafficTrace,
)

NEVER: Final = -1.0
"""Time of what did not happen."""
_P90: Final = 1.2815515655446004
"""Standard deviations above the median that one value in ten exceeds."""


class Requests:
    """Requests as columns, in the order of their numbers: lengths, prefixes, and the times of each request.

    `followed_by` is the number of the request that the same client or session sends when this one has ended, after
    `pause` seconds, or -1.
    """

    def __init__(self) -> None:
        self.arrival: list[float] = []
        self.prompt: list[int] = []
        self.output: list[int] = []
        self.prefixes: list[tuple[CommonPrefix, ...]] = []
        self.session: list[int] = []
        self.followed_by: list[int] = []
        self.pause: list[float] = []
        self.scheduled: list[float] = []
        self.first: list[float] = []
        self.end: list[float] = []
        self.cached: list[int] = []
        self.replica: list[int] = []

    def __len__(self) -> int:
        return len(self.prompt)

    def add(
        self,
        arrival: float,
        prompt: int,
        output: int,
        prefixes: tuple[CommonPrefix, ...] = (),
        session: int = -1,
    ) -> int:
        """Add a request and return its number; `arrival` is `NEVER` for one that follows another."""
        self.arrival.append(arrival)
        self.prompt.append(prompt)
        self.output.append(output)
        self.prefixes.append(prefixes)
        self.session.append(session)
        self.followed_by.append(-1)
        self.pause.append(0.0)
        self.scheduled.append(NEVER)
        self.first.append(NEVER)
        self.end.append(NEVER)
        self.cached.append(0)
        self.replica.append(-1)
        return len(self.prompt) - 1

    @property
    def initial(self) -> list[int]:
        """Return the numbers of the requests whose arrival does not depend on others, in order of arrival."""
        return [number for number, time in enumerate(self.arrival) if time != NEVER]


def draw_requests(traffic: Traffic, number: int, seed: int) -> Requests:
    """Return `number` requests of `traffic`, the same ones for the same `seed`.

    A trace that replays its arrivals gives its first `number` requests.
    """
    arrivals = traffic.arrivals
    if isinstance(arrivals, ConcurrentClients):
        return _of_clients(traffic, arrivals, number, seed)
    if arrivals.kind == "trace":
        assert traffic.trace is not None
        return _of_trace(traffic.trace, arrivals.speed, number)
    rate = arrivals.highest_rate if isinstance(arrivals, DailyArrivals) else arrivals.requests_per_second
    times = _arrival_times(rate, arrivals.burstiness, Random(seed))
    if traffic.sessions is not None:
        return _of_sessions(traffic, traffic.sessions, times, number, seed)
    draws, found = _RequestSampler(traffic, seed), Requests()
    for _ in range(number):
        prompt, output, prefixes = draws.next_request()
        found.add(next(times), prompt, output, prefixes)
    return found


def _arrival_times(rate: float, burstiness: float, random: Random) -> Iterator[float]:
    """Yield times whose distances have a gamma distribution of shape `burstiness` and mean 1 / `rate`."""
    time, scale = 0.0, 1 / (rate * burstiness)
    while True:
        time += random.gammavariate(burstiness, scale)
        yield time


class _RequestSampler:
    """Sampler of the lengths and shared prefixes of requests.

    Lengths, beginnings and pauses have generators of their own, so that a change of one leaves the others as they are.
    """

    def __init__(self, traffic: Traffic, seed: int) -> None:
        self._input = _length_source(traffic.input, traffic.trace, "input", seed)
        self._output = _length_source(traffic.output, traffic.trace, "output", seed)
        self._prefixes, self._random = traffic.prefixes, Random(f"{seed} prefixes")
        self.pauses = Random(f"{seed} pauses")

    def next_request(self) -> tuple[int, int, tuple[CommonPrefix, ...]]:
        """Return the prompt tokens, output tokens and common beginnings of the next request."""
        prompt, shared = self._input(), self._prefixes
        if shared is None or self._random.random() >= shared.share:
            return prompt, self._output(), ()
        name = self._random.randrange(shared.prefixes)
        return max(prompt, shared.tokens + 1), self._output(), (CommonPrefix(name, shared.tokens),)


def _length_source(
    lengths: FixedLength | LogNormalLength | TracedLength, trace: TrafficTrace | None, column: str, seed: int
) -> Callable[[], int]:
    """Return a function that draws the next number of tokens."""
    if isinstance(lengths, FixedLength):
        return lambda: lengths.tokens
    if isinstance(lengths, TracedLength):
        assert trace is not None
        # Prompts and answers of a trace belong together: both columns are read at the same random places.
        values = trace.input_tokens if column == "input" else trace.output_tokens
        places = Random(f"{seed} trace")
        return lambda: values[places.randrange(len(values))]
    middle, most = log(lengths.median_tokens), lengths.most_tokens
    deviation, random = (log(lengths.p90_tokens) - middle) / _P90, Random(f"{seed} {column}")
    return lambda: max(1, min(most, round(exp(random.gauss(middle, deviation)))))


def _of_trace(trace: TrafficTrace, speed: float, number: int) -> Requests:
    found = Requests()
    begin = trace.arrival_seconds[0]
    for index in range(min(number, len(trace.arrival_seconds))):
        prompt = trace.input_tokens[index]
        shared = trace.beginnings[index] if trace.beginnings else ()
        found.add((trace.arrival_seconds[index] - begin) / speed, prompt, trace.output_tokens[index], shared)
    return found


def _of_clients(traffic: Traffic, clients: ConcurrentClients, number: int, seed: int) -> Requests:
    """Return `number` requests of concurrent clients, each of which waits for its answer before the next request."""
    draws, found = _RequestSampler(traffic, seed), Requests()
    for index in range(number):
        prompt, output, prefixes = draws.next_request()
        found.add(0.0 if index < clients.clients else NEVER, prompt, output, prefixes)
    for index in range(number):
        if index + clients.clients < number:
            found.followed_by[index] = index + clients.clients
        if clients.think_seconds:
            found.pause[index] = draws.pauses.expovariate(1 / clients.think_seconds)
    return found


def _of_sessions(traffic: Traffic, sessions: Sessions, times: Iterator[float], number: int, seed: int) -> Requests:
    """Return at least `number` requests in whole sessions, whose turns repeat all turns before them."""
    draws, found, session = _RequestSampler(traffic, seed), Requests(), 0
    last = 1 / sessions.turns
    while len(found) < number:
        prompt, output, shared = draws.next_request()
        before = found.add(next(times), prompt, output, shared, session)
        while draws.pauses.random() > last:
            context = found.prompt[before] + found.output[before]
            prompt, output, _ = draws.next_request()
            if sessions.most_tokens is not None and context + prompt + output > sessions.most_tokens:
                break
            own = (*shared, CommonPrefix(-1 - session, context))
            turn = found.add(NEVER, context + prompt, output, own, session)
            found.followed_by[before] = turn
            if sessions.think_seconds:
                found.pause[before] = draws.pauses.expovariate(1 / sessions.think_seconds)
            before = turn
        session += 1
    return found
