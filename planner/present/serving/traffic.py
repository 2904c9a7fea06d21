"""Traffic and latency targets in words."""

from typing import Final

from planner.present import format as fmt
from planner.serving.targets import LATENCY_TITLES, Goodput, Latency, LatencyTarget, Targets
from planner.serving.traffic import (
    ConcurrentClients,
    FixedLength,
    Lengths,
    LogNormalLength,
    RandomArrivals,
    Traffic,
)

LATENCY_HEADERS: Final[dict[Latency, str]] = {
    "ttft": "First token",
    "itl": "Between tokens",
    "tpot": "Per token",
    "e2e": "End to end",
}
"""Short titles of the times of a request, for the columns of a table."""
_MINUTES_FROM: Final = 300.0
"""Seconds from which a limit is given in minutes."""


def traffic_sentence(traffic: Traffic) -> str:
    """Return the traffic as a phrase: `4 requests/s, prompts of 1,500 tokens, answers of 300`."""
    parts = [arrivals_phrase(traffic), f"prompts of {_length_phrase(traffic.input, 'tokens')}"]
    parts.append(f"answers of {_length_phrase(traffic.output)}")
    if traffic.prefixes is not None:
        count = fmt.plural(traffic.prefixes.prefixes, "shared prefix")
        share = "" if traffic.prefixes.share == 1 else f" in {fmt.percent(traffic.prefixes.share)} of them"
        parts.append(f"{count} of {fmt.integer(traffic.prefixes.tokens)} tokens{share}")
    if traffic.sessions is not None:
        parts.append(f"{fmt.plain(traffic.sessions.turns)} turns in each conversation")
    return ", ".join(parts)


def trace_sentence(traffic: Traffic, name: str, simulated: int) -> str:
    """Return the traffic of a trace file as a phrase: `the first 2,000 of 8,819 requests of chat.csv, 2 requests/s`."""
    number = 0 if traffic.trace is None else len(traffic.trace.arrival_seconds)
    requests = fmt.plural(number, "request")
    told = f"the first {fmt.integer(simulated)} of {requests}" if number > simulated else requests
    return f"{told} of {name}, {arrivals_phrase(traffic)}"


def arrivals_phrase(traffic: Traffic) -> str:
    """Return how requests arrive: `4 requests/s`, `32 clients at once`."""
    arrivals, rate = traffic.arrivals, traffic.requests_per_second
    if isinstance(arrivals, ConcurrentClients):
        pause = f", {fmt.duration(arrivals.think_seconds)} apart" if arrivals.think_seconds else ""
        return f"{fmt.plural(arrivals.clients, 'client')} at once{pause}"
    if rate is None:
        return "all requests at the same moment"
    bursts = ""
    if isinstance(arrivals, RandomArrivals) and arrivals.burstiness != 1:
        bursts = " in bursts" if arrivals.burstiness < 1 else " evenly spread"
    busiest = " in the busiest hour" if arrivals.kind == "daily" else ""
    return f"{rate_text(rate)}{bursts}{busiest}"


def rate_text(requests_per_second: float) -> str:
    """Return a rate of requests in the unit in which it is not below one: `4 requests/s`, `12 requests/min`."""
    for seconds, unit in ((1, "s"), (60, "min"), (3_600, "h")):
        if requests_per_second * seconds >= 1:
            return f"{fmt.plain(requests_per_second * seconds)} requests/{unit}"
    return f"{fmt.plain(requests_per_second * 86_400)} requests/day"


def _length_phrase(lengths: Lengths, unit: str = "") -> str:
    unit = f" {unit}" if unit else ""
    if isinstance(lengths, FixedLength):
        return f"{fmt.integer(lengths.tokens)}{unit}"
    if isinstance(lengths, LogNormalLength):
        median, tenth = round(lengths.median_tokens), round(lengths.p90_tokens)
        return f"{fmt.integer(median)}{unit} (one in ten over {fmt.integer(tenth)})"
    return f"the trace's numbers of{unit or ' tokens'}"


def target_text(target: LatencyTarget) -> str:
    """Return a target as a phrase: `p95 time to first token ≤ 1 s`."""
    return f"{target.title} ≤ {limit_text(target.seconds)}"


def limit_text(seconds: float) -> str:
    """Return a limit in the unit in which people give it: `50 ms`, `1.5 s`."""
    value, unit = (seconds * 1_000, "ms") if seconds < 1 else (seconds, "s")
    if seconds >= _MINUTES_FROM:
        value, unit = seconds / 60, "min"
    return f"{fmt.plain(value)}{fmt.THIN}{unit}"


def targets_phrase(targets: Targets) -> str:
    """Return all targets as a phrase, or that there are none."""
    parts = [target_text(target) for target in targets.limits]
    if targets.goodput is not None:
        parts.append(goodput_text(targets.goodput))
    return fmt.listing(tuple(parts)) or "no targets"


def targets_summary(targets: Targets) -> str:
    """Return the limits of targets in a few words: `first token ≤ 1 s, per token ≤ 50 ms`."""
    texts = (f"{LATENCY_HEADERS[limit.latency].lower()} ≤ {limit_text(limit.seconds)}" for limit in targets.limits)
    return ", ".join(texts) or "no targets"


def goodput_text(goodput: Goodput) -> str:
    """Return a goodput target as a phrase: `99 % of the requests with a first token within 1 s`."""
    limits: tuple[tuple[Latency, float | None], ...] = (
        ("ttft", goodput.ttft_seconds),
        ("tpot", goodput.tpot_seconds),
        ("e2e", goodput.e2e_seconds),
    )
    texts = tuple(f"a {LATENCY_TITLES[name]} of {limit_text(limit)}" for name, limit in limits if limit is not None)
    return f"{fmt.percent(goodput.share)} of the requests within {fmt.listing(texts)}"
