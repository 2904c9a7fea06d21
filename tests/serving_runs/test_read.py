"""Measured serving runs of each program whose files are read, with every field that they do not state accounted for."""

import pytest
from run_files import CORPUS, FILES

from planner.errors import LogError
from planner.serving_runs.read import read_serving_runs, serving_runs_in
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
        ("[1]", "line 1 is no sample"),
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
