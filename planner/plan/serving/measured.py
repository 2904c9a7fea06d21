"""A measured serving run beside its simulation: the same traffic, and each latency, rate and capacity of both."""

from typing import Final

from planner.base import Spec
from planner.errors import SpecError
from planner.serving.result import ServingSimulation
from planner.serving.targets import Latency
from planner.serving.traffic import (
    Arrivals,
    ConcurrentClients,
    FixedLength,
    Lengths,
    LogNormalLength,
    RandomArrivals,
    Traffic,
)
from planner.serving_runs.record import Distribution, ServingRun

_MEDIAN, _P90 = 50.0, 90.0
_LATENCIES: Final[tuple[tuple[Latency, str], ...]] = (
    ("ttft", "first_token"),
    ("itl", "inter_token"),
    ("tpot", "output_token"),
    ("e2e", "end_to_end"),
)


class MeasuredFigure(Spec):
    """A figure of a measured run beside the simulated one, with the range of the latter where it has one.

    Latencies are in seconds. `measured_low` to `measured_high` is the bucket of a histogram in which a percentile lies.
    """

    latency: Latency | None = None
    """The time of a request; None for other figures."""
    figure: str
    """`mean`, a percentile such as `p95`, or the name of a rate or capacity."""
    measured: float
    measured_low: float
    measured_high: float
    simulated: float
    low: float | None = None
    high: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Return whether the measurement lies in the simulated range, None without a range."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured_high and self.measured_low <= self.high


class MeasuredComparison(Spec):
    """A measured run with the simulation of the same traffic."""

    run: ServingRun
    program: str
    """Program that is simulated, by its name in plans."""
    traffic: Traffic
    simulation: ServingSimulation
    figures: tuple[MeasuredFigure, ...]


def traffic_of_run(run: ServingRun) -> Traffic:
    """Return the traffic of a measured run: its clients or its rate, and its lengths.

    **Assumes** Poisson arrivals at a rate; lengths are log-normal where the source states their spread, else equal.

    Raises:
        SpecError: If the run does not say how many requests arrive, or how long they are.
    """
    return Traffic(
        arrivals=_arrivals(run),
        input=_lengths(run, "prompt_tokens", run.prompt_tokens, run.prompt_tokens_total),
        output=_lengths(run, "answer_tokens", run.answer_tokens, run.answer_tokens_total),
    )


def _arrivals(run: ServingRun) -> Arrivals:
    if run.request_rate_per_s:
        return RandomArrivals(requests_per_second=run.request_rate_per_s)
    if run.concurrency:
        return ConcurrentClients(clients=max(1, round(run.concurrency)))
    if run.requests_per_s:
        return RandomArrivals(requests_per_second=run.requests_per_s)
    reason = f"{run.title} does not say how many requests arrive"
    raise SpecError("--measured", reason, "Add --rate or --clients.")


def _lengths(run: ServingRun, field: str, tokens: Distribution | None, total: int | None) -> Lengths:
    mean = None if tokens is None else tokens.mean
    if mean is None and total is not None and run.completed_requests:
        mean = total / run.completed_requests
    median, tenth = (None if tokens is None else tokens.at(percent) for percent in (_MEDIAN, _P90))
    if median is not None and tenth is not None and tenth.value > median.value >= 1:
        return LogNormalLength(median_tokens=median.value, p90_tokens=tenth.value)
    if mean is None or mean < 0.5:
        option = "--input" if field == "prompt_tokens" else "--output"
        raise SpecError("--measured", f"{run.title} does not state the lengths: {run.reason(field)}", f"Add {option}.")
    return FixedLength(tokens=round(mean))


def compare_with_run(
    run: ServingRun, program: str, traffic: Traffic, simulation: ServingSimulation
) -> MeasuredComparison:
    """Return a measured run beside the simulation of its traffic in `program`."""
    figures: list[MeasuredFigure] = []
    for latency, field in _LATENCIES:
        measured, table = getattr(run, field), simulation.latency(latency)
        if measured is None or table is None:
            continue
        if measured.mean is not None:
            bounds = table.low_mean_seconds, table.high_mean_seconds
            figures.append(_figure("mean", measured.mean, table.mean_seconds, bounds, latency))
        for each in measured.percentiles:
            if 0 < each.percent < 100:
                row = table.percentile(each.percent)
                figures.append(
                    MeasuredFigure(
                        latency=latency,
                        figure=f"p{each.percent:g}",
                        measured=each.value,
                        measured_low=each.low,
                        measured_high=each.high,
                        simulated=row.seconds,
                        low=row.low_seconds,
                        high=row.high_seconds,
                    )
                )
    cache = simulation.cache
    others = (
        ("requests/s", run.requests_per_s, simulation.requests_per_second),
        ("output tokens/s", run.output_tokens_per_s, simulation.output_tokens_per_second),
        ("KV cache, tokens", run.cache_tokens, None if cache is None else cache.capacity_tokens),
    )
    figures += [_figure(name, one, other) for name, one, other in others if one is not None and other is not None]
    return MeasuredComparison(run=run, program=program, traffic=traffic, simulation=simulation, figures=tuple(figures))


def _figure(
    name: str,
    measured: float,
    simulated: float,
    bounds: tuple[float | None, float | None] = (None, None),
    latency: Latency | None = None,
) -> MeasuredFigure:
    return MeasuredFigure(
        latency=latency,
        figure=name,
        measured=measured,
        measured_low=measured,
        measured_high=measured,
        simulated=simulated,
        low=bounds[0],
        high=bounds[1],
    )
