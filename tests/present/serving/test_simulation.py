import pytest
from service_samples import FIRST_TOKEN, PER_TOKEN, goodput, held, latencies, simulation

from planner.plan.serving.measured import MeasuredComparison, compare_with_run, traffic_of_run
from planner.present.serving.simulation import (
    comparison_heading,
    comparison_verdict,
    latency_outcome,
    load_sentence,
    measured_columns,
    percentile_columns,
    rate_columns,
    sample_sentence,
    serving_view,
    simulation_outcome,
    simulation_sentence,
    target_rows,
)
from planner.serving.result import CacheUse, RatePoint
from planner.serving.targets import Goodput, Targets
from planner.serving_runs.record import Distribution, MeasuredPercentile, serving_run

WANTED = Goodput(share=0.95, ttft_seconds=1.0)


@pytest.mark.parametrize(
    ("target", "outcome", "word"),
    [
        (held(), "yes", "met"),
        (held(high=1.5), "probably", "probably met"),
        (held(seconds=1.2, low=0.8, high=2.0), "probably-not", "probably missed"),
        (held(seconds=1.2, low=1.1, high=2.0), "no", "missed"),
    ],
)
def test_a_target_is_held_as_surely_as_its_range_says(target, outcome, word):
    (row,) = target_rows(simulation(targets=(target,)))
    assert (row.outcome, row.word) == (outcome, word)
    assert row.title == "p95 time to first token ≤ 1\u2009s"


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (goodput(0.99, 0.97, 1.0, holds=True), "yes"),
        (goodput(0.96, 0.9, 1.0, holds=True), "probably"),
        (goodput(0.9, 0.8, 0.96, holds=False), "probably-not"),
        (goodput(0.5, 0.4, 0.6, holds=False), "no"),
    ],
)
def test_a_goodput_target_has_a_row_of_its_own(found, outcome):
    rows = target_rows(simulation(targets=(), goodput=found), WANTED)
    assert [row.outcome for row in rows] == [outcome]
    assert rows[0].figure.count("%") == 3
    assert target_rows(simulation(targets=(), goodput=found)) == ()


@pytest.mark.parametrize(
    ("changes", "outcome", "begin"),
    [
        ({"unsupported": "no"}, "no", "This service cannot be simulated: no."),
        ({"rejected": 3}, "no", "3 of 2,000 requests need more KV cache than there is."),
        ({"saturated": True, "requests_per_second": 2.5}, "no", "It cannot keep up: it completes 2.5 of 4 requests/s"),
        ({"saturated": True, "offered_requests_per_second": None}, "no", "It cannot keep up: it completes 4"),
        ({"targets": ()}, "yes", "It keeps up with the load of 4 requests/s."),
        ({"targets": (), "offered_requests_per_second": None}, "yes", "It keeps up with the load."),
        ({}, "yes", "The latency target is met."),
        ({"targets": (held(), held(PER_TOKEN, 0.04, 0.03, 0.045))}, "yes", "All latency targets are met."),
        ({"targets": (held(high=2),)}, "probably", "Probably meets its latency targets"),
        ({"targets": (held(), held(PER_TOKEN, 0.06, 0.04, 0.1))}, "probably-not", "It probably misses"),
        ({"targets": (held(), held(PER_TOKEN, 0.09, 0.06, 0.1))}, "no", "It misses a latency target."),
    ],
)
def test_the_answer_is_the_worst_outcome_of_all_targets(changes, outcome, begin):
    found = simulation(**changes)
    assert simulation_outcome(found) == outcome
    assert simulation_sentence(found).startswith(begin)


def test_the_ends_of_a_wide_range_have_units_of_their_own():
    (row,) = target_rows(simulation(targets=(held(seconds=0.5, low=0.25, high=170.0),)))
    assert row.figure == "500\u2009ms (250\u2009ms – 2.83\u2009min)"


def test_one_target_is_looked_up_by_itself():
    found = simulation(targets=(held(), held(PER_TOKEN, 0.06, 0.04, 0.1)))
    assert latency_outcome(found, PER_TOKEN) == "probably-not"
    assert latency_outcome(simulation(targets=()), FIRST_TOKEN) is None


def _cache(**changes):
    fields = {"capacity_tokens": 100, "mean_fraction": 0.3, "highest_fraction": 1.0, "preemptions": 0}
    return CacheUse(**(fields | {"prefix_hit_fraction": 0.0} | changes))


def test_the_load_names_limit_use_and_cache():
    told = load_sentence(simulation())
    assert told.startswith("Limited by decoding")
    assert "GPUs busy 75\u2009% of the time" in told
    assert "KV cache at most 50\u2009% full." in told
    assert "; 1 preemption, after which" in load_sentence(simulation(cache=_cache(preemptions=1)))
    assert "; 12 preemptions" in load_sentence(simulation(cache=_cache(preemptions=12)))
    assert "40\u2009% of the prompt tokens" in load_sentence(simulation(cache=_cache(prefix_hit_fraction=0.4)))
    assert "full" not in load_sentence(simulation(cache=None))


def test_the_sample_leaves_the_warm_up_out():
    assert sample_sentence(simulation()).startswith("1,800 requests in 8.33\u2009min, after a warm-up of 200.")


