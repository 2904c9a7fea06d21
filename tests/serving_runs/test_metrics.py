"""Metrics of servers, and scrapes of them as measured runs, with the arithmetic by hand."""

import pytest
from run_files import run

from planner.parsing.metrics import parse_prometheus
from planner.serving_runs.metrics import ENGINES, METRICS, engine_of_scrape, metrics_of, run_of_scrape
from planner.serving_runs.record import ServingRun
from planner.units import GIB
from planner.workload.software.registry import SERVERS

MOMENTARY = {"running", "waiting", "cache_usage", "cache_blocks"}


def test_metrics_state_fields_of_a_run_or_of_the_moment():
    assert {metric.field for metric in METRICS} - MOMENTARY <= set(ServingRun.model_fields)
    assert all(metric.label for metric in METRICS if metric.kind == "label")


def test_servers_are_programs_of_plans():
    assert set(SERVERS) >= ENGINES
    assert {metric.engine for metric in metrics_of("sglang")} == {"sglang"}


def test_what_replaced_a_metric_comes_first():
    fields = [metric.field for metric in metrics_of("vllm") if not metric.until]
    assert all(metric.field in fields for metric in METRICS if metric.until)


def test_a_scrape_of_vllm():
    found = run("vllm.metrics")
    assert (found.engine, found.model, found.completed_requests) == ("vllm", "Qwen/Qwen3-8B", 20)
    assert (found.cache_tokens, found.cache_block_tokens, found.memory_fraction) == (9180 * 16, 16, 0.92)
    assert (found.prefix_query_tokens, found.prefix_hit_tokens, found.preemptions) == (20_000, 5_000, 2)
    assert found.first_token.mean == pytest.approx(2.4 / 20)
    median = found.first_token.at(50)
    # The tenth of 20: 8 of the 10 in the bucket from 0.04 to 0.08 are below it.
    assert (median.value, median.low, median.high) == (pytest.approx(0.04 + 0.04 * 8 / 10), 0.04, 0.08)
    assert found.first_token.at(99) is None  # in the bucket without an end
    assert found.inter_token.count == 5980
    assert found.prompt_tokens.mean == 1000
    assert found.reason("request_rate_per_s") == "metrics do not say what clients sent"
    assert found.reason("cache_bytes") == "vLLM's /metrics does not state it"
    assert "since the server's start" in found.notes[0]


def test_a_scrape_of_sglang_states_bytes():
    found = run("sglang.metrics")
    assert (found.cache_tokens, found.cache_bytes) == (549_277, round(50.28 * GIB))
    assert (found.weight_bytes, found.graph_bytes) == (round(16.41 * GIB), round(0.93 * GIB))
    assert (found.preemptions, found.prefix_hit_tokens) == (1, 4096)


def test_llama_server_has_no_histograms():
    found = run("llama-server.metrics")
    assert (found.prompt_tokens_total, found.answer_tokens_total) == (1200, 800)
    assert found.reason("first_token") == "the server's metrics have no histograms"


NAME = "vllm:time_to_first_token_seconds"


def test_percentiles_are_linear_within_a_bucket():
    text = (
        f'{NAME}_bucket{{le="1.0"}} 10\n{NAME}_bucket{{le="+Inf"}} 10\n{NAME}_count 10\n{NAME}_sum 5\n'
        "vllm:prompt_tokens_total 300\n"
    )
    found = run_of_scrape(parse_prometheus(text))
    assert (found.first_token.count, found.first_token.mean) == (10, 0.5)
    assert found.first_token.at(99).value == pytest.approx(0.99)
    assert (found.prompt_tokens_total, len(found.notes)) == (300, 1)
    assert run_of_scrape(parse_prometheus(text.replace("10\n", "0\n"))).first_token is None


def test_replicas_are_added_up_and_several_models_are_told():
    info = 'vllm:cache_config_info{engine="%d",block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="%s"} 1\n'
    both = run_of_scrape(parse_prometheus(info % (0, "1600") + info % (1, "1600")))
    assert (both.cache_tokens, both.cache_block_tokens) == (3200, 16)
    models = 'vllm:prompt_tokens_total{model_name="a"} 1\nvllm:prompt_tokens_total{model_name="b"} 2\n'
    found = run_of_scrape(parse_prometheus(models))
    assert (found.model, found.prompt_tokens_total) == (None, 3)
    assert "2 models" in found.reason("model")
    assert found.reason("cache_tokens") == "the metrics state no size of the KV cache"


@pytest.mark.parametrize("blocks", ["None", "many", "-1", "inf"])
def test_labels_that_state_no_number_state_nothing(blocks):
    found = run_of_scrape(parse_prometheus(f'vllm:cache_config_info{{num_gpu_blocks="{blocks}",block_size="16"}} 1\n'))
    assert found.cache_tokens is None


def test_the_format_of_the_cache_is_text():
    assert run_of_scrape(parse_prometheus('vllm:cache_config_info{cache_dtype="fp8"} 1\n')).cache_format == "fp8"


def test_what_each_rank_states_is_taken_once():
    scrapes = parse_prometheus('sglang:max_total_num_tokens{rank="0"} 500\nsglang:max_total_num_tokens{rank="1"} 500\n')
    assert run_of_scrape(scrapes).cache_tokens == 500


def test_odd_histograms_have_what_they_state():
    name = "vllm:request_queue_time_seconds"
    without_ends = run_of_scrape(parse_prometheus(f'{name}_bucket{{le="x"}} 3\n{name}_count 3\n{name}_sum 6\n'))
    assert (without_ends.queue_time.mean, without_ends.queue_time.percentiles) == (2.0, ())
    empty = f'{name}_bucket{{le="1"}} 0\n{name}_count 3\n{name}_sum 6\n'
    assert run_of_scrape(parse_prometheus(empty)).queue_time.percentiles == ()
    falling = f'{name}_bucket{{le="1"}} 5\n{name}_bucket{{le="2"}} 4\n{name}_count 4\n{name}_sum 4\n'
    assert run_of_scrape(parse_prometheus(falling)).queue_time.at(99).high == 1
    buckets = "".join(f'{name}_bucket{{le="{end}"}} {count}\n' for end, count in ((1, 1), (2, 1), (3, 2)))
    assert run_of_scrape(parse_prometheus(f"{buckets}{name}_count 2\n{name}_sum 4\n")).queue_time.at(99).low == 2


def test_metrics_of_other_programs_are_of_no_server():
    assert engine_of_scrape(parse_prometheus("node_load1 1\n")) is None
    assert run_of_scrape(()) is None
