"""Simulated services: their percentiles with ranges, targets, limits and the minute in detail."""

from math import sqrt
from random import Random
from statistics import fmean

import pytest
from served_traffic import CHAT, deployed, plan_on

from planner.performance.inference.steps import AS_ESTIMATED
from planner.serving.deployment import ErrorFactors
from planner.serving.simulate import batch_variance, run_once, simulate_traffic
from planner.serving.targets import Goodput, Targets, parse_latency_target
from planner.serving.traffic import ConcurrentClients, FixedLength, SharedPrefixes, Traffic, TrafficTrace


def simulated(deployment=None, traffic=CHAT, targets=None, **settings):
    found = simulate_traffic(deployment or deployed(), traffic, targets, **{"requests": 200, **settings})
    assert found is not None
    return found


def test_the_same_seed_gives_the_same_result():
    assert simulated(seed=3) == simulated(seed=3)
    assert simulated(seed=3).latencies != simulated(seed=4).latencies


def test_percentiles_ascend_within_their_ranges():
    for table in simulated().latencies:
        seconds = [row.seconds for row in table.percentiles]
        assert seconds == sorted(seconds)
        for row in table.percentiles:
            assert row.low_seconds <= row.sampling_low_seconds <= row.seconds, table.latency
            assert row.seconds <= row.sampling_high_seconds <= row.high_seconds * 1.000001, table.latency
        assert table.low_mean_seconds <= table.mean_seconds <= table.high_mean_seconds


def test_without_the_models_error_ranges_are_those_of_the_sample():
    row = simulated(ranges=False).latency("e2e").percentile(90)
    assert (row.low_seconds, row.high_seconds) == pytest.approx((row.sampling_low_seconds, row.sampling_high_seconds))


def test_targets_and_goodput():
    targets = Targets(
        limits=tuple(
            parse_latency_target(*each)
            for each in (("ttft", "p95=10s"), ("itl", "p99=1ms"), ("e2e", "mean=100s"), ("tpot", "p50=1s"))
        ),
        goodput=Goodput(share=0.9, ttft_seconds=10, tpot_seconds=1, e2e_seconds=60),
    )
    found = simulated(targets=targets)
    assert [target.holds for target in found.targets] == [True, False, True, True]
    assert found.targets[0].surely
    assert found.goodput.share == found.goodput.high_share == 1
    assert found.warm_up_requests > 0
    assert found.goodput.requests_per_second == pytest.approx(found.requests_per_second)
    assert not found.holds
    strict = simulated(targets=Targets(goodput=Goodput(ttft_seconds=1e-6)))
    assert (strict.goodput.share, strict.goodput.holds, strict.holds) == (0, False, False)


def test_an_answer_of_one_token_has_no_time_between_tokens():
    short = simulated(
        traffic=CHAT.evolve(output=FixedLength(tokens=1)),
        targets=Targets(limits=(parse_latency_target("itl", "p95=50ms"),), goodput=Goodput(tpot_seconds=0.001)),
    )
    assert short.latency("itl") is None
    assert short.latency("tpot") is None
    assert short.targets[0].holds
    assert short.goodput.share == 1


def test_more_requests_than_can_be_answered_saturate_a_service():
    slow = simulated(traffic=CHAT.at_rate(2))
    assert not slow.saturated
    full = simulated(traffic=CHAT.at_rate(80), requests=600)
    assert full.saturated
    assert full.limit in ("prompts", "sequences", "cache", "decoding")
    clients = Traffic(arrivals=ConcurrentClients(clients=500), input=CHAT.input, output=CHAT.output)
    assert not simulated(traffic=clients, requests=600).saturated


def test_a_burst_that_is_answered_before_the_last_request_saturates_nothing():
    arrivals = (*range(40), *[40.0] * 40, 400.0)
    trace = TrafficTrace(arrival_seconds=arrivals, input_tokens=(2_000,) * 81, output_tokens=(20,) * 81)
    found = simulated(traffic=Traffic.of_trace(trace), requests=81)
    assert found.latency("ttft").percentile(90).seconds > 4 * found.latency("ttft").percentile(25).seconds
    assert not found.saturated


def test_requests_that_all_arrive_at_once_wait_longer_and_longer():
    trace = TrafficTrace(arrival_seconds=(0.0,) * 81, input_tokens=(2_000,) * 81, output_tokens=(20,) * 81)
    assert simulated(traffic=Traffic.of_trace(trace), requests=81).saturated


def test_what_holds_a_service_up():
    assert simulated(traffic=CHAT.at_rate(0.01), requests=30).limit == "idle"
    assert simulated(traffic=CHAT.at_rate(1).evolve(output=FixedLength(tokens=400))).limit == "decoding"
    assert simulated(traffic=CHAT.at_rate(12).evolve(output=FixedLength(tokens=2))).limit == "prompts"
    few = deployed(plan_on(engine={"max_num_seqs": 2}))
    assert simulated(few, CHAT.at_rate(3)).limit == "sequences"
    small = deployed()._replace(cache_blocks=68)
    crowded = simulated(small, CHAT.at_rate(20))
    assert crowded.limit == "cache"
    assert crowded.cache.highest_fraction > 0.9
    assert crowded.cache.mean_fraction < crowded.cache.highest_fraction