def test_percentiles_have_their_ranges():
    title, median, *_, last = percentile_columns()
    table = latencies()
    assert (title.text(table), median.title, last.title) == ("First token", "Median", "p99")
    assert last.text(table) == "1.20\u2009s (0.600 – 2.40)"
    assert last.value(table) == pytest.approx(1.2)


def test_points_over_the_rate_have_both_percentiles():
    point = RatePoint(requests_per_second=4, simulation=simulation(saturated=True))
    texts = {column.key: column.text(point) for column in rate_columns(("ttft", "tpot", "itl"))}
    assert texts["rate"] == texts["done"] == "4"
    assert texts["tokens"] == "1,200"
    assert (texts["ttft-p50"], texts["ttft-p95"], texts["tpot-p95"]) == ("0.4", "0.8", "40")
    assert texts["itl-p95"] == "unknown"
    assert texts["keeps_up"] == "no"


TARGETS = Targets(limits=(FIRST_TOKEN, PER_TOKEN))


def test_the_card_has_a_row_for_each_time_beside_its_target():
    found = simulation(targets=(held(), held(PER_TOKEN, 0.04, 0.02, 0.08)))
    view = serving_view(found, TARGETS, 95.0)
    assert [(row.title, row.target) for row in view.rows] == [
        ("First token", "≤ 1\u2009s, met"),
        ("Per token", "≤ 50\u2009ms, probably met"),
        ("End to end", ""),
    ]
    assert view.percent == "p95"
    assert view.rows[0].percentile == "800\u2009ms (400 – 1,600)"
    assert "First token: median 400\u2009ms, p95 800\u2009ms (400 – 1,600), ≤ 1\u2009s, met" in view.text


def test_the_card_leaves_out_times_that_no_request_had():
    view = serving_view(simulation(latencies=(latencies(),), targets=()), Targets(), 99.0)
    assert [row.title for row in view.rows] == ["First token"]


def test_the_card_says_why_nothing_was_simulated():
    view = serving_view(simulation(unsupported="no memory is left for the KV cache"), TARGETS, 95.0)
    assert view.rows == ()
    assert view.text == "This service cannot be simulated: no memory is left for the KV cache."


CACHE = CacheUse(capacity_tokens=1_000, mean_fraction=0.1, highest_fraction=0.2, preemptions=0, prefix_hit_fraction=0.0)


def compared(first: float = 0.4, program: str = "vllm", found=None, **values) -> MeasuredComparison:
    bucket = MeasuredPercentile(percent=50, value=first, low=first / 2, high=first)
    fields = {
        "engine": "vllm",
        "concurrency": 4,
        "prompt_tokens": Distribution(mean=100),
        "answer_tokens": Distribution(mean=20),
        "first_token": Distribution(mean=first, percentiles=(bucket,)),
        "requests_per_s": 2.0,
    }
    run = serving_run("vllm-bench", {name: value for name, value in (fields | values).items() if value is not None})
    return compare_with_run(run, program, traffic_of_run(run), found or simulation(latencies=(latencies(),)))


def test_the_heading_names_source_and_traffic():
    assert comparison_heading(compared()) == (
        "Measured by a result file of vllm bench serve: 4 clients at once, prompts of 100 tokens, answers of 20."
    )


def test_the_verdict_counts_what_lies_in_the_range():
    assert comparison_verdict(compared()) == "2 of 2 measured latencies lie in the simulated range."
    assert comparison_verdict(compared(1.2)) == "1 of 2 measured latencies lie in the simulated range."
    assert comparison_verdict(compared(first_token=None)) == "The file states no latency that is simulated."


def test_what_may_explain_a_difference_is_told():
    off = simulation(latencies=(latencies(),), cache=CACHE)
    assert "The server was SGLang, and vLLM is simulated." in comparison_verdict(
        compared(9, engine="sglang", found=off)
    )
    assert "The server was mine, and vLLM is simulated." in comparison_verdict(compared(9, engine="mine", found=off))
    told = comparison_verdict(
        compared(9, engine=None, failed_requests=1, preemptions=3, prefix_hit_tokens=50, found=off)
    )
    assert "1 request failed" in told
    assert "preempted 3 requests, the simulation 0" in told
    assert "--shared-prefix" in told
    assert "does not name its program" in told
    waiting = simulation(latencies=(latencies(),), cache=None, saturated=True)
    assert "cannot keep up" in comparison_verdict(compared(9, preemptions=0, found=waiting))


def test_rows_have_both_figures_and_their_difference():
    mean, median, rate = compared(0.2).figures
    figure, measured, simulated, difference, met = measured_columns()
    assert [figure.text(row) for row in (mean, median, rate)] == ["First token, mean", "First token, p50", "requests/s"]
    assert measured.text(mean) == "200\u2009ms"
    assert measured.text(median) == "200\u2009ms (100 – 200)"
    assert simulated.text(mean) == "400\u2009ms (200 – 800)"
    assert (measured.text(rate), simulated.text(rate)) == ("2", "4")
    assert difference.text(rate) == "+100\u2009%"
    assert [met.text(row) for row in (mean, rate)] == ["yes", "–"]
    assert difference.text(compared(0.0).figures[0]) == "–"
