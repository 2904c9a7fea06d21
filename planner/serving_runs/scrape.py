"""A scrape of a server's metrics as a measured run: histograms, counters and the size of the KV cache."""

import math
from collections.abc import Iterable, Mapping
from typing import Final, cast

from planner.parsing import MetricSample
from planner.serving_runs.metrics import METRICS, EngineMetric, metrics_of
from planner.serving_runs.record import Distribution, MeasuredPercentile, ServingRun, SourceName, serving_run

_PERCENTS: Final = (50.0, 90.0, 95.0, 99.0)
_NAMES: Final = {metric.name: metric.engine for metric in METRICS}
_SUFFIXES: Final = ("_bucket", "_sum", "_count")
_COUNTED: Final = frozenset(
    (
        *("prompt_tokens_total", "answer_tokens_total", "preemptions", "prefix_query_tokens", "prefix_hit_tokens"),
        *("completed_requests", "failed_requests", "cache_tokens", "cache_block_tokens"),
        *("cache_bytes", "weight_bytes", "graph_bytes"),
    )
)
"""Fields that are whole numbers."""
_EMPTY: Final = frozenset(("", "None", "null", "nan"))
_CLIENTS: Final = "metrics do not say what clients sent"
_DURATION: Final = "a scrape has no duration"
_NOT_IN_METRICS: Final = {
    "request_rate_per_s": _CLIENTS,
    "concurrency": _CLIENTS,
    "duration_seconds": _DURATION,
    "requests_per_s": _DURATION,
    "output_tokens_per_s": _DURATION,
    "total_tokens_per_s": _DURATION,
    "cache_tokens": "the metrics state no size of the KV cache",
}
"""Reasons why a scrape does not state a field, whatever the server."""
_LATENCIES: Final = ("first_token", "inter_token", "output_token", "end_to_end", "queue_time")
_SINCE_START: Final = "Latencies and counts are since the server's start, warm-up included."


def engine_of_scrape(samples: Iterable[MetricSample]) -> str | None:
    """Return the server, by its program's name in plans, whose metrics `samples` are; None if it is none."""
    for sample in samples:
        engine = _NAMES.get(_base_name(sample.name))
        if engine is not None:
            return engine
    return None


def run_of_scrape(samples: tuple[MetricSample, ...], earlier: tuple[MetricSample, ...] = ()) -> ServingRun | None:
    """Return the measured run in a scrape of a server, None if it is of no server that is known.

    With an `earlier` scrape of the same server, histograms and counters are those of the time between both. Replicas
    of one server are added up.

    **Formula**: percentiles are those of Prometheus' `histogram_quantile`: linear within the bucket, whose ends are
    stated beside them; in the last bucket, which has no end, they are left out.
    """
    engine = engine_of_scrape(samples)
    if engine is None:
        return None
    values: dict[str, object] = {"engine": engine}
    for metric in metrics_of(engine):
        found = None if metric.field in values else _metric_value(metric, samples, earlier)
        if found is not None:
            values[metric.field] = found
    blocks, each = values.get("cache_blocks"), values.get("cache_block_tokens")
    if "cache_tokens" not in values and isinstance(blocks, int) and isinstance(each, int):
        values["cache_tokens"] = blocks * each
    reasons = dict(_NOT_IN_METRICS)
    if all(metric.kind != "histogram" for metric in metrics_of(engine)):
        reasons |= dict.fromkeys(_LATENCIES, "the server's metrics have no histograms")
    models = {sample.labels["model_name"] for sample in samples if sample.labels.get("model_name")}
    if len(models) == 1:
        values["model"] = models.pop()
    elif models:
        reasons["model"] = f"the scrape has {len(models)} models, whose requests are added up"
    kept = {name: value for name, value in values.items() if name in ServingRun.model_fields}
    return serving_run(cast("SourceName", f"{engine}-metrics"), kept, reasons, () if earlier else (_SINCE_START,))


def _base_name(name: str) -> str:
    """Return the name of a metric without the ending of a histogram's parts."""
    ending = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(ending)


def _metric_value(
    metric: EngineMetric, samples: tuple[MetricSample, ...], earlier: tuple[MetricSample, ...]
) -> object | None:
    """Return the value of `metric` in the unit of its field, None if the scrape does not have it."""
    if metric.kind == "histogram":
        return _histogram(metric, samples, earlier)
    own = [sample for sample in samples if sample.name == metric.name]
    if not own:
        return None
    if metric.kind == "label":
        return _label_value(metric, own)
    if metric.kind == "counter":
        before = sum(sample.value for sample in earlier if sample.name == metric.name)
        total: float = max(sum(sample.value for sample in own) - before, 0.0)
    else:
        # Ranks of one replica state the same of themselves: the first is that of each.
        total = own[0].value
    scaled = metric.scale * total
    return round(scaled) if metric.field in _COUNTED else scaled


def _label_value(metric: EngineMetric, own: list[MetricSample]) -> object | None:
    """Return what a label states; capacities of several replicas are added up."""
    texts = [sample.labels.get(metric.label, "") for sample in own]
    stated = [text for text in texts if text not in _EMPTY]
    if not stated:
        return None
    if metric.field == "cache_format":
        return stated[0]
    try:
        numbers = [float(text) for text in stated]
    except ValueError:
        return None
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        return None
    if metric.field == "memory_fraction":
        return numbers[0]
    return round(numbers[0] if metric.field == "cache_block_tokens" else sum(numbers))


def _histogram(
    metric: EngineMetric, samples: tuple[MetricSample, ...], earlier: tuple[MetricSample, ...]
) -> Distribution | None:
    """Return the distribution of a histogram, all label sets added up; None without a count."""
    counts = _buckets(metric.name, samples)
    before = _buckets(metric.name, earlier)
    total = _sum_of(f"{metric.name}_sum", samples) - _sum_of(f"{metric.name}_sum", earlier)
    number = _sum_of(f"{metric.name}_count", samples) - _sum_of(f"{metric.name}_count", earlier)
    if number < 1:
        return None
    grown = {end: count - before.get(end, 0.0) for end, count in counts.items()}
    ends = sorted(grown)
    percentiles = [found for percent in _PERCENTS if (found := _percentile(percent, ends, grown)) is not None]
    return Distribution(mean=total / number, percentiles=tuple(percentiles), count=round(number))


def _buckets(name: str, samples: tuple[MetricSample, ...]) -> dict[float, float]:
    """Return the cumulative counts of a histogram by the end of the bucket, as the scrape states them."""
    counts: dict[float, float] = {}
    for sample in samples:
        if sample.name != f"{name}_bucket":
            continue
        try:
            end = float(sample.labels.get("le", ""))
        except ValueError:
            continue
        counts[end] = counts.get(end, 0.0) + sample.value
    return counts


def _sum_of(name: str, samples: tuple[MetricSample, ...]) -> float:
    return sum(sample.value for sample in samples if sample.name == name)


def _percentile(percent: float, ends: list[float], counts: Mapping[float, float]) -> MeasuredPercentile | None:
    """Return a percentile of a histogram with its bucket, None in a bucket without an end."""
    if not ends or counts[ends[-1]] <= 0:
        return None
    rank = percent / 100 * counts[ends[-1]]
    place = next(place for place, end in enumerate(ends) if counts[end] >= rank)
    end, low, below = ends[place], 0.0, 0.0
    if place:
        low, below = ends[place - 1], counts[ends[place - 1]]
    if math.isinf(end):
        return None
    value = low + (end - low) * (rank - below) / (counts[end] - below)
    return MeasuredPercentile(percent=percent, value=value, low=low, high=end)
