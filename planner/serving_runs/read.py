"""Reading of measured serving runs: a scrape of a server's metrics, or a result file of a load generator.

**Source** of the files: vLLM 0.33 `benchmarks/serve.py` (`--save-result`); SGLang 0.5.23 `benchmark/serving.py` (one
JSON object a line); guidellm 0.8.1 `benchmark/schemas/{report,benchmark,metrics}.py`, `schemas/base/statistics.py`;
AIPerf 0.13.0 `common/models/export_models.py` (`JsonExportData`), GenAI-Perf 0.0.16 `export_data/json_exporter.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from planner.errors import LogError
from planner.parsing import parse_json
from planner.parsing.metrics import parse_prometheus
from planner.serving_runs.metrics import ENGINES, run_of_scrape
from planner.serving_runs.record import (
    SOURCE_TITLES,
    WHOLE_FIELDS,
    Distribution,
    MeasuredPercentile,
    ServingRun,
    serving_run,
)
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB

MAX_BYTES: Final = 64 * MIB
_MOST_LINES: Final = 1_000
_HINT: Final = f"Supported are {', '.join(SOURCE_TITLES.values())}."


def read_serving_runs(path: Path) -> tuple[ServingRun, ...]:
    """Return the measured runs in the file at `path`: several where a benchmark tried several rates.

    Raises:
        LogError: If it cannot be read, or is not from a known program.
    """
    try:
        return serving_runs_in(read_regular(path, "measured run", MAX_BYTES))
    except UnreadableFileError as error:
        raise LogError(f"{path}: {error.reason}", error.hint) from error
    except LogError as error:
        raise LogError(f"{path}: {error.message}", error.hint) from error


def serving_runs_in(data: bytes | str) -> tuple[ServingRun, ...]:
    """Return the measured runs in the text of a file.

    Raises:
        LogError: If it is not from a known program.
        UnreadableFileError: If it breaks a limit or is neither JSON nor a scrape.
    """
    text = data.decode("utf-8-sig", "replace") if isinstance(data, bytes) else data
    runs = _runs_in_json(text) if text.lstrip()[:1] == "{" else _runs_in_scrape(text)
    if not runs:
        raise LogError("no measured serving run was recognized", _HINT)
    return runs


def _runs_in_json(text: str) -> tuple[ServingRun, ...]:
    """Return the runs in a JSON document, or in each line of a file that has one a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    one_each = len(lines) > 1 and lines[0].strip().endswith("}") and lines[1].lstrip().startswith("{")
    documents = [parse_json(line, allow_infinity=True) for line in lines[:_MOST_LINES]] if one_each else None
    if documents is None:
        documents = [parse_json(text, allow_infinity=True)]
    return tuple(run for document in documents if isinstance(document, dict) for run in runs_of_results(document))


def _runs_in_scrape(text: str) -> tuple[ServingRun, ...]:
    run = run_of_scrape(parse_prometheus(text))
    return () if run is None else (run,)


