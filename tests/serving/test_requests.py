"""Requests drawn from traffic: the same for the same seed, with the lengths and rates that were asked for."""

from statistics import fmean, median

import pytest

from planner.serving.requests import NEVER, draw_requests
from planner.serving.traffic import (
    CommonPrefix,
    ConcurrentClients,
    DailyArrivals,
    FixedLength,
    LogNormalLength,
    RandomArrivals,
    Sessions,
    SharedPrefixes,
    TracedLength,
    Traffic,
    TrafficTrace,
)

FIXED = {"input": FixedLength(tokens=100), "output": FixedLength(tokens=10)}
TRACE = TrafficTrace(
    arrival_seconds=(5.0, 6.0, 9.0),
    input_tokens=(10, 20, 30),
    output_tokens=(1, 2, 3),
    beginnings=((), (CommonPrefix(4, 16),), (CommonPrefix(4, 16),)),
)


def traffic(**changes):
    return Traffic(**{"arrivals": RandomArrivals(requests_per_second=5), **FIXED, **changes})


def gaps(requests):
    return [later - earlier for earlier, later in zip(requests.arrival, requests.arrival[1:], strict=False)]


def test_arrivals_have_the_rate_and_burstiness_that_was_asked_for():
    for burstiness in (0.25, 1.0, 4.0):
        found = gaps(
            draw_requests(traffic(arrivals=RandomArrivals(requests_per_second=5, burstiness=burstiness)), 4_000, 1)
        )
        mean = fmean(found)
        assert mean == pytest.approx(0.2, rel=0.12)
        assert mean**2 / fmean((gap - mean) ** 2 for gap in found) == pytest.approx(burstiness, rel=0.15)
    day = DailyArrivals(requests_per_second=2, hourly_shares=(1,) * 12 + (3,) * 12)
    assert fmean(gaps(draw_requests(traffic(arrivals=day), 4_000, 1))) == pytest.approx(1 / 3, rel=0.1)


def test_lengths_have_their_median_and_90th_percentile():
    lengths = LogNormalLength(median_tokens=200, p90_tokens=800, most_tokens=1_500)
    found = draw_requests(traffic(input=lengths), 4_000, 1).prompt
    assert median(found) == pytest.approx(200, rel=0.05)
    assert sorted(found)[3_600] == pytest.approx(800, rel=0.07)
    assert max(found) == 1_500


def test_the_same_seed_gives_the_same_requests_and_another_rate_the_same_lengths():
    lengths = LogNormalLength(median_tokens=200, p90_tokens=800)
    one = draw_requests(traffic(input=lengths), 50, 1)
    assert one.prompt == draw_requests(traffic(input=lengths).at_rate(9), 50, 1).prompt
    assert one.arrival == draw_requests(traffic(input=lengths), 50, 1).arrival
    assert one.prompt != draw_requests(traffic(input=lengths), 50, 2).prompt


def test_a_trace_is_replayed():
    found = draw_requests(Traffic.of_trace(TRACE, speed=2), 10, 0)
    assert (found.arrival, found.prompt, found.output) == ([0.0, 0.5, 2.0], [10, 20, 30], [1, 2, 3])
    assert found.prefixes == list(TRACE.beginnings)
    assert draw_requests(Traffic.of_trace(TRACE.evolve(beginnings=())), 2, 0).prefixes == [(), ()]


def test_prompts_and_answers_of_a_trace_stay_together():
    found = draw_requests(traffic(trace=TRACE, input=TracedLength(), output=TracedLength()), 60, 0)
    assert {(prompt, output) for prompt, output in zip(found.prompt, found.output, strict=True)} == {
        (10, 1),
        (20, 2),
        (30, 3),
    }


def test_prompts_begin_with_one_of_the_common_beginnings():
    shared = SharedPrefixes(tokens=150, prefixes=3, share=0.5)
    found = draw_requests(traffic(prefixes=shared), 400, 0)
    begun = [each[0] for each in found.prefixes if each]
    assert len(begun) == pytest.approx(200, abs=40)
    assert {each.name for each in begun} == {0, 1, 2}
    assert all(prompt == (151 if own else 100) for prompt, own in zip(found.prompt, found.prefixes, strict=True))


def test_clients_send_one_request_after_the_other():
    found = draw_requests(traffic(arrivals=ConcurrentClients(clients=2, think_seconds=3)), 5, 0)
    assert found.arrival == [0.0, 0.0, NEVER, NEVER, NEVER]
    assert found.followed_by == [2, 3, 4, -1, -1]
    assert min(found.pause) > 0
    assert found.initial == [0, 1]
    assert draw_requests(traffic(arrivals=ConcurrentClients(clients=2)), 3, 0).pause == [0.0] * 3


def test_a_turn_has_all_turns_before_it():
    found = draw_requests(traffic(sessions=Sessions(turns=5, think_seconds=2)), 300, 0)
    turns = [number for number in range(len(found)) if found.followed_by[number] >= 0]
    for number in turns:
        after = found.followed_by[number]
        assert found.prompt[after] == found.prompt[number] + found.output[number] + 100
        assert found.prefixes[after][-1].end == found.prompt[number] + found.output[number]
        assert found.session[after] == found.session[number]
    assert len(found) / (max(found.session) + 1) == pytest.approx(5, rel=0.3)
    assert min(found.pause[number] for number in turns) > 0


def test_a_session_ends_at_its_longest_context():
    found = draw_requests(traffic(sessions=Sessions(turns=50, most_tokens=400)), 100, 0)
    assert max(found.prompt) + 10 <= 400
    assert set(found.pause) == {0.0}
