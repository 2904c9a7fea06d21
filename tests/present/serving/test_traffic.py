import pytest

from planner.present.serving.traffic import (
    arrivals_phrase,
    goodput_text,
    limit_text,
    rate_text,
    target_text,
    targets_phrase,
    targets_summary,
    trace_sentence,
    traffic_sentence,
)
from planner.serving.targets import Goodput, LatencyTarget, Targets
from planner.serving.traffic import (
    ConcurrentClients,
    DailyArrivals,
    FixedLength,
    LogNormalLength,
    RandomArrivals,
    Sessions,
    SharedPrefixes,
    Traffic,
    TrafficTrace,
)

EVEN = Traffic(
    arrivals=RandomArrivals(requests_per_second=4), input=FixedLength(tokens=1_500), output=FixedLength(tokens=300)
)


def test_traffic_is_told_with_its_rate_and_lengths():
    assert traffic_sentence(EVEN) == "4 requests/s, prompts of 1,500 tokens, answers of 300"
    spread = EVEN.evolve(input=LogNormalLength(median_tokens=1_020, p90_tokens=2_734))
    assert "prompts of 1,020 tokens (one in ten over 2,734)" in traffic_sentence(spread)


def test_beginnings_and_conversations_are_told():
    shared = EVEN.evolve(prefixes=SharedPrefixes(tokens=800, prefixes=3, share=0.5), sessions=Sessions(turns=4))
    assert traffic_sentence(shared).endswith(
        "3 shared prefixs of 800 tokens in 50\u2009% of them, 4 turns in each conversation"
    )
    always = EVEN.evolve(prefixes=SharedPrefixes(tokens=800))
    assert traffic_sentence(always).endswith("1 shared prefix of 800 tokens")


def test_lengths_of_a_trace_are_its_own():
    trace = TrafficTrace(arrival_seconds=(0.0, 0.5), input_tokens=(10, 20), output_tokens=(1, 2))
    told = traffic_sentence(Traffic.of_trace(trace))
    assert told == "2 requests/s, prompts of the trace's numbers of tokens, answers of the trace's numbers of tokens"
    at_once = TrafficTrace(arrival_seconds=(0.0, 0.0), input_tokens=(10, 20), output_tokens=(1, 2))
    assert arrivals_phrase(Traffic.of_trace(at_once)) == "all requests at the same moment"


def test_a_trace_file_is_told_with_its_requests_and_those_that_are_simulated():
    trace = TrafficTrace(arrival_seconds=(0.0, 0.5), input_tokens=(10, 20), output_tokens=(1, 2))
    assert trace_sentence(Traffic.of_trace(trace), "chat.csv", 2) == "2 requests of chat.csv, 2 requests/s"
    assert trace_sentence(Traffic.of_trace(trace), "a.csv", 1) == "the first 1 of 2 requests of a.csv, 2 requests/s"
    assert trace_sentence(EVEN, "none.csv", 1) == "0 requests of none.csv, 4 requests/s"


@pytest.mark.parametrize(
    ("arrivals", "told"),
    [
        (RandomArrivals(requests_per_second=2, burstiness=0.5), "2 requests/s in bursts"),
        (RandomArrivals(requests_per_second=2, burstiness=4), "2 requests/s evenly spread"),
        (
            DailyArrivals(requests_per_second=1, hourly_shares=(1.0,) * 23 + (2.0,)),
            "1.92 requests/s in the busiest hour",
        ),
        (ConcurrentClients(clients=32), "32 clients at once"),
        (ConcurrentClients(clients=1, think_seconds=2), "1 client at once, 2.00\u2009s apart"),
    ],
)
def test_arrivals_are_told_as_they_come(arrivals, told):
    assert arrivals_phrase(EVEN.evolve(arrivals=arrivals)) == told


def test_a_rate_has_the_unit_in_which_it_is_not_below_one():
    assert rate_text(0.25) == "15 requests/min"
    assert rate_text(0.001) == "3.6 requests/h"
    assert rate_text(0.0001) == "8.64 requests/day"


def test_a_limit_has_the_unit_in_which_people_give_it():
    assert [limit_text(seconds) for seconds in (0.05, 1.5, 3_600)] == ["50\u2009ms", "1.5\u2009s", "60\u2009min"]


def test_targets_are_told_one_after_the_other():
    first = LatencyTarget(latency="ttft", seconds=1)
    share = Goodput(share=0.99, ttft_seconds=1, tpot_seconds=0.05)
    assert target_text(first) == "p95 time to first token ≤ 1\u2009s"
    assert targets_phrase(Targets()) == targets_summary(Targets()) == "no targets"
    assert targets_summary(Targets(limits=(first,))) == "first token ≤ 1\u2009s"
    assert goodput_text(share).startswith("99\u2009% of the requests within a time to first token of 1\u2009s and")
    assert targets_phrase(Targets(limits=(first,), goodput=share)) == f"{target_text(first)} and {goodput_text(share)}"
