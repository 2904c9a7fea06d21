"""Inference servers of a fleet: the size of their caches, tokens per second and latencies, as they measure them."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.parsing.metrics import MetricSample
from planner.serving_runs.metrics import METRICS, run_of_scrape
from planner.serving_runs.record import ServingRun

_ENDINGS: Final = ("", "_bucket", "_sum", "_count")
_OF_ENGINES: Final = frozenset(f"{metric.name}{ending}" for metric in METRICS for ending in _ENDINGS)
_NOW: Final = {metric.name: metric.field for metric in METRICS if metric.field in ("running", "waiting", "cache_usage")}


class FleetServer(NamedTuple):
    """An inference server: where it is scraped, its pod, what it measured, and its requests and cache use now.

    `run` holds its percentiles and counts of the last minutes; rates are in tokens per second, None if unknown.
    """

    instance: str
    pod: str
    run: ServingRun
    running: float | None = None
    waiting: float | None = None
    cache_usage_fraction: float | None = None
    output_tokens_per_s: float | None = None
    input_tokens_per_s: float | None = None


def read_servers(
    gauges: Iterable[MetricSample], growth: Iterable[MetricSample], growth_seconds: float
) -> tuple[FleetServer, ...]:
    """Return the inference servers in these samples.

    `growth` is by how much counters and histograms grew in `growth_seconds`. Without it, as of a single scrape, the
    latencies in `gauges` are since the server's start, and the rates are unknown.
    """
    by_server: dict[tuple[str, str], list[MetricSample]] = {}
    for sample in (*gauges, *growth):
        if sample.name in _OF_ENGINES:
            pod = sample.labels.get("exported_pod") or sample.labels.get("pod", "")
            by_server.setdefault((sample.labels.get("instance", ""), pod), []).append(sample)
    return tuple(
        _server(instance, pod, tuple(samples), growth_seconds) for (instance, pod), samples in sorted(by_server.items())
    )


def _server(instance: str, pod: str, samples: tuple[MetricSample, ...], seconds: float) -> FleetServer:
    run = run_of_scrape(samples)
    assert run is not None  # the names are those of an engine
    if seconds:
        run = run.replaced(notes=())  # that they are since the server's start, which growth is not
    now: dict[str, float] = {}
    for sample in samples:
        name = _NOW.get(sample.name)
        if name == "cache_usage":
            now[name] = max(sample.value, now.get(name, 0.0))
        elif name is not None:
            now[name] = now.get(name, 0.0) + sample.value

    def rate(total: int | None) -> float | None:
        return total / seconds if total is not None and seconds else None

    return FleetServer(
        instance,
        pod,
        run,
        now.get("running"),
        now.get("waiting"),
        now.get("cache_usage"),
        rate(run.answer_tokens_total),
        rate(run.prompt_tokens_total),
    )
