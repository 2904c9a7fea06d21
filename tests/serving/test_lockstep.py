"""Replicas that share experts take their steps together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_traffic import RoundTimes, asked, rules

from planner.serving.cluster import serve
from planner.serving.lockstep import LockstepGroup
from planner.serving.replica import Replica
from planner.serving.requests import NEVER


def group_of(requests, times, number=2, **changes):
    return [Replica(index, times, rules(**changes), None, requests) for index in range(number)]


def test_a_step_lasts_as_long_as_that_of_the_slowest_rank():
    requests = asked((0.0, 10, 6), (0.02, 100, 2))
    ranks = group_of(requests, RoundTimes(prompt_token=0.001))
    assert serve(ranks, requests, "round-robin", lambda: False, ranks=2)
    # The prompt of 100 tokens on the second rank holds up the answer on the first for 0.1 s.
    assert requests.end[0] == pytest.approx(0.01 + 5 * 0.01 - 0.01 + 0.1)
    assert ranks[0].clock == ranks[1].clock


def test_experts_take_the_tokens_of_all_ranks():
    requests = asked((0.0, 1, 11), (0.0, 1, 11))
    ranks = group_of(requests, RoundTimes(shared=0.001))
    assert serve(ranks, requests, "round-robin", lambda: False, ranks=2)
    assert requests.end[0] == pytest.approx(0.002 + 10 * (0.01 + 0.002))


def test_a_group_stops_before_a_later_step_and_waits_for_arrivals():
    requests = asked((1.0, 1, 3), (5.0, 1, 3))
    ranks = group_of(requests, RoundTimes())
    group = LockstepGroup(ranks)
    for number in range(2):
        ranks[number].submit(number, requests.arrival[number])
    group.advance(0.5)
    assert (group.clock, group.load) == (0.0, 2)
    group.advance(1.005)
    assert requests.first[0] == 1.0
    assert group.clock == pytest.approx(1.01)
    group.advance()
    assert requests.end == pytest.approx([1.02, 5.02])
    assert group.load == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=20))
def test_no_request_is_lost_by_a_group(wanted):
    requests = asked(*sorted(wanted))
    ranks = group_of(requests, RoundTimes(prompt_token=1e-4, shared=1e-5), 2, schedules_ahead=True)
    assert serve(ranks, requests, "round-robin", lambda: False, ranks=2)
    assert NEVER not in requests.end
