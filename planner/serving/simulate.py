"""Simulation of requests on the replicas of a deployment, with the ranges of its percentiles."""

from collections.abc import Iterator, Sequence
from math import exp, hypot, inf, log, sqrt
from statistics import fmean, variance
from typing import Final

from planner.base import Stop
from planner.performance.inference.steps import AS_ESTIMATED, StepScale
from planner.serving.cluster import SimulatedRun, make_replica, run_disaggregated, serve, step_times
from planner.serving.deployment import Deployment
from planner.serving.replica import Replica
from planner.serving.requests import NEVER, Requests, draw_requests
from planner.serving.result import (
    PERCENTS,
    CacheUse,
    DurationCounts,
    GoodputResult,
    LatencyTable,
    MinuteInDetail,
    Percentile,
    RequestBar,
    ServingLimit,
    ServingSimulation,
    TargetResult,
)
from planner.serving.targets import Goodput, Latency, LatencyTarget, Targets
from planner.serving.traffic import Traffic

DEFAULT_REQUESTS: Final = 2_000
"""Requests of a simulation unless another number is asked for."""
_WARM_UP: Final = 0.1
"""Share of the requests, first to arrive, that percentiles leave out unless the traffic is a trace."""
_MINUTE: Final = 60.0
_MOST_BARS: Final = 400
LEAST_FACTORS: Final[dict[Latency, float]] = {"tpot": 1.3, "itl": 1.3, "e2e": 1.3}
"""Factors by which times differ from those of engines at least, one case in ten beyond each end: the 80th percentile of
the errors of systems that were left out. That of the time to the first token is the scheduler's.

**Source**: benchmarks/serving_accuracy.py, "per token", "those of the other systems": 1.29 to 1.30 (three engines on
H100, H200, B200, B300 and GB200; ai-dynamo/aiconfigurator@095f58a). A time to the end is mostly time between tokens.
"""
_BATCHES: Final = 20
_NINE_TENTHS: Final = 1.2816
"""Standard deviations beyond which one case in ten lies."""
_UNDERWAY_SHARE: Final = 0.05
_IDLE: Final = 0.05
"""Share of the time in which replicas work, up to which they are idle."""
_LONG_WAIT: Final = 0.1
"""Share of a request's time that it waits for admission, from which the queue is what holds it up."""


def simulate_traffic(
    deployment: Deployment,
    traffic: Traffic,
    targets: Targets | None = None,
    *,
    requests: int = DEFAULT_REQUESTS,
    seed: int = 0,
    ranges: bool = True,
    detail: bool = True,
    stop: Stop = lambda: False,
) -> ServingSimulation | None:
    """Return the simulated service of `traffic` on `deployment`, or None as soon as `stop` returns true.

    The same `seed` gives the same result. With `ranges` the run is repeated with shorter and longer steps, which shows
    the error of the model; without, ranges are those of the sample. With `detail` the result has one minute in detail.
    """
    central = run_once(deployment, traffic, requests, seed, AS_ESTIMATED, detail=detail, stop=stop)
    if central is None:
        return None
    figures = _Figures(central, traffic)
    faster = slower = figures
    if ranges:
        errors = deployment.errors
        quick = run_once(
            deployment, traffic, requests, seed, StepScale(1 / errors.decoding, 1 / errors.prompts), stop=stop
        )
        slow = run_once(deployment, traffic, requests, seed, StepScale(errors.decoding, errors.prompts), stop=stop)
        if quick is None or slow is None:
            return None
        faster, slower = _Figures(quick, traffic), _Figures(slow, traffic)
    return _result(deployment, traffic, targets or Targets(), (faster, figures, slower), seed)


def run_once(
    deployment: Deployment,
    traffic: Traffic,
    number: int,
    seed: int,
    scale: StepScale = AS_ESTIMATED,
    *,
    detail: bool = False,
    stop: Stop = lambda: False,
) -> SimulatedRun | None:
    """Return one run of `number` requests, whose steps take as long as `scale` says; None once `stop` returns true."""
    requests = draw_requests(traffic, number, seed)
    times = step_times(deployment, requests, scale)
    recorded_window = _recorded_minute(requests) if detail else (inf, inf)
    if deployment.setup.disaggregation is not None:
        return run_disaggregated(deployment, requests, times, recorded_window, stop)
    replicas = [
        make_replica(deployment, index, times, requests, recorded_window) for index in range(deployment.replicas)
    ]
    if not serve(replicas, requests, deployment.setup.router, stop, deployment.expert_ranks):
        return None
    return SimulatedRun(requests, replicas, max((replica.clock for replica in replicas), default=0.0))


