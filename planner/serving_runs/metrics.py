"""Metrics of inference servers, as data, and a scrape of them as a measured run: histograms, counters, cache size.

**Source**: vLLM 0.33 `v1/metrics/loggers.py` and `docs/usage/metrics.md`; SGLang 0.5.23
`srt/observability/metrics_collector.py`; llama.cpp `tools/server/server-task.cpp`; TensorRT-LLM 1.2
`tensorrt_llm/metrics/collector.py`.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, cast

from planner.parsing.metrics import MetricSample
from planner.serving_runs.record import (
    WHOLE_FIELDS,
    Distribution,
    MeasuredPercentile,
    ServingRun,
    SourceName,
    serving_run,
)
from planner.units import GIB

MetricKind = Literal["histogram", "counter", "gauge", "label"]


class EngineMetric(NamedTuple):
    """A metric of a server, the field of a measured run that it states, and how: value · `scale` is in our unit.

    A `label` metric states it in its label `label`. `until` names the version that replaced it, if any. Gauges of the
    moment, such as the requests that run, are no field of a run: they are for who watches the server.
    """

    engine: str
    name: str
    field: str
    kind: MetricKind
    scale: float = 1.0
    label: str = ""
    until: str = ""


_SGLANG_GB: Final = float(GIB)
"""SGLang prints GB and divides by 2³⁰ (`get_available_gpu_memory`)."""
METRICS: Final[tuple[EngineMetric, ...]] = (
    EngineMetric("vllm", "vllm:time_to_first_token_seconds", "first_token", "histogram"),
    EngineMetric("vllm", "vllm:inter_token_latency_seconds", "inter_token", "histogram"),
    EngineMetric("vllm", "vllm:time_per_output_token_seconds", "inter_token", "histogram", until="0.11"),
    EngineMetric("vllm", "vllm:request_time_per_output_token_seconds", "output_token", "histogram"),
    EngineMetric("vllm", "vllm:e2e_request_latency_seconds", "end_to_end", "histogram"),
    EngineMetric("vllm", "vllm:request_queue_time_seconds", "queue_time", "histogram"),
    EngineMetric("vllm", "vllm:request_prefill_time_seconds", "prefill_time", "histogram"),
    EngineMetric("vllm", "vllm:request_decode_time_seconds", "decode_time", "histogram"),
    EngineMetric("vllm", "vllm:request_prompt_tokens", "prompt_tokens", "histogram"),
    EngineMetric("vllm", "vllm:request_generation_tokens", "answer_tokens", "histogram"),
    EngineMetric("vllm", "vllm:prompt_tokens_total", "prompt_tokens_total", "counter"),
    EngineMetric("vllm", "vllm:generation_tokens_total", "answer_tokens_total", "counter"),
    EngineMetric("vllm", "vllm:num_preemptions_total", "preemptions", "counter"),
    EngineMetric("vllm", "vllm:prefix_cache_queries_total", "prefix_query_tokens", "counter"),
    EngineMetric("vllm", "vllm:prefix_cache_hits_total", "prefix_hit_tokens", "counter"),
    EngineMetric("vllm", "vllm:request_success_total", "completed_requests", "counter"),
    EngineMetric("vllm", "vllm:cache_config_info", "cache_tokens", "label", label="kv_cache_size_tokens"),
    EngineMetric("vllm", "vllm:cache_config_info", "cache_blocks", "label", label="num_gpu_blocks"),
    EngineMetric("vllm", "vllm:cache_config_info", "cache_block_tokens", "label", label="block_size"),
    EngineMetric("vllm", "vllm:cache_config_info", "memory_fraction", "label", label="gpu_memory_utilization"),
    EngineMetric("vllm", "vllm:cache_config_info", "cache_bytes", "label", label="kv_cache_memory_bytes"),
    EngineMetric("vllm", "vllm:cache_config_info", "cache_format", "label", label="cache_dtype"),
    EngineMetric("vllm", "vllm:num_requests_running", "running", "gauge"),
    EngineMetric("vllm", "vllm:num_requests_waiting", "waiting", "gauge"),
    EngineMetric("vllm", "vllm:kv_cache_usage_perc", "cache_usage", "gauge"),
    EngineMetric("vllm", "vllm:gpu_cache_usage_perc", "cache_usage", "gauge", until="0.9"),
    EngineMetric("sglang", "sglang:time_to_first_token_seconds", "first_token", "histogram"),
    EngineMetric("sglang", "sglang:inter_token_latency_seconds", "inter_token", "histogram"),
    EngineMetric("sglang", "sglang:request_time_per_output_token_seconds", "output_token", "histogram"),
    EngineMetric("sglang", "sglang:e2e_request_latency_seconds", "end_to_end", "histogram"),
    EngineMetric("sglang", "sglang:queue_time_seconds", "queue_time", "histogram"),
    EngineMetric("sglang", "sglang:prompt_tokens_histogram", "prompt_tokens", "histogram"),
    EngineMetric("sglang", "sglang:generation_tokens_histogram", "answer_tokens", "histogram"),
    EngineMetric("sglang", "sglang:prompt_tokens_total", "prompt_tokens_total", "counter"),
    EngineMetric("sglang", "sglang:generation_tokens_total", "answer_tokens_total", "counter"),
    EngineMetric("sglang", "sglang:num_retracted_requests_total", "preemptions", "counter"),
    EngineMetric("sglang", "sglang:cached_tokens_total", "prefix_hit_tokens", "counter"),
    EngineMetric("sglang", "sglang:num_requests_total", "completed_requests", "counter"),
    EngineMetric("sglang", "sglang:num_aborted_requests_total", "failed_requests", "counter"),
    EngineMetric("sglang", "sglang:max_total_num_tokens", "cache_tokens", "gauge"),
    EngineMetric("sglang", "sglang:page_size", "cache_block_tokens", "gauge"),
    EngineMetric("sglang", "sglang:kv_cache_memory_usage_gb", "cache_bytes", "gauge", _SGLANG_GB),
    EngineMetric("sglang", "sglang:weight_memory_usage_gb", "weight_bytes", "gauge", _SGLANG_GB),
    EngineMetric("sglang", "sglang:graph_memory_usage_gb", "graph_bytes", "gauge", _SGLANG_GB),
    EngineMetric("sglang", "sglang:num_running_reqs", "running", "gauge"),
    EngineMetric("sglang", "sglang:num_queue_reqs", "waiting", "gauge"),
    EngineMetric("sglang", "sglang:token_usage", "cache_usage", "gauge"),
    EngineMetric("tensorrt-llm", "trtllm_time_to_first_token_seconds", "first_token", "histogram"),
    EngineMetric("tensorrt-llm", "trtllm_time_per_output_token_seconds", "output_token", "histogram"),
    EngineMetric("tensorrt-llm", "trtllm_e2e_request_latency_seconds", "end_to_end", "histogram"),
    EngineMetric("tensorrt-llm", "trtllm_request_queue_time_seconds", "queue_time", "histogram"),
    EngineMetric("tensorrt-llm", "trtllm_request_success_total", "completed_requests", "counter"),
    EngineMetric("llama.cpp", "llamacpp:prompt_tokens_total", "prompt_tokens_total", "counter"),
    EngineMetric("llama.cpp", "llamacpp:tokens_predicted_total", "answer_tokens_total", "counter"),
    EngineMetric("llama.cpp", "llamacpp:prompt_tokens_cached_total", "prefix_hit_tokens", "counter"),
    EngineMetric("llama.cpp", "llamacpp:requests_processing", "running", "gauge"),
    EngineMetric("llama.cpp", "llamacpp:requests_deferred", "waiting", "gauge"),
)
"""Metrics of servers by engine; of two that state the same, the newer comes first."""


ENGINES: Final = frozenset(metric.engine for metric in METRICS)
"""Servers whose metrics are known, by the names of their programs in plans."""


def metrics_of(engine: str) -> tuple[EngineMetric, ...]:
    """Return the metrics of a server by the name of its program in plans."""
    return tuple(metric for metric in METRICS if metric.engine == engine)


_PERCENTS: Final = (50.0, 90.0, 95.0, 99.0)
_NAMES: Final = {metric.name: metric.engine for metric in METRICS}
_SUFFIXES: Final = ("_bucket", "_sum", "_count")
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


def run_of_scrape(samples: tuple[MetricSample, ...]) -> ServingRun | None:
    """Return the measured run in a scrape of a server, summed over its replicas; None if the server is unknown.

    **Formula**: percentiles are those of Prometheus' `histogram_quantile`: linear within the bucket, whose ends are
    stated beside them; in the last bucket, which has no end, they are left out.
    """
    engine = engine_of_scrape(samples)
    if engine is None:
        return None
    values: dict[str, object] = {"engine": engine}
    for metric in metrics_of(engine):
        found = None if metric.field in values else _metric_value(metric, samples)
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
    return serving_run(cast("SourceName", f"{engine}-metrics"), kept, reasons, (_SINCE_START,))


def _base_name(name: str) -> str:
    """Return the name of a metric without the ending of a histogram's parts."""
    ending = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(ending)