def test_a_prefix_cache_finds_common_beginnings():
    shared = CHAT.evolve(prefixes=SharedPrefixes(tokens=400))
    found = simulated(traffic=shared)
    assert found.cache.prefix_hit_fraction == pytest.approx(0.8, abs=0.02)
    without = simulated(deployed(prefix_cache=False), shared)
    assert without.cache.prefix_hit_fraction == 0
    assert found.latency("ttft").mean_seconds < without.latency("ttft").mean_seconds


def test_requests_that_are_too_long_are_noted():
    found = simulated(deployed()._replace(cache_blocks=20))
    assert found.rejected == 200
    assert "longer than the KV cache" in found.notes[0]
    assert found.latencies == ()
    assert not found.holds


def test_a_minute_in_detail():
    found = simulated(requests=400).minute
    assert found.end_seconds - found.begin_seconds == pytest.approx(60)
    assert all(bar.arrival < found.end_seconds for bar in found.requests)
    assert all(bar.arrival <= bar.scheduled <= bar.first_token <= bar.end for bar in found.requests)
    seconds = [moment.seconds for moment in found.moments]
    assert seconds == sorted(seconds)
    assert found.begin_seconds <= seconds[0] <= seconds[-1] < found.end_seconds
    assert simulated(detail=False).minute is None
    lost = simulated(deployed()._replace(cache_blocks=68), CHAT.at_rate(20)).minute
    assert any(bar.preempted for bar in lost.requests)
    rejected = simulated(deployed()._replace(cache_blocks=20)).minute
    assert {bar.end for bar in rejected.requests} == {None}


def test_figures_of_slots_stages_and_shared_experts():
    slots = simulated(deployed(plan_on("rtx-4090", profile="llama.cpp", weights="Q4_K_M")), CHAT.at_rate(0.5))
    assert slots.cache.capacity_tokens is slots.cache.highest_fraction is None
    batches = simulated(deployed(plan_on(profile="hf", batch=8)), CHAT.at_rate(0.5))
    assert batches.minute is None
    stages = deployed(plan_on("l40s", 2, parallel={"pipeline": 2}))
    assert "Pipeline stages" in simulated(stages).notes[0]
    mixture = plan_on(
        "h100-sxm5-80gb", 2, weights="fp8", parallel={"data": 2, "expert": 2, "sharing": "manual"}
    ).evolve(model={"id": "Qwen/Qwen3-30B-A3B-Instruct-2507"})
    shared = simulated(deployed(mixture))
    assert "share experts" in shared.notes[0]
    assert shared.replicas == 2


def test_a_simulation_stops_when_it_is_asked_to():
    assert simulate_traffic(deployed(), CHAT, requests=50, stop=lambda: True) is None
    asked = iter([False] * 3 + [True] * 100)
    assert simulate_traffic(deployed(), CHAT, requests=5, stop=lambda: next(asked)) is None
    assert run_once(deployed(), CHAT, 50, 0, AS_ESTIMATED, stop=lambda: True) is None


def test_slower_steps_are_the_upper_end():
    wide = deployed()._replace(errors=ErrorFactors(1.5, 1.5))
    narrow = deployed()._replace(errors=ErrorFactors(1.01, 1.01))
    assert simulated(wide).latency("tpot").high_mean_seconds > simulated(narrow).latency("tpot").high_mean_seconds


def test_the_error_of_a_mean_of_neighbours_that_are_alike():
    random = Random(0)
    independent = [random.gauss(0, 1) for _ in range(4_000)]
    assert sqrt(batch_variance(independent)) == pytest.approx(1 / sqrt(4_000), rel=0.4)
    alike = [value for value in independent[:400] for _ in range(10)]
    assert sqrt(batch_variance(alike)) == pytest.approx(1 / sqrt(400), rel=0.4)
    assert batch_variance([1.0]) == 0
    assert batch_variance([1.0, 2.0]) == pytest.approx(0.25)


def test_neighbours_that_are_alike_widen_the_ranges():
    def middle(lengths):
        trace = TrafficTrace(arrival_seconds=tuple(range(400)), input_tokens=lengths, output_tokens=(5,) * 400)
        return simulated(traffic=Traffic.of_trace(trace), requests=400, ranges=False).latency("ttft").percentile(50)

    rising = middle(tuple(500 + 8 * number for number in range(400)))
    mixed = middle(tuple(500 + 8 * (37 * number % 400) for number in range(400)))
    assert rising.seconds == pytest.approx(mixed.seconds)
    assert rising.high_seconds - rising.low_seconds > 2 * (mixed.high_seconds - mixed.low_seconds)


def test_a_trace_has_no_warm_up():
    trace = TrafficTrace(arrival_seconds=(0.0, 1.0), input_tokens=(10, 10), output_tokens=(5, 5))
    found = simulated(traffic=Traffic.of_trace(trace))
    assert (found.requests, found.warm_up_requests) == (2, 0)
    alike = TrafficTrace(arrival_seconds=(0.0,), input_tokens=(10,), output_tokens=(5,))
    assert simulated(traffic=Traffic.of_trace(alike)).latency("ttft").number == 1


def test_percentiles_of_several_seeds_lie_in_the_samples_range():
    one = simulated(requests=800, ranges=False).latency("e2e").percentile(90)
    others = [
        simulated(requests=800, ranges=False, seed=seed).latency("e2e").percentile(90).seconds for seed in range(1, 9)
    ]
    width = one.sampling_high_seconds - one.sampling_low_seconds
    assert one.sampling_low_seconds - width < fmean(others) < one.sampling_high_seconds + width
