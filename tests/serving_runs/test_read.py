"""Measured serving runs of each program whose files are read, with every field that they do not state accounted for."""

import json

import pytest
from run_files import CORPUS, FILES, run

from planner.errors import LogError
from planner.serving_runs.read import read_serving_runs, runs_of_results, serving_runs_in
from planner.serving_runs.record import ServingRun

SOURCES = {
    "vllm.metrics": "vllm-metrics",
    "sglang.metrics": "sglang-metrics",
    "llama-server.metrics": "llama.cpp-metrics",
    "vllm-bench.json": "vllm-bench",
    "sglang-bench.jsonl": "sglang-bench",
    "guidellm.json": "guidellm",
    "aiperf.json": "aiperf",
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_field_has_a_value_or_a_reason(file):
    for found in read_serving_runs(file):
        assert found.source == SOURCES[file.name]
        fields = set(ServingRun.model_fields) - {"source", "unknown", "notes"}
        missing = {name for name in fields if getattr(found, name) is None}
        assert missing == {one.field for one in found.unknown}
        assert all(found.reason(name) for name in missing)
        assert found.title


def test_a_file_with_a_run_a_line_has_several():
    first, second = read_serving_runs(CORPUS / "serving-results" / "sglang-bench.jsonl")
    assert (first.request_rate_per_s, second.request_rate_per_s) == (4.0, 8.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "no measured serving run"),
        ('{"benchmarks": [3, {"metrics": 1}]}', "no measured serving run"),
        ("up 1\n", "no measured serving run"),
        ("[1]", "line 1 is not a sample"),
    ],
)
def test_other_texts_are_refused(tmp_path, text, message):
    file = tmp_path / "a"
    file.write_text(text)
    with pytest.raises(LogError, match=message):
        read_serving_runs(file)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(LogError, match="cannot be read"):
        read_serving_runs(tmp_path / "none")


def test_a_byte_order_mark_is_skipped():
    assert serving_runs_in("\ufeffllamacpp:prompt_tokens_total 1\n".encode())[0].engine == "llama.cpp"


def document(name):
    return json.loads((CORPUS / "serving-results" / name).read_text().splitlines()[0])


def test_a_result_of_vllm_bench():
    found = run("vllm-bench.json")
    assert (found.engine, found.model, found.concurrency, found.completed_requests) == ("vllm", "Qwen/Qwen3-8B", 16, 64)
    assert (found.prompt_tokens.mean, found.answer_tokens.mean) == (1024, 256)
    assert (found.first_token.mean, found.first_token.at(99).value) == pytest.approx((0.18, 0.41))
    assert found.output_token.at(50).value == pytest.approx(0.0124)
    assert found.inter_token.at(90) is None
    assert found.end_to_end.mean == pytest.approx(3.37)
    assert (found.output_tokens_per_s, found.total_tokens_per_s) == (409.6, 2048.0)
    assert found.reason("request_rate_per_s") == "all requests were sent at once"


def test_a_benchmark_of_another_server_names_no_engine():
    other = document("vllm-bench.json") | {"backend": "openai", "max_concurrency": None, "request_rate": "trace"}
    (found,) = runs_of_results(other)
    assert (found.engine, found.concurrency) == (None, None)
    assert found.reason("engine") == "the benchmark runs against any server"
    assert found.reason("concurrency") == "no limit was set"
    assert "of a trace" in found.reason("request_rate_per_s")


def test_a_line_of_sglangs_benchmark():
    found = run("sglang-bench.jsonl")
    assert (found.engine, found.model, found.request_rate_per_s) == ("sglang", "meta-llama/Llama-3.1-8B", 4.0)
    assert (found.cache_tokens, found.memory_fraction, found.concurrency) == (549_277, 0.83, 10.0)
    assert found.end_to_end.at(95).value == pytest.approx(2.94)
    limited = document("sglang-bench.jsonl") | {"max_concurrency": 32, "server_info": None, "backend": "lmdeploy"}
    (found,) = runs_of_results(limited)
    assert (found.concurrency, found.engine, found.cache_tokens) == (32, None, None)


def test_a_report_of_guidellm_has_a_run_for_each_rate():
    report = document("guidellm.json")
    second = json.loads(json.dumps(report["benchmarks"][0]))
    second["config"] = {"strategy": {"type_": "concurrent", "streams": 8}}
    third = {"metrics": {}, "config": {"strategy": {}}}
    runs = runs_of_results({"benchmarks": [report["benchmarks"][0], second, third, {"metrics": {}}]})
    first, other, bare, _ = runs
    assert (first.request_rate_per_s, first.concurrency) == (2.0, 5.5)
    assert (first.completed_requests, first.failed_requests, first.duration_seconds) == (60, 2, 30.0)
    assert (first.first_token.mean, first.inter_token.mean, first.end_to_end.mean) == (0.12, 0.0101, 2.7)
    assert first.first_token.at(95).value == pytest.approx(0.168)
    assert (other.concurrency, other.request_rate_per_s) == (8, None)
    assert other.reason("request_rate_per_s") == "requests were sent in the mode concurrent"
    assert bare.first_token is None
    assert "includes the first token" in first.reason("output_token")


def test_an_export_of_aiperf():
    found = run("aiperf.json")
    assert (found.model, found.concurrency, found.completed_requests) == ("Qwen/Qwen3-8B", 10, 128)
    assert (found.first_token.mean, found.output_token.mean) == pytest.approx((0.2, 0.0114))
    assert (found.prompt_tokens.mean, found.duration_seconds, found.requests_per_s) == (1024, 40.0, 3.2)
    other = document("aiperf.json") | {"input_config": {"model_names": ["a", "b"], "load": [{"request_rate": 5}]}}
    other["benchmark_duration"] = {"unit": "ms", "avg": 5000.0}
    (found,) = runs_of_results(other)
    assert (found.model, found.request_rate_per_s, found.duration_seconds) == (None, 5.0, 5.0)


def test_values_of_other_types_are_not_stated():
    odd = {"mean_ttft_ms": "fast", "median_ttft_ms": True, "completed": 0, "total_input_tokens": 5, "duration": -1}
    (found,) = runs_of_results(odd)
    assert (found.first_token, found.prompt_tokens, found.duration_seconds) == (None, None, None)
    deep = {"request_latency": {"avg": 1.0, "unit": "s"}, "input_config": {"a": {"b": {"c": {"d": {"e": {"f": {}}}}}}}}
    assert runs_of_results(deep)[0].end_to_end.mean == 1.0
