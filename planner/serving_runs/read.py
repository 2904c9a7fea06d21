"""Reading of measured serving runs: a scrape of a server's metrics, or a result file of a load generator.

**Source** of the files: vLLM 0.33 `benchmarks/serve.py` (`--save-result`); SGLang 0.5.23 `benchmark/serving.py` (one
JSON object a line); guidellm 0.8.1 `benchmark/schemas/{report,benchmark,metrics}.py`, `schemas/base/statistics.py`;
AIPerf 0.13.0 `common/models/export_models.py` (`JsonExportData`), GenAI-Perf 0.0.16 `export_data/json_exporter.py`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from planner.errors import LogError
from planner.parsing import parse_json, parse_prometheus
from planner.serving_runs.metrics import ENGINES, run_of_scrape
from planner.serving_runs.record import SOURCE_TITLES, Distribution, MeasuredPercentile, ServingRun, serving_run
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB

MAX_BYTES: Final = 64 * MIB
_MOST_LINES: Final = 1_000
_HINT: Final = f"Read are {', '.join(SOURCE_TITLES.values())}."


def read_serving_runs(path: Path) -> tuple[ServingRun, ...]:
    """Return the measured runs in the file at `path`: several where a benchmark tried several rates.

    Raises:
        LogError: If it cannot be read, or is of no program that is known.
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
        LogError: If it is of no program that is known.
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


class _Latency(NamedTuple):
    """A latency in a benchmark's results: our field, and its part in the names of the keys."""

    field: str
    key: str