def _recorded_minute(requests: Requests) -> tuple[float, float]:
    times = [requests.arrival[number] for number in requests.initial]
    begin = max(0.0, times[len(times) // 2] - _MINUTE / 2)
    return begin, begin + _MINUTE


class _Figures:
    """Times of the requests of a run that ended after the warm-up, in order of their arrival."""

    def __init__(self, run: SimulatedRun, traffic: Traffic) -> None:
        self.run, found = run, run.requests
        ended = sorted(run.ended, key=lambda number: found.arrival[number])
        skipped = 0 if traffic.arrivals.kind == "trace" else int(_WARM_UP * len(ended))
        self.warm_up, self.counted = skipped, ended[skipped:]
        self.ttft = [found.first[number] - found.arrival[number] for number in self.counted]
        self.e2e = [found.end[number] - found.arrival[number] for number in self.counted]
        self.tpot = [
            (found.end[number] - found.first[number]) / (found.output[number] - 1)
            for number in self.counted
            if found.output[number] > 1
        ]
        self.intervals = DurationCounts()
        for replica in run.replicas:
            self.intervals.include(replica.intervals)

    def of(self, latency: Latency) -> list[float]:
        """Return the values of one latency by request; the time between tokens has none by request."""
        return {"ttft": self.ttft, "tpot": self.tpot, "e2e": self.e2e}[latency]


def _result(
    deployment: Deployment, traffic: Traffic, targets: Targets, figures: tuple[_Figures, _Figures, _Figures], seed: int
) -> ServingSimulation:
    central = figures[1]
    run, answered = central.run, central.run.ended
    tables = tuple(_tables(figures, deployment.scheduling.first_token_factor))
    seconds = max(run.seconds, 1e-9)
    replicas = run.replicas
    busy = sum([replica.busy_seconds for replica in replicas])
    running = sum([run.requests.end[number] - run.requests.scheduled[number] for number in answered])
    saturated = _is_saturated(run, traffic)
    return ServingSimulation(
        requests=len(run.requests),
        warm_up_requests=central.warm_up,
        rejected=sum([len(replica.rejected) for replica in replicas]),
        seconds=run.seconds,
        replicas=len(replicas),
        cards=len(replicas) * deployment.cards_per_replica,
        offered_requests_per_second=traffic.requests_per_second,
        requests_per_second=len(answered) / seconds,
        output_tokens_per_second=sum([run.requests.output[number] for number in answered]) / seconds,
        input_tokens_per_second=sum([run.requests.prompt[number] for number in answered]) / seconds,
        latencies=tables,
        targets=tuple(_target_result(target, tables) for target in targets.limits),
        goodput=None if targets.goodput is None else _goodput(figures, targets.goodput),
        cache=_cache_use(deployment, run),
        busy_fraction=busy / (len(replicas) * seconds),
        prompt_fraction=sum([replica.prompt_seconds for replica in replicas]) / (len(replicas) * seconds),
        mean_running=running / busy if busy else 0.0,
        limit=_limit(run, busy),
        saturated=saturated,
        minute=_minute(run),
        seed=seed,
        notes=tuple(_notes(deployment, run)),
    )


def _tables(figures: tuple[_Figures, _Figures, _Figures], first_token: float) -> Iterator[LatencyTable]:
    low, central, high = figures
    # Without runs of other speeds the error of the model is left out.
    factors = {"ttft": first_token, **LEAST_FACTORS}
    if low is central:
        factors = dict.fromkeys(factors, 1.0)
    latency: Latency
    for latency in ("ttft", "tpot", "e2e"):
        values = central.of(latency)
        if values:
            yield _table(latency, low.of(latency), values, high.of(latency), factors[latency])
    intervals = central.intervals
    if intervals.mean is not None:
        yield _interval_table(low.intervals, intervals, high.intervals, factors["itl"])


def _table(latency: Latency, low: list[float], values: list[float], high: list[float], least: float) -> LatencyTable:
    mean, deviation = fmean(values), sqrt(batch_variance(values))
    inflation = _error_inflation(values)
    low, ordered, high = sorted(low), sorted(values), sorted(high)
    rows = []
    for percent in PERCENTS:
        value = _percentile_value(ordered, percent)
        shift = _NINE_TENTHS * sqrt(percent * (100 - percent) / len(ordered)) * inflation
        begin, end = _percentile_value(ordered, percent - shift), _percentile_value(ordered, percent + shift)
        rows.append(
            _percentile(
                percent, value, (begin, end), (_percentile_value(low, percent), _percentile_value(high, percent)), least
            )
        )
    half = _NINE_TENTHS * deviation
    whole = _percentile(0.0, mean, (mean - half, mean + half), (fmean(low), fmean(high)), least)
    return LatencyTable(
        latency=latency,
        number=len(values),
        mean_seconds=mean,
        low_mean_seconds=whole.low_seconds,
        high_mean_seconds=whole.high_seconds,
        percentiles=tuple(rows),
    )


def _interval_table(low: DurationCounts, values: DurationCounts, high: DurationCounts, factor: float) -> LatencyTable:
    """Return the table of the time between tokens, whose sampling error is negligible."""
    rows = []
    columns = [counts.percentiles(PERCENTS) for counts in (low, values, high)]
    for percent, least, value, most in zip(PERCENTS, *columns, strict=True):
        rows.append(_percentile(percent, value, (value, value), (least, most), factor))
    means = [counts.mean or 0.0 for counts in (low, values, high)]
    whole = _percentile(0.0, means[1], (means[1], means[1]), (means[0], means[2]), factor)
    return LatencyTable(
        latency="itl",
        number=round(values.number),
        mean_seconds=means[1],
        low_mean_seconds=whole.low_seconds,
        high_mean_seconds=whole.high_seconds,
        percentiles=tuple(rows),
    )


def _percentile(
    percent: float, value: float, sampling: tuple[float, float], model: tuple[float, float], least: float
) -> Percentile:
    """Return a percentile whose range has both errors, independent of each other: squares of relative errors add up.

    `model` are its values with shorter and longer steps, which differ from it by the factor `least` at least.
    """
    begin, end = min(sampling[0], value), max(sampling[1], value)
    return Percentile(
        percent,
        value,
        value / _combined_factor(_ratio(value, begin), max(least, _ratio(value, min(model)))),
        value * _combined_factor(_ratio(end, value), max(least, _ratio(max(model), value))),
        begin,
        end,
    )


def _ratio(more: float, less: float) -> float:
    """Return the ratio of two times, at least 1; 1 if one is zero."""
    return max(1.0, more / less) if less > 0 else 1.0


def _combined_factor(first: float, second: float) -> float:
    """Return the factor of two independent factors: the root of the sum of the squares of their logarithms."""
    return exp(hypot(log(first), log(second)))


def _percentile_value(ordered: list[float], percent: float) -> float:
    """Return the percentile of sorted values, linear between two of them."""
    place = min(max(percent / 100, 0.0), 1.0) * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def batch_variance(values: Sequence[float]) -> float:
    """Return the variance of the mean of consecutive values, which depend on their neighbours.

    **Formula**: variance of the means of 20 batches ÷ 20 (batch means).

    **Source**: Law and Kelton, Simulation Modeling and Analysis, chapter 9.
    """
    size = len(values) // _BATCHES
    if size < 2:
        return variance(values) / len(values) if len(values) > 1 else 0.0
    means = [fmean(values[place * size : (place + 1) * size]) for place in range(_BATCHES)]
    return variance(means) / _BATCHES


def _error_inflation(values: Sequence[float]) -> float:
    """Return the factor by which autocorrelation widens the error of a mean, at least 1."""
    if len(values) < 2:
        return 1.0
    independent = variance(values) / len(values)
    return max(1.0, sqrt(batch_variance(values) / independent)) if independent > 0 else 1.0


def _target_result(target: LatencyTarget, tables: Sequence[LatencyTable]) -> TargetResult:
    table = next((table for table in tables if table.latency == target.latency), None)
    if table is None:
        return TargetResult(target=target, seconds=0.0, low_seconds=0.0, high_seconds=0.0, holds=True, surely=True)
    if target.percentile is None:
        seconds, low, high = table.mean_seconds, table.low_mean_seconds, table.high_mean_seconds
    else:
        row = table.percentile(target.percentile)
        seconds, low, high = row.seconds, row.low_seconds, row.high_seconds
    holds = seconds <= target.seconds
    return TargetResult(
        target=target,
        seconds=seconds,
        low_seconds=low,
        high_seconds=high,
        holds=holds,
        surely=high <= target.seconds,
    )


def _goodput(figures: tuple[_Figures, _Figures, _Figures], wanted: Goodput) -> GoodputResult:
    low, share, high = (_good_share(each, wanted) for each in figures)
    central = figures[1]
    sampling = _NINE_TENTHS * sqrt(share * (1 - share) / max(1, len(central.counted)))
    return GoodputResult(
        share=share,
        low_share=max(0.0, min(high, share - sampling)),
        high_share=min(1.0, max(low, share + sampling)),
        holds=share >= wanted.share,
        requests_per_second=share * len(central.run.ended) / max(central.run.seconds, 1e-9),
    )


def _good_share(figures: _Figures, wanted: Goodput) -> float:
    found, good = figures.run.requests, 0
    columns = (found.arrival, found.first, found.end, found.output)
    for number in figures.counted:
        arrival, first, end, output = (column[number] for column in columns)
        between = (end - first) / (output - 1) if output > 1 else 0.0
        good += (
            (wanted.ttft_seconds is None or first - arrival <= wanted.ttft_seconds)
            and (wanted.tpot_seconds is None or between <= wanted.tpot_seconds)
            and (wanted.e2e_seconds is None or end - arrival <= wanted.e2e_seconds)
        )
    return good / len(figures.counted) if figures.counted else 1.0


def _is_saturated(run: SimulatedRun, traffic: Traffic) -> bool:
    """Return whether requests arrive faster than they are answered: more wait at the end than the sample explains."""
    requests = run.requests
    if traffic.arrivals.kind == "clients" or len(requests) < _BATCHES:
        return False
    last = max(requests.arrival)
    waiting = sum(
        [
            scheduled > last
            for scheduled, arrival in zip(requests.scheduled, requests.arrival, strict=True)
            if arrival >= 0
        ]
    )
    if waiting <= _UNDERWAY_SHARE * len(requests):
        return False
    queue = run.queue_seconds
    half = len(queue) // 2
    return fmean(queue[half:]) > 2 * fmean(queue[:half])


def _cache_use(deployment: Deployment, run: SimulatedRun) -> CacheUse:
    capacity = deployment.cache_tokens
    prompts = max(1, sum(run.requests.prompt))
    shares = [
        (replica.block_seconds / max(run.seconds, 1e-9) / replica.capacity, replica.most_blocks / replica.capacity)
        for replica in run.replicas
        if isinstance(replica, Replica) and deployment.cache_blocks
    ]
    return CacheUse(
        capacity_tokens=None if capacity is None else capacity * len(run.replicas),
        mean_fraction=fmean([mean for mean, _ in shares]) if shares else None,
        highest_fraction=max([most for _, most in shares]) if shares else None,
        preemptions=sum([len(replica.preemptions) for replica in run.replicas]),
        prefix_hit_fraction=sum(run.requests.cached) / prompts,
        ram_hit_fraction=sum([each.fetched_tokens for each in run.replicas if isinstance(each, Replica)]) / prompts,
    )


def _limit(run: SimulatedRun, busy: float) -> ServingLimit:
    """Return the main limit of the service: the reason for a long queue, else the larger part of the work."""
    requests = run.requests
    waits = run.queue_seconds
    whole = sum([requests.end[number] - requests.arrival[number] for number in run.ended])
    if not waits or busy < _IDLE * run.seconds * len(run.replicas):
        return "idle"
    if sum(waits) > _LONG_WAIT * whole:
        if any(replica.lacked_room or replica.preemptions for replica in run.replicas):
            return "cache"
        if any(replica.was_full for replica in run.replicas):
            return "sequences"
    prompts = sum([replica.prompt_seconds for replica in run.replicas])
    return "prompts" if prompts > busy / 2 else "decoding"


def _minute(run: SimulatedRun) -> MinuteInDetail | None:
    recorded_window = run.replicas[0].recorded_window
    if recorded_window[0] == inf:
        return None
    requests, (begin, end) = run.requests, recorded_window
    lost: dict[int, list[float]] = {}
    moments = []
    for replica in run.replicas:
        for seconds, number in replica.preemptions:
            lost.setdefault(number, []).append(seconds)
        moments += replica.moments
    shown = [
        number
        for number in range(len(requests))
        if 0 <= requests.arrival[number] < end and (requests.end[number] == NEVER or requests.end[number] >= begin)
    ][:_MOST_BARS]
    bars = tuple(
        RequestBar(
            number,
            requests.replica[number],
            requests.prompt[number],
            requests.output[number],
            requests.arrival[number],
            _known(requests.scheduled[number]),
            _known(requests.first[number]),
            _known(requests.end[number]),
            tuple(lost.get(number, ())),
        )
        for number in shown
    )
    moments.sort(key=lambda moment: moment.seconds)
    return MinuteInDetail(begin_seconds=begin, end_seconds=end, requests=bars, moments=tuple(moments))


def _known(time: float) -> float | None:
    return None if time == NEVER else time


def _notes(deployment: Deployment, run: SimulatedRun) -> Iterator[str]:
    rejected = sum([len(replica.rejected) for replica in run.replicas])
    if rejected:
        yield f"{rejected:,} requests are longer than the KV cache of a replica and were rejected."
    if deployment.served.split.stages > 1:
        yield "Pipeline stages work on equal parts of the running requests."
    if deployment.served.draft is not None:
        tokens = deployment.served.tokens_per_step
        yield f"Each check of drafts yields {tokens:.2f} tokens on average, between which its time is shared equally."
    if deployment.expert_ranks > 1:
        yield "Replicas that share experts take their steps together; each reads its part for the tokens of all."
