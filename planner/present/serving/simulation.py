"""A simulated service as a sentence with its targets, percentiles and limits, alone or beside a measured run."""

from typing import Final, Literal, NamedTuple

from planner.plan.serving.measured import MeasuredComparison, MeasuredFigure
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.serving.traffic import LATENCY_HEADERS, goodput_text, limit_text, target_text, traffic_sentence
from planner.serving.result import (
    GoodputResult,
    LatencyTable,
    RatePoint,
    ServingLimit,
    ServingSimulation,
    TargetResult,
)
from planner.serving.targets import Goodput, Latency, LatencyTarget, Targets
from planner.workload.software.registry import SOFTWARE

Outcome = Literal["yes", "probably", "probably-not", "no"]
"""Whether a target is met: over the whole range, in the estimate, in a part of the range, or nowhere in it."""
OUTCOME_WORDS: Final[dict[Outcome, str]] = {
    "yes": "met",
    "probably": "probably met",
    "probably-not": "probably missed",
    "no": "missed",
}
_LIMITS: Final[dict[ServingLimit, str]] = {
    "prompts": "Limited by prompts, which are computed while other requests wait for their next token.",
    "decoding": "Limited by decoding: each step reads the weights and the KV cache of all running requests.",
    "cache": "Limited by the KV cache: requests wait until it has room.",
    "sequences": "Limited by the number of requests that the program runs at once.",
    "idle": "The GPUs wait for requests most of the time.",
}
_MILLISECONDS: Final = 0.001
_WIDE: Final = 20.0
"""Factor from which the ends of a range have units of their own."""


class TargetRow(NamedTuple):
    """A target with the simulated figure, its range, and whether it is met."""

    title: str
    figure: str
    outcome: Outcome

    @property
    def word(self) -> str:
        """Return whether the target is met, in words."""
        return OUTCOME_WORDS[self.outcome]


def target_rows(simulation: ServingSimulation, goodput: Goodput | None = None) -> tuple[TargetRow, ...]:
    """Return a row for each target; `goodput` is that of the targets, if they have one."""
    rows = [
        TargetRow(
            target_text(result.target),
            latency_with_range(result.seconds, result.low_seconds, result.high_seconds),
            _outcome(result),
        )
        for result in simulation.targets
    ]
    if simulation.goodput is not None and goodput is not None:
        rows.append(_goodput_row(simulation.goodput, goodput))
    return tuple(rows)


def latency_with_range(seconds: float, low: float, high: float) -> str:
    """Return a latency with its range, `1.2 s (0.6 – 2.4)`; ends of a wide range have units of their own."""
    if high <= _WIDE * seconds and seconds <= _WIDE * low:
        return fmt.duration_with_range(seconds, low, high)
    return f"{fmt.duration(seconds)} ({fmt.duration(low)} – {fmt.duration(high)})"


def _outcome(result: TargetResult) -> Outcome:
    if result.holds:
        return "yes" if result.surely else "probably"
    return "probably-not" if result.low_seconds <= result.target.seconds else "no"


def _goodput_row(found: GoodputResult, wanted: Goodput) -> TargetRow:
    figure = f"{fmt.percent(found.share)} ({fmt.percent(found.low_share)} – {fmt.percent(found.high_share)})"
    if found.holds:
        outcome: Outcome = "yes" if found.low_share >= wanted.share else "probably"
    else:
        outcome = "probably-not" if found.high_share >= wanted.share else "no"
    return TargetRow(goodput_text(wanted), figure, outcome)


def latency_outcome(simulation: ServingSimulation, limit: LatencyTarget) -> Outcome | None:
    """Return the outcome of one target, or None if the simulation does not have it."""
    return next((_outcome(result) for result in simulation.targets if result.target == limit), None)


