"""Measured serving runs among logs: sizes of a scrape, and speeds of a load generator's results."""

from pathlib import Path

import pytest

from planner.memory.logs.read import read_log

CORPUS = Path(__file__).parents[2] / "corpus"


def reading(name):
    return read_log((CORPUS / name).read_text())


def figures(found):
    return {one.name: one.value for one in found.figures}


def test_a_scrape_of_vllm_states_the_tokens_of_its_cache():
    found = reading("serving-metrics/vllm.metrics")
    assert found.formats == ("serving-metrics",)
    assert figures(found) == {"cache-tokens": 9180 * 16}
    assert (found.figures[0].requests, found.figures[0].is_served) == (None, False)
    assert found.measured == ()


def test_a_scrape_of_sglang_states_bytes_too():
    found = reading("serving-metrics/sglang.metrics")
    amounts = {one.name: (one.term, one.sense) for one in found.measured}
    assert amounts == {
        "model weights": ("weights", "peak"),
        "cache pool": ("kv_cache", "pool"),
        "CUDA graphs": ("framework_overhead", "peak"),
    }
    assert figures(found) == {"cache-tokens": 549_277}


@pytest.mark.parametrize(
    ("name", "requests", "expected"),
    [
        ("vllm-bench.json", 16, {"throughput": 409.6, "first-token": 0.18, "output-token": 0.0125}),
        ("guidellm.json", 6, {"throughput": 512.0, "first-token": 0.12, "output-token": 0.0101}),
        ("aiperf.json", 10, {"throughput": 819.2, "first-token": 0.2, "output-token": 0.0114}),
    ],
)
def test_results_state_speeds_with_their_conditions(name, requests, expected):
    found = reading(f"serving-results/{name}")
    assert found.formats[0] == "serving-results"
    assert figures(found) == pytest.approx(expected)
    first = found.figures[0]
    assert (first.prompt_tokens, first.answer_tokens, first.requests) == (1024, 256, requests)
    assert first.is_served


def test_requests_at_the_same_time_follow_from_littles_law():
    text = (
        '{"mean_ttft_ms": 10.0, "mean_e2el_ms": 2000.0, "request_throughput": 4.0, "output_throughput": 9.0, '
        '"completed": %d}'
    )
    assert read_log(text % 100).figures[0].requests == 8
    assert read_log(text % 3).figures[0].requests == 3
    bare = read_log('{"mean_ttft_ms": 10.0, "output_throughput": 9.0}').figures[0]
    assert (bare.requests, bare.prompt_tokens) == (None, None)


def test_a_log_that_only_names_such_keys_is_of_another_format():
    text = '"mean_ttft_ms" vllm:num_requests_running\nModel loading took 14.99 GiB memory and 3 seconds\n'
    assert read_log(text).formats == ("vllm",)
    assert read_log('{"mean_ttft_ms": vllm:prompt_tokens_total\nModel loading took 14.99 GiB').formats == ("vllm",)


def test_a_scrape_without_sizes_states_nothing():
    found = read_log("llamacpp:prompt_tokens_total 3\n# Model loading took 14.99 GiB memory\n")
    assert found.formats == ("vllm",)
