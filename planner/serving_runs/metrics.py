"""Names and units of the metrics of inference servers, as data: what each says in the words of a measured run.

**Source**: vLLM 0.33 `v1/metrics/loggers.py` and `docs/usage/metrics.md`; SGLang 0.5.23
`srt/observability/metrics_collector.py`; llama.cpp `tools/server/server-task.cpp`; TensorRT-LLM 1.2
`tensorrt_llm/metrics/collector.py`.
"""

from typing import Final, Literal, NamedTuple

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