_MILLI: Final = 1e-3
_PERCENTS: Final = (50, 90, 95, 99)
_MOST_RUNS: Final = 100
_BENCH: Final[Mapping[str, str]] = {
    "request_rate_per_s": "request_rate",
    "concurrency": "max_concurrency",
    "completed_requests": "completed",
    "duration_seconds": "duration",
    "requests_per_s": "request_throughput",
    "output_tokens_per_s": "output_throughput",
    "prompt_tokens_total": "total_input_tokens",
    "answer_tokens_total": "total_output_tokens",
}
"""What vLLM's and SGLang's benchmarks call alike, by our field."""
_VLLM: Final = {**_BENCH, "failed_requests": "failed", "total_tokens_per_s": "total_token_throughput"}
_SGLANG: Final = {
    **_BENCH,
    "total_tokens_per_s": "total_throughput",
    "cache_tokens": "server_info.max_total_num_tokens",
    "memory_fraction": "server_info.mem_fraction_static",
    "cache_block_tokens": "server_info.page_size",
}
_VLLM_LATENCIES: Final = (
    ("first_token", "ttft"),
    ("output_token", "tpot"),
    ("inter_token", "itl"),
    ("end_to_end", "e2el"),
)
"""Latencies in a benchmark's results: our field, and its part in the names of the keys."""
_SGLANG_LATENCIES: Final = (*_VLLM_LATENCIES, ("end_to_end", "e2e_latency"))
_GUIDELLM: Final[Mapping[str, str]] = {
    "requests_per_s": "metrics.requests_per_second.successful.mean",
    "output_tokens_per_s": "metrics.output_tokens_per_second.successful.mean",
    "total_tokens_per_s": "metrics.tokens_per_second.successful.mean",
    "concurrency": "metrics.request_concurrency.successful.mean",
    "completed_requests": "metrics.request_totals.successful",
    "failed_requests": "metrics.request_totals.errored",
    "prompt_tokens_total": "metrics.prompt_token_count.successful.total_sum",
    "answer_tokens_total": "metrics.output_token_count.successful.total_sum",
    "duration_seconds": "duration",
    "request_rate_per_s": "config.strategy.rate",
}
_GUIDELLM_DISTRIBUTIONS: Final[Mapping[str, tuple[str, float]]] = {
    "first_token": ("time_to_first_token_ms", _MILLI),
    "inter_token": ("inter_token_latency_ms", _MILLI),
    "end_to_end": ("request_latency", 1.0),
    "prompt_tokens": ("prompt_token_count", 1.0),
    "answer_tokens": ("output_token_count", 1.0),
}
"""guidellm's metrics by our field, with the factor to our unit; its time per output token includes the first."""
_AIPERF: Final[Mapping[str, str]] = {
    "requests_per_s": "request_throughput.avg",
    "output_tokens_per_s": "output_token_throughput.avg",
    "total_tokens_per_s": "total_token_throughput.avg",
    "completed_requests": "request_count.avg",
    "failed_requests": "error_request_count.avg",
    "prompt_tokens_total": "total_isl.avg",
    "answer_tokens_total": "total_osl.avg",
}
_AIPERF_DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "first_token": "time_to_first_token",
    "output_token": "inter_token_latency",
    "inter_token": "inter_chunk_latency",
    "end_to_end": "request_latency",
    "prompt_tokens": "input_sequence_length",
    "answer_tokens": "output_sequence_length",
}
"""AIPerf's metrics by our field: its inter-token latency is the mean of a request."""
_UNITS: Final[Mapping[str, float]] = {"ms": _MILLI, "us": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_ANY_SERVER: Final = {"engine": "the benchmark runs against any server"}


def runs_of_results(document: Mapping[str, Any]) -> tuple[ServingRun, ...]:
    """Return the measured runs in a parsed result file; none if the load generator is unknown."""
    if isinstance(benchmarks := document.get("benchmarks"), list):
        return tuple(
            _guidellm_run(one) for one in benchmarks[:_MOST_RUNS] if isinstance(_value_at(one, "metrics"), dict)
        )
    if isinstance(document.get("time_to_first_token"), dict) or isinstance(document.get("request_latency"), dict):
        return (_aiperf_run(document),)
    if "mean_ttft_ms" in document or "mean_e2el_ms" in document or "mean_e2e_latency_ms" in document:
        is_sglang = "mean_e2e_latency_ms" in document or "total_throughput" in document
        return (_sglang_run(document) if is_sglang else _vllm_run(document),)
    return ()


def _vllm_run(document: Mapping[str, Any]) -> ServingRun:
    values = _bench_values(document, _VLLM, _VLLM_LATENCIES)
    values["model"] = _text(document.get("model_id"))
    # The benchmark can be run against any server; the backend is that of its client.
    backend = _text(document.get("backend")) or _text(document.get("endpoint_type"))
    values["engine"] = backend if backend in ENGINES else None
    return serving_run("vllm-bench", values, {**_ANY_SERVER, **_bench_reasons(document)})


def _sglang_run(document: Mapping[str, Any]) -> ServingRun:
    values = _bench_values(document, _SGLANG, _SGLANG_LATENCIES)
    backend = _text(document.get("backend")) or ""
    values["engine"] = next((name for name in sorted(ENGINES) if backend.startswith(name)), None)
    values["model"] = _text(_value_at(document, "server_info.model_path"))
    if values["concurrency"] is None:
        values["concurrency"] = _number(document.get("concurrency"))
    return serving_run("sglang-bench", values, _bench_reasons(document))


def _bench_values(
    document: Mapping[str, Any], keys: Mapping[str, str], latencies: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    values = _numbers_at(document, keys)
    completed = values["completed_requests"]
    for field in ("prompt_tokens", "answer_tokens"):
        total = values[f"{field}_total"]
        if total is not None and completed:
            values[field] = Distribution(mean=total / completed, count=completed)
    for field, key in latencies:
        stated = {50: document.get(f"median_{key}_ms")}
        stated |= {percent: document.get(f"p{percent}_{key}_ms", stated.get(percent)) for percent in _PERCENTS}
        found = _distribution(document.get(f"mean_{key}_ms"), stated, _MILLI, None)
        values[field] = found or values.get(field)
    return values


def _bench_reasons(document: Mapping[str, Any]) -> dict[str, str]:
    reasons = {}
    if document.get("request_rate") in ("inf", None):
        reasons["request_rate_per_s"] = "all requests were sent at once"
    elif document.get("request_rate") == "trace":
        reasons["request_rate_per_s"] = "requests were sent at the times of a trace"
    if document.get("max_concurrency") is None:
        reasons["concurrency"] = "no limit was set"
    return reasons


def _guidellm_run(benchmark: Mapping[str, Any]) -> ServingRun:
    """Return the run of one benchmark in a report of guidellm, which has one for each rate."""
    values = _numbers_at(benchmark, _GUIDELLM)
    for field, (key, scale) in _GUIDELLM_DISTRIBUTIONS.items():
        summary = f"metrics.{key}.successful"
        stated = {percent: _value_at(benchmark, f"{summary}.percentiles.p{percent}") for percent in _PERCENTS}
        count = _value_at(benchmark, f"{summary}.count")
        values[field] = _distribution(_value_at(benchmark, f"{summary}.mean"), stated, scale, count)
    limits = (_number(_value_at(benchmark, f"config.strategy.{key}")) for key in ("streams", "max_concurrency"))
    values["concurrency"] = next(filter(None, limits), values["concurrency"])
    reasons = {"output_token": "guidellm's time per output token includes the first token"}
    if kind := _text(_value_at(benchmark, "config.strategy.type_")):
        reasons["request_rate_per_s"] = f"requests were sent in the mode {kind}"
    return serving_run("guidellm", values, reasons)


def _aiperf_run(document: Mapping[str, Any]) -> ServingRun:
    """Return the run in an export of AIPerf, whose shape GenAI-Perf's has."""
    values = _numbers_at(document, _AIPERF)
    for field, key in _AIPERF_DISTRIBUTIONS.items():
        stated = {percent: _value_at(document, f"{key}.p{percent}") for percent in _PERCENTS}
        scale = _UNITS.get(str(_value_at(document, f"{key}.unit")), 1.0)
        values[field] = _distribution(
            _value_at(document, f"{key}.avg"), stated, scale, _value_at(document, f"{key}.count")
        )
    seconds = _number(_value_at(document, "benchmark_duration.avg"))
    unit = _UNITS.get(str(_value_at(document, "benchmark_duration.unit")), 1.0)
    values["duration_seconds"] = None if seconds is None else seconds * unit
    config = document.get("input_config")
    for field, key in (("concurrency", "concurrency"), ("request_rate_per_s", "request_rate")):
        values[field] = _number(_first_called(config, key))
    models = _first_called(config, "model_names")
    names = models if isinstance(models, list) else [models]
    values["model"] = _text(names[0]) if len(names) == 1 else None
    return serving_run("aiperf", values, _ANY_SERVER)


def _numbers_at(document: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Return the numbers at dotted `paths` by our field, whole ones where the field's are."""
    found = {field: _number(_value_at(document, path)) for field, path in paths.items()}
    return {
        name: round(value) if value is not None and name in WHOLE_FIELDS else value for name, value in found.items()
    }


def _value_at(value: object, path: str) -> object:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _first_called(value: object, key: str, depth: int = 6) -> object:
    """Return the first value called `key` in nested sections, None if there is none."""
    if depth == 0 or not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and value.get(key) is not None:
        return value[key]
    inside = value.values() if isinstance(value, dict) else value
    return next((found for one in inside if (found := _first_called(one, key, depth - 1)) is not None), None)


def _distribution(mean: object, stated: Mapping[int, object], scale: float, count: object) -> Distribution | None:
    """Return a distribution in our unit, None if neither a mean nor a percentile is stated."""
    percentiles = [
        MeasuredPercentile(percent=percent, value=number * scale, low=number * scale, high=number * scale)
        for percent, value in sorted(stated.items())
        if (number := _number(value)) is not None
    ]
    middle, size = _number(mean), _number(count)
    if middle is None and not percentiles:
        return None
    return Distribution(
        mean=None if middle is None else middle * scale,
        percentiles=tuple(percentiles),
        count=None if size is None else round(size),
    )


def _number(value: object) -> float | None:
    """Return a number that is not negative, None for anything else, such as "inf"."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        return None
    return float(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
