"""Samples of an inference server, as a Prometheus states them: values now, and growth over five minutes."""

from planner.parsing.metrics import MetricSample

VLLM = {"instance": "10.0.0.0:8000", "model_name": "m", "engine": "0", "exported_pod": "vllm-0"}
GAUGES = [
    MetricSample("vllm:num_requests_running", VLLM, 3.0),
    MetricSample("vllm:num_requests_running", VLLM | {"engine": "1"}, 4.0),
    MetricSample("vllm:num_requests_waiting", VLLM, 1.0),
    MetricSample("vllm:gpu_cache_usage_perc", VLLM, 0.25),
    MetricSample("vllm:kv_cache_usage_perc", VLLM | {"engine": "1"}, 0.5),
    MetricSample("vllm:cache_config_info", VLLM | {"block_size": "16", "num_gpu_blocks": "1000"}, 1.0),
    MetricSample("up", {"instance": "elsewhere"}, 1.0),
]
GROWTH = [
    MetricSample("vllm:generation_tokens_total", VLLM, 30_000.0),
    MetricSample("vllm:prompt_tokens_total", VLLM, 90_000.0),
    *(
        MetricSample("vllm:time_to_first_token_seconds_bucket", VLLM | {"le": le}, count)
        for le, count in (("0.1", 50.0), ("0.2", 100.0), ("+Inf", 100.0))
    ),
    MetricSample("vllm:time_to_first_token_seconds_sum", VLLM, 9.0),
    MetricSample("vllm:time_to_first_token_seconds_count", VLLM, 100.0),
]
