"""Replicas behind a router, and the limits that queueing theory has closed forms for."""

from math import factorial
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_traffic import CHAT, RoundTimes, asked, deployed, plan_on, rules

from planner.performance.inference.steps import AS_ESTIMATED
from planner.serving.cluster import LockstepGroup, finish, make_replica, run_disaggregated, serve, step_times
from planner.serving.deployment import Disaggregation
from planner.serving.replica import Replica, StaticReplica
from planner.serving.requests import NEVER, Requests, draw_requests
from planner.serving.simulate import run_once
from planner.serving.traffic import CommonPrefix, FixedLength


def replicas_for(requests, number, times=None, **changes):
    return [Replica(index, times or RoundTimes(), rules(**changes), None, requests) for index in range(number)]


def never():
    return False


def queue_seconds(requests):
    return fmean(begin - come for begin, come in zip(requests.scheduled, requests.arrival, strict=True))


def poisson(rate, number, outputs, seed=0):
    random, time, found = Random(seed), 0.0, Requests()
    for _ in range(number):
        time += random.expovariate(rate)
        found.add(time, 1, outputs(random))
    return found


def test_one_sequence_at_a_time_waits_as_in_an_m_g_1_queue():
    # Answers of 11 or 91 tokens take 0.1 or 0.9 s: the mean is 0.5 s and the mean square 0.41 s² (Pollaczek-Khinchine).
    requests = poisson(1.2, 8_000, lambda random: random.choice((11, 91)))
    assert serve(replicas_for(requests, 1, sequences=1), requests, "round-robin", never)
    assert queue_seconds(requests) == pytest.approx(1.2 * 0.41 / (2 * (1 - 0.6)), rel=0.15)


def test_several_sequences_wait_as_in_an_m_m_c_queue():
    # Geometric answers of 200 steps of 5 ms on average, on 4 slots that do not slow each other down (Erlang's C).
    requests = poisson(3.2, 6_000, lambda random: 2 + int(random.expovariate(1 / 200)))
    replica = replicas_for(requests, 1, RoundTimes(step=0.005), sequences=4)
    assert serve(replica, requests, "round-robin", never)
    service = fmean(end - begin for end, begin in zip(requests.end, requests.scheduled, strict=True))
    offered = 3.2 * service
    last = offered**4 / factorial(4) * 4 / (4 - offered)
    waits = last / (sum(offered**k / factorial(k) for k in range(4)) + last)
    assert queue_seconds(requests) == pytest.approx(waits * service / (4 - offered), rel=0.25)


def test_as_many_requests_are_in_the_system_as_littles_law_says():
    requests = poisson(2.0, 5_000, lambda _: 101)
    replica = replicas_for(requests, 1)
    assert serve(replica, requests, "round-robin", never)
    spent = sum(end - come for end, come in zip(requests.end, requests.arrival, strict=True))
    present = spent / replica[0].clock
    assert present == pytest.approx(2.0 * spent / len(requests), rel=0.05)


def test_requests_go_to_replicas_in_turn_or_to_the_idlest():
    requests = asked((0.0, 10, 500), (0.1, 10, 2), (0.2, 10, 2), (0.3, 10, 2))
    assert serve(replicas_for(requests, 2), requests, "round-robin", never)
    assert requests.replica == [0, 1, 0, 1]
    requests = asked((0.0, 10, 500), (0.1, 10, 2), (0.2, 10, 2), (0.3, 10, 2))
    assert serve(replicas_for(requests, 2), requests, "least-loaded", never)
    assert requests.replica == [0, 1, 1, 1]


def test_a_request_goes_where_its_beginning_is_cached_unless_too_many_wait_there():
    requests = Requests()
    shared = (CommonPrefix(0, 64),)
    requests.add(0.0, 80, 2)
    requests.add(0.0, 80, 2, shared)
    for number in range(12):
        requests.add(1.0 + number / 1_000, 80, 900, shared)
    replicas = [Replica(index, RoundTimes(), rules(caches_prefixes=True), 900, requests) for index in range(2)]
    assert serve(replicas, requests, "prefix-aware", never)
    home = requests.replica[1]
    assert requests.replica[2:6] == [home] * 4
    assert 1 - home in requests.replica[6:]


