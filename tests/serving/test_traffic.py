"""Traffic: rates, changes of rates and lengths, and what cannot be."""

import pytest
from each_record import for_each

from planner.errors import SpecError
from planner.serving.requests import draw_requests
from planner.serving.traffic import (
    CommonPrefix,
    ConcurrentClients,
    DailyArrivals,
    FixedLength,
    LogNormalLength,
    RandomArrivals,
    Sessions,
    TracedArrivals,
    TracedLength,
    Traffic,
    TrafficTrace,
    load_traffic_presets,
    share_of_traffic,
)

TRACE = TrafficTrace(arrival_seconds=(0.0, 1.0, 4.0), input_tokens=(10, 20, 30), output_tokens=(1, 2, 3))
FIXED = {"input": FixedLength(tokens=100), "output": FixedLength(tokens=10)}


def at(rate):
    return Traffic(arrivals=RandomArrivals(requests_per_second=rate), **FIXED)


def test_the_rate_is_that_of_the_busiest_hour_with_all_turns():
    day = DailyArrivals(requests_per_second=2, hourly_shares=(1,) * 12 + (3,) * 12)
    assert Traffic(arrivals=day, **FIXED).requests_per_second == pytest.approx(3.0)
    assert at(2).evolve(sessions=Sessions(turns=4)).requests_per_second == 8
    assert Traffic.of_trace(TRACE, speed=2).requests_per_second == 1.0
    assert Traffic(arrivals=ConcurrentClients(clients=3), **FIXED).requests_per_second is None
    at_once = TRACE.evolve(arrival_seconds=(0.0, 0.0, 0.0))
    assert Traffic.of_trace(at_once).requests_per_second is None


def test_another_rate_keeps_the_shape():
    assert at(2).at_rate(5).arrivals.requests_per_second == 5
    assert Traffic.of_trace(TRACE).at_rate(1).arrivals.speed == 2
    with pytest.raises(ValueError, match="no rate"):
        Traffic(arrivals=ConcurrentClients(clients=3), **FIXED).at_rate(1)


def test_longer_prompts_and_answers():
    longer = at(1).with_longer(1.5, 2.0)
    assert (longer.input.tokens, longer.output.tokens) == (150, 20)
    normal = LogNormalLength(median_tokens=100, p90_tokens=300, most_tokens=1_000)
    spread = at(1).evolve(input=normal).with_longer(input_factor=1.1)
    lengths = (spread.input.median_tokens, spread.input.p90_tokens, spread.input.most_tokens)
    assert lengths == pytest.approx((110, 330, 1_100))
    traced = Traffic.of_trace(TRACE).with_longer(output_factor=2)
    assert traced.trace.output_tokens == (2, 4, 6)
    assert traced.input == TracedLength()


def test_a_part_of_a_trace():
    shared = ((CommonPrefix(1, 5),), (), (CommonPrefix(1, 5),))
    part = TRACE.evolve(beginnings=shared).each(2)
    assert (part.arrival_seconds, part.input_tokens, part.beginnings) == ((0.0, 4.0), (10, 30), (shared[0], shared[2]))


def test_each_replica_gets_its_share():
    one = at(4)
    assert share_of_traffic(one, 1) is one
    share = share_of_traffic(at(4), 4).arrivals
    assert (share.requests_per_second, share.burstiness) == (1.0, 4.0)
    day = one.evolve(arrivals=DailyArrivals(requests_per_second=8, hourly_shares=(1,) * 24))
    assert share_of_traffic(day, 4).arrivals.requests_per_second == 2
    assert share_of_traffic(one.evolve(arrivals=ConcurrentClients(clients=5)), 2).arrivals.clients == 3
    assert share_of_traffic(Traffic.of_trace(TRACE), 2).trace == TRACE.each(2)


@for_each(
    "case",
    (
        (lambda: DailyArrivals(requests_per_second=1, hourly_shares=(1,) * 23), "24 non-negative"),
        (lambda: LogNormalLength(median_tokens=100, p90_tokens=50), "p90_tokens must be"),
        (lambda: LogNormalLength(median_tokens=100, p90_tokens=150, most_tokens=50), "most_tokens must be"),
        (lambda: TRACE.evolve(arrival_seconds=(), input_tokens=(), output_tokens=()), "1 to 1,000,000"),
        (lambda: TRACE.evolve(input_tokens=(1,)), "the same length"),
        (lambda: TRACE.evolve(beginnings=((),)), "length of the trace"),
        (lambda: TRACE.evolve(output_tokens=(0, 1, 1)), "at least one"),
        (lambda: TRACE.evolve(arrival_seconds=(1.0, 0.0, 2.0)), "must not decrease"),
        (lambda: Traffic(arrivals=TracedArrivals(), **FIXED), "there is no trace"),
        (lambda: Traffic.of_trace(TRACE).evolve(sessions=Sessions(turns=2)), "sessions cannot be added"),
        (
            lambda: Traffic(arrivals=ConcurrentClients(clients=1), sessions=Sessions(turns=2), **FIXED),
            "one request after",
        ),
    ),
)
def test_what_cannot_be_is_refused(case):
    make, words = case
    with pytest.raises((SpecError, ValueError), match=words):
        make()


def test_requests_may_come_in_any_bursts():
    assert RandomArrivals(requests_per_second=1, burstiness=0.5).burstiness == 0.5
    with pytest.raises(SpecError, match="burstiness"):
        RandomArrivals(requests_per_second=1, burstiness=0)


def test_each_kind_of_service_has_traffic_targets_and_sources():
    presets = load_traffic_presets()
    assert {preset.id for preset in presets} == {"chat", "rag", "code-completion", "agents", "summaries", "batch"}
    for preset in presets:
        drawn = draw_requests(preset.traffic, 50, 0)
        assert min(drawn.prompt) > 0, preset.id
        assert preset.targets.limits, preset.id
        assert all(len(source) > 20 for source in preset.sources), preset.id


def test_a_turn_of_an_agent_repeats_what_went_before():
    agents = next(preset for preset in load_traffic_presets() if preset.id == "agents")
    drawn = draw_requests(agents.traffic, 3_000, 0)
    # Without the limit of 128,000 tokens the mean prompt of the source is 67,800 tokens.
    assert 40_000 < sum(drawn.prompt) / len(drawn) < 68_000
    assert max(drawn.prompt) <= 128_000