_VLLM_LATENCIES: Final = (
    _Latency("first_token", "ttft"),
    _Latency("output_token", "tpot"),
    _Latency("inter_token", "itl"),
    _Latency("end_to_end", "e2el"),
)
_SGLANG_LATENCIES: Final = (*_VLLM_LATENCIES, _Latency("end_to_end", "e2e_latency"))
_GUIDELLM: Final[Mapping[str, tuple[str, float]]] = {
    "first_token": ("time_to_first_token_ms", _MILLI),
    "inter_token": ("inter_token_latency_ms", _MILLI),
    "end_to_end": ("request_latency", 1.0),
    "prompt_tokens": ("prompt_token_count", 1.0),
    "answer_tokens": ("output_token_count", 1.0),
}
"""guidellm's metrics by our field, with the factor to our unit; its time per output token includes the first."""
_AIPERF: Final[Mapping[str, str]] = {
    "first_token": "time_to_first_token",
    "output_token": "inter_token_latency",
    "inter_token": "inter_chunk_latency",
    "end_to_end": "request_latency",
    "prompt_tokens": "input_sequence_length",
    "answer_tokens": "output_sequence_length",
}
"""AIPerf's metrics by our field: its inter-token latency is the mean of a request."""
_AIPERF_RATES: Final[Mapping[str, str]] = {
    "requests_per_s": "request_throughput",
    "output_tokens_per_s": "output_token_throughput",
    "total_tokens_per_s": "total_token_throughput",
}
_UNITS: Final[Mapping[str, float]] = {"ms": _MILLI, "us": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def runs_of_results(document: Mapping[str, Any]) -> tuple[ServingRun, ...]:
    """Return the measured runs in a parsed result file, none if it is of no load generator that is known."""
    if isinstance(document.get("benchmarks"), list):
        return tuple(_guidellm_runs(document))
    if isinstance(document.get("time_to_first_token"), dict) or isinstance(document.get("request_latency"), dict):
        return (_aiperf_run(document),)
    if "mean_ttft_ms" in document or "mean_e2el_ms" in document or "mean_e2e_latency_ms" in document:
        is_sglang = "mean_e2e_latency_ms" in document or "total_throughput" in document
        return (_sglang_run(document) if is_sglang else _vllm_run(document),)
    return ()


def _vllm_run(document: Mapping[str, Any]) -> ServingRun:
    values = _bench_values(document, _VLLM_LATENCIES)
    values["model"] = _text(document.get("model_id"))
    values["failed_requests"] = _count(document.get("failed"))
    values["total_tokens_per_s"] = _number(document.get("total_token_throughput"))
    # The benchmark can be run against any server; the backend is that of its client.
    backend = _text(document.get("backend")) or _text(document.get("endpoint_type"))
    values["engine"] = backend if backend in ENGINES else None
    reasons = {"engine": "the benchmark runs against any server"}
    return serving_run("vllm-bench", values, {**reasons, **_bench_reasons(document)})


def _sglang_run(document: Mapping[str, Any]) -> ServingRun:
    values = _bench_values(document, _SGLANG_LATENCIES)
    values["total_tokens_per_s"] = _number(document.get("total_throughput"))
    backend = _text(document.get("backend")) or ""
    values["engine"] = next((name for name in sorted(ENGINES) if backend.startswith(name)), None)
    info = document.get("server_info")
    if isinstance(info, dict):
        values["model"] = _text(info.get("model_path"))
        values["cache_tokens"] = _count(info.get("max_total_num_tokens"))
        values["memory_fraction"] = _number(info.get("mem_fraction_static"))
        values["cache_block_tokens"] = _count(info.get("page_size"))
    if values.get("concurrency") is None:
        values["concurrency"] = _number(document.get("concurrency"))
    return serving_run("sglang-bench", values, _bench_reasons(document))


def _bench_values(document: Mapping[str, Any], latencies: tuple[_Latency, ...]) -> dict[str, object]:
    """Return what vLLM's and SGLang's benchmarks call alike."""
    completed = _count(document.get("completed"))
    prompts, answers = _count(document.get("total_input_tokens")), _count(document.get("total_output_tokens"))
    values: dict[str, object] = {
        "request_rate_per_s": _number(document.get("request_rate")),
        "concurrency": _number(document.get("max_concurrency")),
        "completed_requests": completed,
        "duration_seconds": _number(document.get("duration")),
        "requests_per_s": _number(document.get("request_throughput")),
        "output_tokens_per_s": _number(document.get("output_throughput")),
        "prompt_tokens_total": prompts,
        "answer_tokens_total": answers,
    }
    for field, total in (("prompt_tokens", prompts), ("answer_tokens", answers)):
        if total is not None and completed:
            values[field] = Distribution(mean=total / completed, count=completed)
    for latency in latencies:
        mean = _number(document.get(f"mean_{latency.key}_ms"))
        stated = {50: document.get(f"median_{latency.key}_ms")}
        stated |= {percent: document.get(f"p{percent}_{latency.key}_ms", stated.get(percent)) for percent in _PERCENTS}
        found = _distribution(mean, stated, _MILLI, None)
        if found is not None:
            values[latency.field] = found
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


def _guidellm_runs(document: Mapping[str, Any]) -> Iterator[ServingRun]:
    """Yield the run of each benchmark in a report of guidellm: one for each rate."""
    for benchmark in document["benchmarks"][:_MOST_RUNS]:
        metrics = benchmark.get("metrics") if isinstance(benchmark, dict) else None
        if isinstance(metrics, dict):
            yield _guidellm_run(benchmark, metrics)


def _guidellm_run(benchmark: Mapping[str, Any], metrics: Mapping[str, Any]) -> ServingRun:
    values: dict[str, object] = {}
    for field, (key, scale) in _GUIDELLM.items():
        summary = _successful(metrics.get(key))
        found = _guidellm_distribution(summary, scale)
        if found is not None:
            values[field] = found
    for field, key in (
        ("requests_per_s", "requests_per_second"),
        ("output_tokens_per_s", "output_tokens_per_second"),
        ("total_tokens_per_s", "tokens_per_second"),
        ("concurrency", "request_concurrency"),
    ):
        values[field] = _number(_successful(metrics.get(key)).get("mean"))
    totals = metrics.get("request_totals")
    if isinstance(totals, dict):
        values["completed_requests"] = _count(totals.get("successful"))
        values["failed_requests"] = _count(totals.get("errored"))
    for field, key in (("prompt_tokens_total", "prompt_token_count"), ("answer_tokens_total", "output_token_count")):
        values[field] = _count(_successful(metrics.get(key)).get("total_sum"))
    values["duration_seconds"] = _number(benchmark.get("duration"))
    config = benchmark.get("config")
    strategy = config.get("strategy") if isinstance(config, dict) else None
    reasons = {"output_token": "guidellm's time per output token includes the first token"}
    if isinstance(strategy, dict):
        values["request_rate_per_s"] = _number(strategy.get("rate"))
        limit = _number(strategy.get("streams")) or _number(strategy.get("max_concurrency"))
        values["concurrency"] = limit or values["concurrency"]
        kind = _text(strategy.get("type_"))
        if kind:
            reasons["request_rate_per_s"] = f"requests were sent in the mode {kind}"
    return serving_run("guidellm", values, reasons)


def _successful(value: object) -> Mapping[str, Any]:
    found = value.get("successful") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _guidellm_distribution(summary: Mapping[str, Any], scale: float) -> Distribution | None:
    stated = summary.get("percentiles")
    named = stated if isinstance(stated, dict) else {}
    return _distribution(
        _number(summary.get("mean")),
        {percent: named.get(f"p{percent}") for percent in _PERCENTS},
        scale,
        _count(summary.get("count")),
    )


def _aiperf_run(document: Mapping[str, Any]) -> ServingRun:
    """Return the run in an export of AIPerf, whose shape GenAI-Perf's has."""
    values: dict[str, object] = {}
    for field, key in _AIPERF.items():
        found = _aiperf_distribution(document.get(key))
        if found is not None:
            values[field] = found
    for field, key in _AIPERF_RATES.items():
        values[field] = _number(_section(document.get(key)).get("avg"))
    for field, key in (
        ("completed_requests", "request_count"),
        ("failed_requests", "error_request_count"),
        ("prompt_tokens_total", "total_isl"),
        ("answer_tokens_total", "total_osl"),
    ):
        values[field] = _count(_section(document.get(key)).get("avg"))
    duration = _section(document.get("benchmark_duration"))
    seconds = _number(duration.get("avg"))
    values["duration_seconds"] = None if seconds is None else seconds * _UNITS.get(str(duration.get("unit")), 1.0)
    config = document.get("input_config")
    for field, key in (("concurrency", "concurrency"), ("request_rate_per_s", "request_rate")):
        values[field] = _number(_named(config, key))
    models = _named(config, "model_names")
    names = models if isinstance(models, list) else [models]
    values["model"] = _text(names[0]) if len(names) == 1 else None
    return serving_run("aiperf", values, {"engine": "the benchmark runs against any server"})


def _aiperf_distribution(value: object) -> Distribution | None:
    result = _section(value)
    unit = str(result.get("unit", ""))
    scale = _UNITS.get(unit, 1.0)
    stated = {percent: result.get(f"p{percent}") for percent in _PERCENTS}
    return _distribution(_number(result.get("avg")), stated, scale, _count(result.get("count")))


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _named(value: object, key: str, depth: int = 6) -> object:
    """Return the first value called `key` in nested sections, None if there is none."""
    if depth == 0 or not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and value.get(key) is not None:
        return value[key]
    inside = value.values() if isinstance(value, dict) else value
    return next((found for one in inside if (found := _named(one, key, depth - 1)) is not None), None)


def _distribution(
    mean: float | None, stated: Mapping[int, object], scale: float, count: int | None
) -> Distribution | None:
    """Return a distribution in our unit, None if neither a mean nor a percentile is stated."""
    percentiles = [
        MeasuredPercentile(percent=percent, value=number * scale, low=number * scale, high=number * scale)
        for percent, value in sorted(stated.items())
        if (number := _number(value)) is not None
    ]
    if mean is None and not percentiles:
        return None
    return Distribution(mean=None if mean is None else mean * scale, percentiles=tuple(percentiles), count=count)


def _number(value: object) -> float | None:
    """Return a number that is not negative, None for anything else, such as "inf"."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        return None
    return float(value)


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
