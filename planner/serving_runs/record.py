"""The record of a measured serving run: its conditions, its latencies and rates, and the server's KV cache."""

from collections.abc import Mapping
from typing import Final, Literal

from planner.base import Spec

SourceName = Literal[
    "vllm-metrics", "sglang-metrics", "tensorrt-llm-metrics", "llama.cpp-metrics", "vllm-bench", "sglang-bench",
    "guidellm", "aiperf",
]  # fmt: skip
SOURCE_TITLES: Mapping[str, str] = {
    "vllm-metrics": "vLLM's /metrics",
    "sglang-metrics": "SGLang's /metrics",
    "tensorrt-llm-metrics": "TensorRT-LLM's /prometheus/metrics",
    "llama.cpp-metrics": "llama-server's /metrics",
    "vllm-bench": "a result file of vllm bench serve",
    "sglang-bench": "a result file of SGLang's bench_serving",
    "guidellm": "a report of guidellm",
    "aiperf": "an export of AIPerf or GenAI-Perf",
}
"""Sources of measured runs, by name."""


class MeasuredPercentile(Spec):
    """A percentile of a measured quantity; `low` to `high` is the bucket of a histogram in which it lies.

    Where the source states the value itself, all three are equal.
    """

    percent: float
    value: float
    low: float
    high: float


class Distribution(Spec):
    """A measured quantity over all requests or tokens of a run, in seconds or tokens: mean, percentiles, and number."""

    mean: float | None = None
    percentiles: tuple[MeasuredPercentile, ...] = ()
    count: int | None = None

    def at(self, percent: float) -> MeasuredPercentile | None:
        """Return the percentile `percent`, from 0 to 100, None if the source does not state it."""
        return next((one for one in self.percentiles if one.percent == percent), None)


class Unknown(Spec):
    """A field of a measured run that its source does not state, with the reason."""

    field: str
    reason: str


class ServingRun(Spec):
    """A measured run of an inference server; a field is None where the source does not say, with a reason in `unknown`.

    Latencies are in seconds. `inter_token` is the time between two tokens, each pair counted once; `output_token` is
    the mean time between tokens of a request, each request counted once. A scrape of metrics counts since the server's
    start, unless an earlier one was subtracted.
    """

    source: SourceName
    engine: str | None = None
    """Program that served, by its name in plans."""
    model: str | None = None
    request_rate_per_s: float | None = None
    """Requests that were sent per second; None also where all were sent at once."""
    concurrency: float | None = None
    """Most requests at the same time, or their mean number if that is all that is stated."""
    completed_requests: int | None = None
    failed_requests: int | None = None
    duration_seconds: float | None = None
    prompt_tokens: Distribution | None = None
    """Tokens of each prompt."""
    answer_tokens: Distribution | None = None
    """Tokens of each answer."""
    first_token: Distribution | None = None
    """Seconds to the first token."""
    inter_token: Distribution | None = None
    output_token: Distribution | None = None
    end_to_end: Distribution | None = None
    queue_time: Distribution | None = None
    """Seconds that requests waited to be scheduled."""
    prefill_time: Distribution | None = None
    decode_time: Distribution | None = None
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    """Tokens of prompts and answers per second."""
    prompt_tokens_total: int | None = None
    answer_tokens_total: int | None = None
    preemptions: int | None = None
    """Requests whose cache was given up for others."""
    prefix_query_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    """Prompt tokens that were looked up in the prefix cache, and found there."""
    cache_tokens: int | None = None
    """Tokens for which the KV cache has room, of all replicas that the source adds up."""
    cache_block_tokens: int | None = None
    cache_bytes: int | None = None
    cache_format: str | None = None
    memory_fraction: float | None = None
    """The engine's own memory fraction."""
    weight_bytes: int | None = None
    graph_bytes: int | None = None
    unknown: tuple[Unknown, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return what the run was read from."""
        return SOURCE_TITLES[self.source]

    def reason(self, field: str) -> str | None:
        """Return why `field` is None, or None if it has a value."""
        return next((one.reason for one in self.unknown if one.field == field), None)


WHOLE_FIELDS: Final = frozenset(
    name for name, field in ServingRun.model_fields.items() if field.annotation == int | None
)
"""Fields of a run that are whole numbers."""
_ALWAYS = frozenset(("source", "unknown", "notes"))


def serving_run(
    source: SourceName,
    values: Mapping[str, object],
    reasons: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> ServingRun:
    """Return the run with `values`, and for each other field one of `reasons`, or that the source does not state it.

    Raises:
        SpecError: If a value is not allowed.
    """
    known = {name: value for name, value in values.items() if value is not None}
    usual = f"{SOURCE_TITLES[source]} does not state it"
    unknown = tuple(
        Unknown(field=name, reason=(reasons or {}).get(name, usual))
        for name in ServingRun.model_fields
        if name not in known and name not in _ALWAYS
    )
    return ServingRun.model_validate({"source": source, **known, "unknown": unknown, "notes": notes})