def _metric_value(metric: EngineMetric, samples: tuple[MetricSample, ...]) -> object | None:
    """Return the value of `metric` in the unit of its field, None if the scrape does not have it."""
    if metric.kind == "histogram":
        return _histogram(metric, samples)
    own = [sample for sample in samples if sample.name == metric.name]
    if not own:
        return None
    if metric.kind == "label":
        return _label_value(metric, own)
    # Ranks of one replica state the same of themselves: the first is that of each.
    total = sum(sample.value for sample in own) if metric.kind == "counter" else own[0].value
    scaled = metric.scale * total
    return round(scaled) if metric.field in WHOLE_FIELDS else scaled


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


def _histogram(metric: EngineMetric, samples: tuple[MetricSample, ...]) -> Distribution | None:
    """Return the distribution of a histogram, all label sets added up; None without a count."""
    counts = _buckets(metric.name, samples)
    total, number = (
        sum(sample.value for sample in samples if sample.name == f"{metric.name}_{part}") for part in ("sum", "count")
    )
    if number < 1:
        return None
    ends = sorted(counts)
    percentiles = [found for percent in _PERCENTS if (found := _percentile(percent, ends, counts)) is not None]
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


def _percentile(percent: float, ends: list[float], counts: Mapping[float, float]) -> MeasuredPercentile | None:
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