def simulation_outcome(simulation: ServingSimulation, goodput: Goodput | None = None) -> Outcome:
    """Return the worst outcome of all targets; `no` for a service that cannot keep up."""
    if simulation.unsupported is not None or simulation.saturated or simulation.rejected:
        return "no"
    order: tuple[Outcome, ...] = ("no", "probably-not", "probably", "yes")
    return min((row.outcome for row in target_rows(simulation, goodput)), key=order.index, default="yes")


def simulation_sentence(simulation: ServingSimulation, goodput: Goodput | None = None) -> str:
    """Return in one sentence whether the service meets its targets, or why it cannot be simulated."""
    if simulation.unsupported is not None:
        return f"This service cannot be simulated: {simulation.unsupported}."
    if simulation.rejected:
        of = fmt.integer(simulation.requests)
        return f"{fmt.integer(simulation.rejected)} of {of} requests need more KV cache than there is."
    if simulation.saturated:
        done = fmt.plain(simulation.requests_per_second)
        asked = simulation.offered_requests_per_second
        of = "" if asked is None else f" of {fmt.plain(asked)}"
        return f"It cannot keep up: it completes {done}{of} requests/s, so the queue grows without bound."
    rows = target_rows(simulation, goodput)
    if not rows:
        asked = simulation.offered_requests_per_second
        return "It keeps up with the load" + ("." if asked is None else f" of {fmt.plain(asked)} requests/s.")
    return {
        "yes": "All latency targets are met." if len(rows) > 1 else "The latency target is met.",
        "probably": "Probably meets its latency targets: at the upper end of its range, one is missed.",
        "probably-not": "It probably misses a latency target.",
        "no": "It misses a latency target.",
    }[simulation_outcome(simulation, goodput)]


def load_sentence(simulation: ServingSimulation) -> str:
    """Return what limits a service, how busy its cards are, and how full its KV cache gets."""
    parts = [_LIMITS[simulation.limit]]
    parts.append(
        f"GPUs busy {fmt.percent(simulation.busy_fraction)} of the time, with {fmt.plain(simulation.mean_running)} "
        "concurrent requests per replica on average."
    )
    cache = simulation.cache
    if cache is not None and cache.highest_fraction is not None:
        lost = ""
        if cache.preemptions:
            lost = f"; {fmt.plural(cache.preemptions, 'preemption')}, after which a request is computed again"
        parts.append(f"KV cache at most {fmt.percent(cache.highest_fraction)} full{lost}.")
    if cache is not None and cache.prefix_hit_fraction > 0:
        from_ram = f", {fmt.percent(cache.ram_hit_fraction)} of all from RAM" if cache.ram_hit_fraction else ""
        hits = fmt.percent(cache.prefix_hit_fraction)
        parts.append(f"{hits} of the prompt tokens come from the prefix cache{from_ram}.")
    return " ".join(parts)


def sample_sentence(simulation: ServingSimulation) -> str:
    """Return what was simulated, and what the ranges mean."""
    counted = simulation.requests - simulation.warm_up_requests
    return (
        f"{fmt.integer(counted)} requests in {fmt.duration(simulation.seconds)}, after a warm-up of "
        f"{fmt.integer(simulation.warm_up_requests)}. Ranges hold 8 of 10 measurements: they allow for errors of "
        "the estimated step times and of the sample."
    )


def percentile_columns() -> tuple[Column[LatencyTable], ...]:
    """Return the columns of a table with a row for each time of a request."""
    percents = (50.0, 95.0, 99.0)
    title: Column[LatencyTable] = text_column(
        "latency", "Time", lambda table: LATENCY_HEADERS[table.latency], width=20, about="Time of a request"
    )
    return (title, *(_percentile_column(percent) for percent in percents))


def _percentile_column(percent: float) -> Column[LatencyTable]:
    def text(table: LatencyTable) -> str:
        row = table.percentile(percent)
        return latency_with_range(row.seconds, row.low_seconds, row.high_seconds)

    return number_column(
        f"p{percent:g}",
        "Median" if percent == 50 else f"p{percent:g}",
        lambda table: table.percentile(percent).seconds,
        text=text,
        width=24,
        about=f"{percent:g} % of the requests take at most this",
        lower_is_better=True,
    )