def test_a_run_stops_when_it_is_asked_to():
    for router in ("round-robin", "least-loaded"):
        requests = asked(*[(number / 10, 10, 50) for number in range(20)])
        assert not serve(replicas_for(requests, 2), requests, router, lambda: True)
    assert requests.replica[1:] == [-1] * 19  # it is asked with the first request
    requests = asked((0.0, 10, 50))
    assert finish(replicas_for(requests, 1)[0], lambda: True)


def test_replicas_follow_their_deployment():
    requests = asked((0.0, 100, 10))
    paged, batched = deployed(), deployed(plan_on(profile="hf", batch=8))
    times = step_times(paged, requests, AS_ESTIMATED)
    made = make_replica(paged, 0, times, requests, (0.0, 1.0))
    assert isinstance(made, Replica)
    assert made.capacity * 16 == paged.cache_tokens
    static_batching = make_replica(batched, 1, times, requests, (0.0, 1.0))
    assert isinstance(static_batching, StaticReplica)
    # Batches are answered by replicas that share nothing, whatever number of ranks is named.
    assert serve([static_batching], requests, "round-robin", never, 2)
    assert requests.end[0] > 0


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 1), st.integers(1, 60), st.integers(1, 40)), max_size=20))
def test_each_request_is_served_once_by_one_replica(number, wanted):
    requests = asked(*sorted(wanted))
    replicas = replicas_for(requests, number)
    assert serve(replicas, requests, "least-loaded", never)
    assert NEVER not in requests.end
    assert set(requests.replica) <= set(range(number))
    assert sum(replica.intervals.number for replica in replicas) == sum(requests.output) - len(requests)


@given(st.integers(1, 3), st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), min_size=1, max_size=25))
def test_more_replicas_never_let_requests_wait_longer_in_total(number, wanted):
    # It holds where sequences do not slow each other down and the router sends each request to the idlest replica; a
    # router that takes turns may send two long answers to one replica.
    waits = []
    for replicas in (number, number + 1):
        requests = asked(*[(come, 1, output) for come, output in sorted(wanted)])
        assert serve(replicas_for(requests, replicas, sequences=len(wanted)), requests, "least-loaded", never)
        waits.append(sum(end - come for end, come in zip(requests.end, requests.arrival, strict=True)))
    assert waits[1] <= waits[0] + len(wanted) * 0.02


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


SPLIT = Disaggregation(prefill_replicas=1, decode_replicas=2, link_bytes_per_s=1e9)
INF = (float("inf"), float("inf"))


def split_deployment(**changes):
    return deployed(plan_on("l40s", 3), disaggregation=SPLIT.evolve(**changes))


def test_answers_go_on_when_the_cache_has_arrived():
    deployment = split_deployment()
    run = run_once(deployment, CHAT.evolve(output=FixedLength(tokens=20)), 30, 0, AS_ESTIMATED)
    requests = run.requests
    sent = 500 * 131_072 / 1e9
    assert deployment.transfer_seconds(500) == pytest.approx(sent)
    assert len(run.replicas) == 3
    for number in run.ended:
        assert requests.end[number] - requests.first[number] > sent
    assert sorted(run.ended) == list(range(30))


def test_prompts_are_not_held_up_by_answers():
    together = run_once(deployed(plan_on("l40s", 1)), CHAT.at_rate(6), 60, 0, AS_ESTIMATED)
    apart = run_once(split_deployment(link_bytes_per_s=None), CHAT.at_rate(6), 60, 0, AS_ESTIMATED)
    waits = [
        sum(a - b for a, b in zip(run.requests.first, run.requests.arrival, strict=True)) for run in (together, apart)
    ]
    assert waits[1] < waits[0]


def test_an_answer_of_one_token_needs_no_transfer():
    run = run_once(split_deployment(), CHAT.evolve(output=FixedLength(tokens=1)), 5, 0, AS_ESTIMATED)
    assert run.requests.end == run.requests.first


def test_a_prompt_that_never_fits_goes_nowhere():
    deployment = split_deployment()._replace(cache_blocks=10)
    run = run_once(deployment, CHAT, 5, 0, AS_ESTIMATED)
    assert run.ended == []


def test_a_disaggregated_run_stops_when_it_is_asked_to():
    deployment = split_deployment()
    requests = draw_requests(CHAT, 5, 0)
    times = step_times(deployment, requests, AS_ESTIMATED)
    assert run_disaggregated(deployment, requests, times, INF, lambda: True) is None
    asked = iter([False] * 2 + [True] * 50)
    assert run_disaggregated(deployment, draw_requests(CHAT, 1, 0), times, INF, lambda: next(asked)) is None
