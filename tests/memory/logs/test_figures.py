"""Speeds and token counts in logs and in the output of benchmarks."""

from pathlib import Path

import pytest

from planner.memory.logs.figures import read_figures
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogText

CORPUS = Path(__file__).parents[2] / "corpus" / "memory-log"


def figures(text):
    return [figure for found in read_figures(LogText(text)).values() for figure in found]


def of_file(name):
    return figures((CORPUS / f"{name}.log").read_text(encoding="utf-8"))


def said(found):
    return [(one.name, one.prompt_tokens, one.answer_tokens, one.depth_tokens, one.requests) for one in found]


def test_llama_bench_states_each_test_with_its_deviation():
    prompt, generation = of_file("llama_bench_json")
    assert said([prompt, generation]) == [("prompt", 512, 0, 0, 1), ("generation", 0, 128, 0, 1)]
    assert (prompt.value, prompt.high - prompt.value) == (7100.002165, pytest.approx(140.34152))
    assert (prompt.gpu_layers, prompt.kv_cache) == (None, "f16")
    assert generation.value == 118.881588
    assert (prompt.line, prompt.text) == (27, '"avg_ts": 7100.002165,')


def test_the_table_of_llama_bench_says_the_same_and_how_deep_the_cache_is():
    found = of_file("llama_bench_table")
    tests = [("prompt", 512, 0), ("generation", 0, 128)]
    assert said(found) == [(*test, depth, 1) for depth in (0, 512) for test in tests]
    assert [one.value for one in found] == [7340.20, 120.60, 6425.91, 116.71]


def test_lines_of_json_are_read_with_the_layers_on_the_gpu():
    line = '{"n_prompt": 0, "n_gen": 64, "n_depth": 32, "n_gpu_layers": 20, "avg_ts": 11.5, "stddev_ts": 0.5}'
    together = '{"n_prompt": 64, "n_gen": 64, "avg_ts": 11.5, "stddev_ts": 0.5}'
    (found,) = figures(f"loading\n{line}\n{together}\n")
    assert (found.depth_tokens, found.gpu_layers, found.kv_cache, found.low) == (32, 20, None, 11.0)


@pytest.mark.parametrize(
    "text",
    [
        '[{"avg_ts": "fast", "n_gen": 1}]',
        '[{"avg_ts": true, "n_gen": 1}]',
        '[{"avg_ts": 1e300, "n_gen": 1}]',
        '[{"avg_ts": 0, "n_gen": 1}]',
        '[{"avg_ts": 5.0, "n_gen": 1',
        '[["avg_ts"], "avg_ts"]',
        "| llama | pp512 | 0.00 ± 0.00 |\n| t/s |",
        "| llama | pp512 | fast |\n| t/s |",
        "|    PP | S_PP t/s |\n| x | y |\n",
        "prompt eval time = 0.00 ms / 5 tokens (",
        "eval time = soon",
        "============ Serving Benchmark Result ============\nSuccessful requests:                     0\n",
        "train_steps_per_second = 0.000",
        "train_steps_per_second = many",
        '"seconds_per_step": 0.0',
        "GPU KV cache size: many tokens",
        "GPU KV cache size: ,, tokens",
    ],
)
def test_what_states_no_speed_gives_none(text):
    assert figures(text) == []


def test_llama_batched_bench_is_read_as_a_table_and_as_lines():
    found = of_file("llama_batched_bench")
    assert said(found)[:2] == [("prompt", 128, None, 0, 1), ("generation", 0, 128, 128, 1)]
    assert ("generation", 0, 128, 1024, 8) in said(found)
    assert [one.value for one in found if one.requests == 8] == [288.43, 45.03]


def test_the_longest_request_of_llama_cpp_counts():
    short = "prompt eval time = 100.00 ms / 10 tokens (\n eval time = 200.00 ms / 20 tokens (\n"
    prompt, generation = figures((CORPUS / "llama_server_timings.log").read_text(encoding="utf-8") + short)
    assert (prompt.prompt_tokens, generation.answer_tokens, generation.depth_tokens) == (161, 8853, 161)
    assert prompt.value == pytest.approx(65.95, abs=0.01)
    assert (generation.low, generation.value) < (generation.value, generation.high)
    assert generation.value == pytest.approx(25.30, abs=0.005)


def test_the_table_of_a_serving_benchmark_gives_means_per_request():
    found = of_file("vllm_bench_serve")
    assert said(found) == [(name, 221, 300, 0, 8) for name in ("throughput", "first-token", "output-token")]
    assert [one.value for one in found] == [719.03, pytest.approx(0.20057), pytest.approx(0.01049)]
    assert all(one.is_served for one in found)


def test_a_table_may_leave_out_latencies():
    text = (CORPUS / "vllm_bench_serve.log").read_text(encoding="utf-8")
    (only,) = figures("\n".join(line for line in text.splitlines() if "Mean" not in line))
    assert only.name == "throughput"


def test_without_a_limit_the_requests_in_flight_follow_from_throughput_and_latency():
    text = (CORPUS / "vllm_bench_serve.log").read_text(encoding="utf-8")
    open_ended = "\n".join(line for line in text.splitlines() if "Maximum request" not in line)
    # Little's law: 2.40 requests/s, each 0.20057 s + 299 × 10.49 ms.
    assert {one.requests for one in figures(open_ended)} == {round(2.40 * (0.20057 + 299 * 0.01049))}


def test_steps_are_those_of_the_trainer_and_of_the_suggested_lines():
    found = of_file("step_times")
    assert [(one.name, one.value) for one in found] == [
        ("step", pytest.approx(1 / 1.234)),
        ("step", 0.8121),
        ("first-token", 0.2104),
        ("output-token", 0.0181),
    ]
    stated = figures('{"requests": 2, "prompt_tokens": 30, "answer_tokens": 4, "seconds_per_output_token": 1.5e-03}')
    assert said(stated) == [("output-token", 30, 4, 0, 2)]
    assert stated[0].value == 0.0015


def test_the_size_of_the_cache_in_tokens_is_the_last_that_is_printed():
    (found,) = figures("GPU KV cache size: 10,000 tokens\nGPU KV cache size: 158,656 tokens\n")
    assert (found.name, found.value) == ("cache-tokens", 158656)


def test_a_log_has_a_limited_number_of_figures():
    assert len(figures('{"seconds_per_step": 1.0}\n' * 45)) == 40


def test_the_benchmark_says_build_model_and_card():
    reading = read_log((CORPUS / "llama_bench_json.log").read_text(encoding="utf-8"))
    assert (reading.engine, reading.formats, reading.version) == ("llama.cpp", ("llama-bench",), "b5163")
    assert (reading.model, reading.devices) == ("Qwen2.5-7B-Instruct-Q4_K_M.gguf", ("NVIDIA GeForce RTX 4080",))
    nameless = read_log('[{"n_gen": 1, "avg_ts": 2.0, "build_number": 0}]')
    assert (nameless.version, nameless.model, nameless.devices) == (None, None, ())


def test_slow_steps_are_figures_too():
    assert [figure.value for figure in figures("train_steps_per_second = 0.050")] == [20.0]