def rate_columns(latencies: tuple[Latency, ...] = ("ttft", "itl")) -> tuple[Column[RatePoint], ...]:
    """Return the columns of a table of percentiles over the rate of requests."""
    return (
        number_column(
            "rate", "Requests/s", lambda point: point.requests_per_second, about="Requests that arrive per second"
        ),
        number_column(
            "done",
            "Completed/s",
            lambda point: point.simulation.requests_per_second,
            about="Requests that end per second",
        ),
        number_column(
            "tokens",
            "Output tokens/s",
            lambda point: point.simulation.output_tokens_per_second,
            width=14,
            about="Answered tokens per second, on all GPUs together",
        ),
        *(_rate_latency_column(name, percent) for name in latencies for percent in (50.0, 95.0)),
        text_column(
            "keeps_up",
            "Keeps up",
            lambda point: fmt.yes_no(not point.simulation.saturated),
            about="Whether it keeps up",
        ),
    )


def _rate_latency_column(name: Latency, percent: float) -> Column[RatePoint]:
    def seconds(point: RatePoint) -> float | None:
        table = point.simulation.latency(name)
        return None if table is None else table.percentile(percent).seconds

    which = "median" if percent == 50 else f"p{percent:g}"
    unit, per = ("ms", _MILLISECONDS) if name in ("itl", "tpot") else ("s", 1.0)
    return number_column(
        f"{name}-p{percent:g}",
        f"{LATENCY_HEADERS[name]}, {which}",
        seconds,
        unit=unit,
        per_unit=per,
        unknown=fmt.UNKNOWN,
        width=18,
        about=f"{percent:g} % of the times are at most this",
        lower_is_better=True,
    )


_SHOWN: tuple[Latency, ...] = ("ttft", "tpot", "e2e")


class LatencyRow(NamedTuple):
    """A time of the requests: its median, the percentile of the targets with its range, and the target."""

    title: str
    median: str
    percentile: str
    target: str
    outcome: Outcome | None


class ServingView(NamedTuple):
    """Contents of the card: the answer, its rows, and further sentences."""

    sentence: str
    outcome: Outcome
    percent: str = ""
    rows: tuple[LatencyRow, ...] = ()
    load: str = ""
    sample: str = ""

    @property
    def text(self) -> str:
        """Return the contents as lines of text."""
        rows = (
            ", ".join(
                filter(None, (f"{row.title}: median {row.median}", f"{self.percent} {row.percentile}", row.target))
            )
            for row in self.rows
        )
        return "\n".join(filter(None, (self.sentence, *rows, self.load, self.sample)))


def serving_view(simulation: ServingSimulation, targets: Targets, percent: float) -> ServingView:
    """Return the card of a simulated service; `percent` is the percentile of its targets."""
    sentence, outcome = simulation_sentence(simulation), simulation_outcome(simulation)
    if simulation.unsupported is not None:
        return ServingView(sentence, outcome)
    rows = [
        _latency_row(table, simulation, targets, percent)
        for name in _SHOWN
        if (table := simulation.latency(name)) is not None
    ]
    return ServingView(
        sentence, outcome, f"p{percent:g}", tuple(rows), load_sentence(simulation), sample_sentence(simulation)
    )


def _latency_row(table: LatencyTable, simulation: ServingSimulation, targets: Targets, percent: float) -> LatencyRow:
    row = table.percentile(percent)
    limit = next((limit for limit in targets.limits if limit.latency == table.latency), None)
    outcome = None if limit is None else latency_outcome(simulation, limit)
    target = "" if limit is None or outcome is None else f"≤ {limit_text(limit.seconds)}, {OUTCOME_WORDS[outcome]}"
    return LatencyRow(
        title=LATENCY_HEADERS[table.latency],
        median=fmt.duration(table.percentile(50.0).seconds),
        percentile=latency_with_range(row.seconds, row.low_seconds, row.high_seconds),
        target=target,
        outcome=outcome,
    )


