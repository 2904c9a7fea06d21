import pytest

from planner.errors import SpecError
from planner.plan.serving.measured import compare_with_run, traffic_of_run
from planner.serving.result import CacheUse, LatencyTable, Percentile, ServingSimulation
from planner.serving.traffic import ConcurrentClients, FixedLength, LogNormalLength, RandomArrivals
from planner.serving_runs.record import Distribution, MeasuredPercentile, serving_run

LENGTHS = {"prompt_tokens": Distribution(mean=1_000), "answer_tokens": Distribution(mean=200)}


def _percentile(percent: float, value: float, half: float = 0.0) -> MeasuredPercentile:
    return MeasuredPercentile(percent=percent, value=value, low=value - half, high=value + half)


def test_clients_and_rates_are_those_of_the_run():
    rated = serving_run("vllm-bench", {"request_rate_per_s": 2.0, "concurrency": 8, **LENGTHS})
    assert traffic_of_run(rated).arrivals == RandomArrivals(requests_per_second=2.0)
    clients = serving_run("vllm-bench", {"concurrency": 7.6, "requests_per_s": 3.0, **LENGTHS})
    assert traffic_of_run(clients).arrivals == ConcurrentClients(clients=8)
    done = serving_run("vllm-metrics", {"requests_per_s": 3.0, **LENGTHS})
    assert traffic_of_run(done).arrivals == RandomArrivals(requests_per_second=3.0)
    with pytest.raises(SpecError, match="does not say how many requests arrive"):
        traffic_of_run(serving_run("vllm-metrics", LENGTHS))


def test_lengths_are_as_spread_as_the_run_states():
    spread = Distribution(mean=900, percentiles=(_percentile(50, 800), _percentile(90, 1_600)))
    totals = {"prompt_tokens": spread, "answer_tokens_total": 600, "completed_requests": 10, "concurrency": 1}
    traffic = traffic_of_run(serving_run("guidellm", totals))
    assert traffic.input == LogNormalLength(median_tokens=800, p90_tokens=1_600)
    assert traffic.output == FixedLength(tokens=60)
    assert traffic_of_run(serving_run("guidellm", {"concurrency": 1, **LENGTHS})).input == FixedLength(tokens=1_000)


@pytest.mark.parametrize(("missing", "option"), [("prompt_tokens", "--input"), ("answer_tokens", "--output")])
def test_a_run_without_lengths_says_which_option_adds_them(missing, option):
    known = {name: tokens for name, tokens in LENGTHS.items() if name != missing}
    with pytest.raises(SpecError) as caught:
        traffic_of_run(serving_run("aiperf", {"concurrency": 4, **known}))
    assert option in caught.value.hint


def _simulation(**changes: object) -> ServingSimulation:
    table = LatencyTable(
        latency="ttft",
        number=100,
        mean_seconds=0.2,
        low_mean_seconds=0.1,
        high_mean_seconds=0.4,
        percentiles=(Percentile(50.0, 0.2, 0.1, 0.4, 0.2, 0.2), Percentile(99.0, 0.4, 0.2, 0.8, 0.4, 0.4)),
    )
    cache = CacheUse(
        capacity_tokens=1_000, mean_fraction=0.1, highest_fraction=0.2, preemptions=0, prefix_hit_fraction=0.0
    )
    fields: dict[str, object] = {"latencies": (table,), "requests_per_second": 3.0, "cache": cache}
    return ServingSimulation.model_validate(fields | changes)


def test_each_measured_figure_stands_beside_the_simulated_one():
    first = Distribution(mean=0.3, percentiles=(_percentile(0, 0.1), _percentile(50, 0.5), _percentile(99, 1.0, 0.3)))
    run = serving_run(
        "vllm-bench",
        {
            "first_token": first,
            "end_to_end": Distribution(mean=1),
            "requests_per_s": 2,
            "cache_tokens": 900,
            "concurrency": 1,
        }
        | LENGTHS,
    )
    found = compare_with_run(run, "vllm", traffic_of_run(run), _simulation())
    told = [(figure.latency, figure.figure, figure.simulated, figure.is_met) for figure in found.figures]
    assert told == [
        ("ttft", "mean", 0.2, True),
        ("ttft", "p50", 0.2, False),
        ("ttft", "p99", 0.4, True),
        (None, "requests/s", 3.0, None),
        (None, "KV cache, tokens", 1_000, None),
    ]


def test_figures_that_only_one_side_has_are_left_out():
    run = serving_run(
        "vllm-bench", {"output_tokens_per_s": 100, "first_token": Distribution(count=3), "concurrency": 1} | LENGTHS
    )
    found = compare_with_run(run, "vllm", traffic_of_run(run), _simulation(cache=None))
    assert [figure.figure for figure in found.figures] == ["output tokens/s"]
