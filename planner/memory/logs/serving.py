"""Reader of measured serving runs: what a scrape of a server's metrics, or a load generator's results, say of a plan.

Latencies in a scrape are over all that the server was sent since its start, so that no plan is compared with them.
"""

from collections.abc import Iterator
from typing import Final

from planner.errors import LogError
from planner.memory.logs.reading import (
    FigureName,
    LoggedAmount,
    LoggedFigure,
    LogLine,
    LogText,
    exact_amount,
    logged_amount,
)
from planner.memory.logs.vllm import GRAPHS
from planner.serving_runs.metrics import METRICS
from planner.serving_runs.read import serving_runs_in
from planner.serving_runs.record import ServingRun
from planner.storage import UnreadableFileError

METRIC_MARKS: Final = tuple(dict.fromkeys(metric.name for metric in METRICS))
RESULT_MARKS: Final = (
    '"mean_ttft_ms"', '"mean_e2el_ms"', '"mean_e2e_latency_ms"', '"time_to_first_token_ms"', '"time_to_first_token"',
    '"request_latency"',
)  # fmt: skip


def measured_runs(text: LogText, *, scraped: bool) -> tuple[ServingRun, ...]:
    """Return the serving runs that are all of `text`: those of a scrape, or of a load generator's results."""
    if not text.has(*(METRIC_MARKS if scraped else RESULT_MARKS)):
        return ()
    if scraped == (text.text.lstrip()[:1] == "{"):
        return ()
    try:
        return serving_runs_in(text.text)
    except (UnreadableFileError, LogError):
        return ()


def read_metric_amounts(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the bytes of weights, cache and CUDA graphs in a scrape; vLLM's metrics have none of these."""
    for run in measured_runs(text, scraped=True):
        line = _line_of(text, METRIC_MARKS)
        if run.weight_bytes:
            yield logged_amount(
                "model weights", exact_amount(run.weight_bytes), "weights of the model", line, term="weights"
            )
        if run.cache_bytes:
            meaning = "KV cache that the engine allocates"
            yield logged_amount(
                "cache pool", exact_amount(run.cache_bytes), meaning, line, term="kv_cache", sense="pool"
            )
        if run.graph_bytes:
            yield logged_amount(
                GRAPHS, exact_amount(run.graph_bytes), "graphs of launched kernels", line, term="framework_overhead"
            )


def read_metric_figures(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the size in tokens of the KV cache in a scrape."""
    for run in measured_runs(text, scraped=True):
        if run.cache_tokens:
            yield _figure("cache-tokens", run.cache_tokens, _line_of(text, METRIC_MARKS), run)


def read_result_figures(text: LogText) -> Iterator[LoggedFigure]:
    """Yield throughput, and mean latencies of each run in a load generator's results."""
    for run in measured_runs(text, scraped=False):
        line = _line_of(text, RESULT_MARKS)
        between = run.output_token or run.inter_token
        named: tuple[tuple[FigureName, float | None], ...] = (
            ("throughput", run.output_tokens_per_s),
            ("first-token", run.first_token.mean if run.first_token else None),
            ("output-token", between.mean if between else None),
            ("cache-tokens", run.cache_tokens),
        )
        for name, value in named:
            if value:
                yield _figure(name, value, line, run)


def _figure(name: FigureName, value: float, line: LogLine, run: ServingRun) -> LoggedFigure:
    """Return a figure of a run with the run's conditions; a number of requests follows from Little's law if unstated.

    **Formula**: requests = requests per second · mean seconds of one, at most those that were completed.
    """
    requests = run.concurrency
    if requests is None and run.requests_per_s and run.end_to_end and run.end_to_end.mean:
        requests = run.requests_per_s * run.end_to_end.mean
    if requests is not None and run.completed_requests:
        requests = min(requests, run.completed_requests)
    is_size = name == "cache-tokens"
    return LoggedFigure(
        name=name,
        value=value,
        low=value,
        high=value,
        line=line.number,
        text=line.shown,
        prompt_tokens=None if is_size else _mean(run, "prompt_tokens"),
        answer_tokens=None if is_size else _mean(run, "answer_tokens"),
        requests=None if is_size or requests is None else max(round(requests), 1),
        is_served=not is_size,
    )


def _mean(run: ServingRun, field: str) -> int | None:
    found = getattr(run, field)
    return None if found is None or found.mean is None else round(found.mean)


def _line_of(text: LogText, marks: tuple[str, ...]) -> LogLine:
    return next(text.lines_with(*marks))