def comparison_heading(found: MeasuredComparison) -> str:
    """Return what was measured: `Measured by a result file of vllm bench serve: 2 requests/s, prompts of …`."""
    return f"Measured by {found.run.title}: {traffic_sentence(found.traffic)}."


def comparison_verdict(found: MeasuredComparison) -> str:
    """Return how many of the measured latencies lie in the simulated ranges, and what may explain the others."""
    judged = [figure for figure in found.figures if figure.is_met is not None]
    if not judged:
        return "The file states no latency that is simulated."
    met = sum(figure.is_met is True for figure in judged)
    text = f"{met} of {len(judged)} measured latencies lie in the simulated range."
    reasons = "".join(f" {reason}" for reason in _reasons(found)) if met < len(judged) else ""
    return f"{text}{reasons}"


def _reasons(found: MeasuredComparison) -> list[str]:
    """Return features of the measured run that the simulation lacks."""
    run, simulation, reasons = found.run, found.simulation, []
    if run.failed_requests:
        reasons.append(f"{fmt.plural(run.failed_requests, 'request')} failed and are not in the measured latencies.")
    lost = 0 if simulation.cache is None else simulation.cache.preemptions
    if run.preemptions is not None and bool(run.preemptions) != bool(lost):
        reasons.append(
            f"The server preempted {fmt.plural(run.preemptions, 'request')}, the simulation {fmt.integer(lost)}."
        )
    if run.prefix_hit_tokens and simulation.cache is not None and not simulation.cache.prefix_hit_fraction:
        reasons.append("The server found prompt tokens in its prefix cache; --shared-prefix simulates that.")
    if simulation.saturated:
        reasons.append("The simulated service cannot keep up, so that its waits grow with the number of requests.")
    if run.engine is None:
        reasons.append("The file does not name its program.")
    elif run.engine != found.program:
        names = [SOFTWARE[name].title if name in SOFTWARE else name for name in (run.engine, found.program)]
        reasons.append(f"The server was {names[0]}, and {names[1]} is simulated.")
    return reasons


def measured_columns() -> tuple[Column[MeasuredFigure], ...]:
    """Return the columns of a table with a row for each measured figure."""
    figure: Column[MeasuredFigure] = text_column("figure", "Figure", _title, width=28, about="What was measured")
    measured: Column[MeasuredFigure] = number_column(
        "measured", "Measured", lambda row: row.measured, text=_measured_text, width=18, about="In the file"
    )
    simulated: Column[MeasuredFigure] = number_column(
        "simulated", "Simulated", lambda row: row.simulated, text=_simulated_text, width=26, about="With its range"
    )
    difference: Column[MeasuredFigure] = number_column(
        "difference",
        "Difference",
        lambda row: row.simulated / row.measured - 1 if row.measured else None,
        show=fmt.signed_percent,
        unknown="–",
        width=10,
        about="Simulated relative to measured",
        lower_is_better=None,
    )
    met: Column[MeasuredFigure] = text_column(
        "met", "In range", lambda row: "–" if row.is_met is None else fmt.yes_no(row.is_met), about="Within the range"
    )
    return figure, measured, simulated, difference, met


def _title(row: MeasuredFigure) -> str:
    return row.figure if row.latency is None else f"{LATENCY_HEADERS[row.latency]}, {row.figure}"


def _measured_text(row: MeasuredFigure) -> str:
    if row.latency is None:
        return fmt.plain(row.measured)
    return fmt.duration_with_range(row.measured, row.measured_low, row.measured_high)


def _simulated_text(row: MeasuredFigure) -> str:
    return (
        fmt.plain(row.simulated) if row.latency is None else fmt.duration_with_range(row.simulated, row.low, row.high)
    )
