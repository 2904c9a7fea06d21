import pytest
from service_samples import FIRST_TOKEN, PER_TOKEN, goodput, held, latencies, simulation

from planner.present.serving.simulation import (
    latency_outcome,
    load_sentence,
    percentile_columns,
    rate_columns,
    sample_sentence,
    simulation_outcome,
    simulation_sentence,
    target_rows,
)
from planner.serving.result import CacheUse, RatePoint
from planner.serving.targets import Goodput

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
        ({}, "yes", "All latency targets are met."),
        ({"targets": (held(high=2),)}, "probably", "All latency targets are probably met"),
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
