"""The steps of a replica, request by request, and what holds for all of them."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_traffic import RoundTimes, answered, asked, rules

from planner.serving.cluster import finish
from planner.serving.replica import RamCache, Replica, StaticReplica
from planner.serving.requests import NEVER, Requests
from planner.serving.traffic import CommonPrefix


def test_a_request_reads_its_prompt_and_then_decodes():
    requests = asked((1.0, 100, 5))
    replica = answered(requests, RoundTimes(prompt_token=0.001))
    assert requests.scheduled == [1.0]
    assert requests.first == [pytest.approx(1.1)]
    assert requests.end == [pytest.approx(1.1 + 4 * 0.01)]
    assert (replica.busy_seconds, replica.prompt_seconds) == (pytest.approx(0.14), pytest.approx(0.1))
    assert replica.intervals.number == 4
    assert replica.intervals.total == pytest.approx(0.04)


def test_a_long_prompt_is_read_in_chunks_while_others_decode():
    requests = asked((0.0, 10, 100), (0.005, 2_500, 2))
    answered(requests, RoundTimes(prompt_token=1e-4), step_tokens=1_000)
    # The first prompt takes 1 ms and a step 10 ms; the second comes in that step and is read in chunks of 999 tokens.
    begin = 0.001 + 0.01
    assert requests.scheduled[1] == pytest.approx(begin)
    assert requests.first[1] == pytest.approx(begin + 3 * 0.01 + 2_500 * 1e-4)


def test_an_engine_that_schedules_ahead_lets_a_request_wait_for_one_step_more():
    requests = asked((0.0, 10, 100), (0.005, 10, 2))
    answered(requests, schedules_ahead=True)
    assert requests.scheduled[1] == pytest.approx(0.02)
    requests = asked((0.0, 10, 100), (0.005, 10, 2))
    answered(requests, schedules_ahead=False)
    assert requests.scheduled[1] == pytest.approx(0.01)


def test_a_request_over_http_comes_later_and_one_that_follows_misses_the_step_that_is_composed():
    requests = asked((0.0, 1_000, 3), (0.0, 1_000, 3), (NEVER, 1_000, 2))
    requests.followed_by[0] = 2
    requests.output[1] = 100
    replica = Replica(0, RoundTimes(), rules(schedules_ahead=True), None, requests, over_http=True)
    for number in (0, 1):
        replica.submit(number, 0.0)
    assert finish(replica, lambda: False)
    assert requests.arrival[:2] == [0.0, 0.0]
    assert requests.scheduled[0] == pytest.approx(1e-3 + 1_000 * 1.6e-6)
    assert requests.scheduled[2] == pytest.approx(requests.arrival[2] + 0.02)


def test_an_engine_that_looks_for_arrivals_now_and_then_lets_requests_wait_until_it_does():
    # It looks after each of the first two prompts, at 10 and 20 ms, and then after 10 steps of 10 ms.
    requests = asked((0.0, 10, 100), (0.005, 10, 100), (0.03, 10, 2))
    answered(requests, RoundTimes(prompt_token=1e-3), polls_every=10, mixes_prefill=False)
    assert requests.scheduled == pytest.approx([0.0, 0.01, 0.12])


def test_an_idle_engine_finds_a_request_at_once():
    requests = asked((0.0, 10, 2), (0.5, 10, 2))
    answered(requests, polls_every=10)
    assert requests.scheduled == [0.0, 0.5]


def test_no_more_sequences_run_at_once_than_are_allowed():
    requests = asked(*[(0.0, 10, 11)] * 5)
    replica = answered(requests, sequences=2)
    assert requests.end == pytest.approx([0.1, 0.1, 0.2, 0.2, 0.3])
    assert replica.was_full
    assert requests.scheduled == sorted(requests.scheduled)


def test_a_request_without_room_is_preempted_and_read_again():
    requests = asked((0.0, 32, 40), (0.0, 32, 40))
    replica = answered(requests, blocks=7)
    assert [lost.request for lost in replica.preemptions] == [1]
    assert requests.end[0] < requests.end[1]
    assert replica.most_blocks == 6
    assert replica._tokens_outstanding == 0


def test_a_prompt_that_is_read_is_preempted_for_an_answer_that_came_before():
    requests = asked((0.0, 10, 30), (0.0, 100, 1))
    replica = answered(requests, blocks=7, step_tokens=17)
    assert {lost.request for lost in replica.preemptions} == {1}
    assert requests.end[0] <= requests.end[1]


def test_a_preempted_answer_is_no_longer_the_next_to_end():
    requests = asked((0.0, 32, 60), (0.0, 32, 30))
    replica = answered(requests, blocks=7)
    assert [lost.request for lost in replica.preemptions] == [1]
    assert requests.end[0] < requests.end[1]


def test_a_preempted_request_finds_of_its_cache_what_nothing_has_overwritten():
    wanted = ((0.0, 320, 60), (0.0, 320, 60), (0.0, 320, 60))
    times = RoundTimes(prompt_token=0.001)
    again, anew = asked(*wanted), asked(*wanted)
    for requests, caches in ((again, True), (anew, False)):
        assert answered(requests, times, blocks=64, caches_prefixes=caches).preemptions
    assert max(again.end) < max(anew.end)


def test_a_request_that_has_ended_is_not_preempted():
    requests = asked((0.0, 32, 40), (0.0, 32, 40), (0.0, 8, 2))
    replica = answered(requests, blocks=7)
    assert [lost.request for lost in replica.preemptions] == [1]


def test_a_prompt_with_all_its_cache_reserved_is_preempted_too():
    requests = asked((0.0, 16, 20), (0.0, 100, 2))
    replica = answered(requests, blocks=8, reservation="prompt", step_tokens=17)
    assert {lost.request for lost in replica.preemptions} == {1}


def test_a_prompt_preempts_itself_if_nothing_came_after_it():
    requests = asked((0.0, 16, 30), (0.0, 64, 3))
    replica = answered(requests, blocks=5, step_tokens=33)
    assert 1 in {lost.request for lost in replica.preemptions}


def test_a_prompt_that_preempted_itself_lets_a_token_be_decoded_before_it_begins_again():
    # The first chunk of the second prompt has room beside the first request, the third has none until that has ended.
    for mixes_prefill in (True, False):
        requests = asked((0.0, 40, 8), (0.0, 64, 3))
        replica = Replica(
            0, RoundTimes(prompt_token=1e-3), rules(mixes_prefill=mixes_prefill, step_tokens=20), 5, requests
        )
        for number in range(2):
            replica.submit(number, 0.0)
        replica.advance(10.0)
        assert replica.load == 0, mixes_prefill
        assert 1 <= len(replica.preemptions) <= 8, mixes_prefill
        assert requests.end[0] < requests.end[1] < 1, mixes_prefill


def test_what_never_fits_is_rejected_and_its_client_goes_on():
    requests = Requests()
    requests.add(0.0, 1_000, 10)
    after = requests.add(NEVER, 10, 2)
    requests.followed_by[0] = after
    replica = answered(requests, blocks=10)
    assert replica.rejected == [0]
    assert requests.end[after] > 0
    slots = asked((0.0, 100, 10), (0.0, 50, 10))
    assert answered(slots, slot_tokens=60).rejected == [0]


def test_an_engine_that_reserves_all_never_preempts():
    requests = asked((0.0, 32, 40), (0.0, 32, 40))
    replica = answered(requests, blocks=7, reservation="whole")
    assert replica.preemptions == []
    assert requests.scheduled[1] == pytest.approx(requests.end[0])


def test_an_engine_that_reserves_prompts_admits_what_has_room_for_all_of_it():
    requests = asked((0.0, 64, 2), (0.0, 64, 2))
    answered(requests, blocks=5, reservation="prompt", step_tokens=48)
    assert requests.scheduled[1] == pytest.approx(requests.end[0])


def test_a_whole_prompt_waits_for_a_step_of_its_own_where_prompts_are_not_divided():
    requests = asked((0.0, 60, 3), (0.0, 60, 3), (0.0, 150, 3))
    answered(requests, RoundTimes(prompt_token=1e-4), step_tokens=100, chunks_prompts=False)
    assert requests.first[0] < requests.first[1] < requests.first[2]
    assert requests.first[1] - requests.first[0] == pytest.approx(0.01 + 60e-4)


def test_decoding_waits_for_prompts_where_they_are_not_mixed():
    requests = asked((0.0, 10, 10), (0.035, 100, 2))
    replica = answered(requests, RoundTimes(prompt_token=0.001), mixes_prefill=False)
    assert requests.end[0] == pytest.approx(0.01 + 9 * 0.01 + 0.1)
    assert replica.intervals.total == pytest.approx(9 * 0.01 + 0.1 + 0.01)
    long = asked((0.0, 10, 10), (0.035, 2_500, 2))
    assert answered(long, RoundTimes(prompt_token=0.001), mixes_prefill=False).intervals.total == pytest.approx(2.6)
    alone = asked((0.0, 10, 2), (0.0, 10, 1))
    assert answered(alone, RoundTimes(prompt_token=0.001), mixes_prefill=False).intervals.number == 1


def test_a_request_waits_while_answers_of_others_may_need_the_cache():
    requests = asked((0.0, 16, 100), (0.0, 16, 60))
    answered(requests, blocks=8, answer_share=0.5)
    assert requests.scheduled[1] == requests.end[0]
    # 19 of 20 blocks are free, 304 tokens, of which half of the 100 are kept: enough for 16 and 60.
    both = asked((0.0, 16, 100), (0.0, 16, 60))
    answered(both, blocks=20, answer_share=0.5)
    assert both.scheduled == [0.0, 0.0]


def test_a_stall_delays_the_answers_that_were_given_before_it_alone():
    """By hand: two prompts of 0.1 s, one after the other, stall the first answer, but not that of the first prompt."""
    requests = asked((0.0, 10, 10), (0.035, 100, 2), (0.035, 100, 2))
    replica = answered(requests, RoundTimes(prompt_token=0.001), mixes_prefill=False, step_tokens=100)
    assert replica.intervals.total == pytest.approx(9 * 0.01 + 2 * 0.1 + 2 * 0.01)


def test_common_beginnings_are_read_once():
    requests = Requests()
    shared = (CommonPrefix(7, 64),)
    for arrival in (0.0, 1.0):
        requests.add(arrival, 100, 2, shared)
    replica = answered(requests, RoundTimes(prompt_token=0.001), blocks=100, caches_prefixes=True)
    assert requests.cached == [0, 64]
    assert requests.first[1] - requests.scheduled[1] == pytest.approx(0.036)
    assert replica.cached_prompt_tokens(1) == 64
    assert Replica(0, RoundTimes(), rules(), None, requests).cached_prompt_tokens(1) == 0


def test_a_prompt_that_is_a_common_beginning_takes_no_block_of_its_own():
    requests = Requests()
    for arrival in (0.0, 1.0):
        requests.add(arrival, 64, 1, (CommonPrefix(7, 64),))
    assert answered(requests, blocks=100, caches_prefixes=True).most_blocks == 64 // 16


def test_a_first_chunk_takes_no_more_blocks_than_the_common_beginning_that_it_begins():
    requests = Requests()
    requests.add(0.0, 128, 1, (CommonPrefix(7, 128),))
    replica = answered(requests, blocks=100, caches_prefixes=True, reservation="chunk", step_tokens=32)
    assert replica.most_blocks == 128 // 16


def test_a_session_finds_its_context_again():
    requests = Requests()
    requests.add(0.0, 100, 20, (CommonPrefix(3, 32),), session=0)
    turn = requests.add(NEVER, 200, 2, (CommonPrefix(3, 32), CommonPrefix(-1, 120)), session=0)
    requests.followed_by[0], requests.pause[0] = turn, 5.0
    answered(requests, blocks=100, caches_prefixes=True)
    assert requests.cached[turn] == 112
    assert requests.arrival[turn] == pytest.approx(requests.end[0] + 5.0)
    without = Requests()
    without.add(0.0, 100, 20)
    without.followed_by[0] = without.add(NEVER, 200, 2)
    answered(without, blocks=100)
    assert without.cached == [0, 0]


def test_the_last_stage_shows_the_first_token_later():
    requests = asked((0.0, 10, 1))
    answered(requests, RoundTimes(later=0.5))
    assert requests.first == requests.end == [0.5]


def test_the_card_waits_for_the_host_until_its_cache_takes_longer():
    requests = asked((0.0, 10, 101))
    answered(requests, RoundTimes(step=0.005, per_token=1e-4, least=0.01))
    slow = sum(max(0.01, 0.005 + 1e-4 * (10 + step)) for step in range(100))
    assert requests.end[0] == pytest.approx(slow, rel=1e-3)


def test_a_long_answer_has_intervals_that_grow():
    requests = asked((0.0, 10, 1_001))
    replica = answered(requests, RoundTimes(step=0.005, per_token=1e-5))
    exact = sum(0.005 + 1e-5 * (10 + step) for step in range(1_000))
    assert replica.intervals.total == pytest.approx(exact, rel=1e-6)
    low, high = replica.intervals.percentiles((10, 90))
    assert low == pytest.approx(0.0061, rel=0.15)
    assert high == pytest.approx(0.0141, rel=0.1)


def test_moments_are_recorded_in_the_watched_window():
    requests = asked(*[(0.1 * number, 20, 30) for number in range(20)])
    replica = answered(requests, blocks=100, recorded_window=(0.5, 1.0))
    assert all(0.5 <= moment.seconds < 1.0 for moment in replica.moments)
    assert max(moment.cache_fraction for moment in replica.moments) > 0
    free = answered(asked((0.0, 5, 5)), recorded_window=(0.0, 1.0))
    assert free.moments[0].cache_fraction == 0


def test_an_answer_goes_on_with_a_cache_from_elsewhere():
    requests = asked((0.0, 32, 40), (0.0, 32, 40), (0.0, 16, 1))
    replica = Replica(0, RoundTimes(), rules(sequences=2), 7, requests)
    replica.receives_cache = True
    for number in range(3):
        replica.submit(number, 0.0)
        requests.first[number] = 0.0
    replica.advance()
    assert replica.load == replica.waiting == 0
    assert requests.end[0] == pytest.approx(39 * 0.01)
    assert [lost.request for lost in replica.preemptions] == [1]
    assert NEVER not in requests.end


def test_a_cache_from_elsewhere_waits_for_room():
    requests = asked((0.0, 32, 10), (0.0, 32, 10))
    replica = Replica(0, RoundTimes(), rules(), 3, requests)
    replica.receives_cache = True
    for number in range(2):
        replica.submit(number, 0.0)
    replica.advance()
    assert requests.scheduled[1] == pytest.approx(requests.end[0])


def test_a_cache_from_elsewhere_has_room_for_the_next_step():
    requests = asked((0.0, 32, 10), (0.0, 32, 10))
    replica = with_caches_from_elsewhere(requests, 5)
    assert replica.most_blocks == 3
    assert requests.scheduled[1] == pytest.approx(requests.end[0])


def test_a_prompt_that_is_read_again_preempts_caches_that_came_after_it():
    requests = asked((0.0, 32, 18), (0.0, 32, 40), (0.0, 79, 10))
    replica = with_caches_from_elsewhere(requests, 7, step_tokens=17)
    assert [lost.request for lost in replica.preemptions] == [1, 2, 2]
    assert requests.end == sorted(requests.end)


def test_a_prompt_that_is_read_again_waits_where_answers_take_all_tokens_of_a_step():
    requests = asked((0.0, 32, 18), (0.0, 32, 40), (0.0, 16, 5), (0.0, 16, 5))
    replica = with_caches_from_elsewhere(requests, 7, step_tokens=2)
    assert [lost.request for lost in replica.preemptions] == [1]
    assert requests.end[0] < requests.end[2] == requests.end[3] < requests.end[1]


def with_caches_from_elsewhere(requests, blocks, **changes):
    """Return a replica that has given all answers, whose prompts another one has read."""
    replica = Replica(0, RoundTimes(prompt_token=1e-4), rules(**changes), blocks, requests)
    replica.receives_cache = True
    for number in requests.initial:
        replica.submit(number, requests.arrival[number])
        requests.first[number] = requests.arrival[number]
    replica.advance(100.0)
    assert replica.load == replica.used_blocks == 0
    assert replica.most_blocks <= blocks
    assert [number for number, end in enumerate(requests.end) if end == NEVER] == sorted(replica.rejected)
    return replica


@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 120), st.integers(2, 60)), min_size=1, max_size=25),
    st.sampled_from(("chunk", "prompt", "whole")),
    st.booleans(),
    st.integers(4, 40),
    st.integers(8, 200),
)
def test_no_answer_with_a_cache_from_elsewhere_is_lost(wanted, reservation, mixes_prefill, blocks, step_tokens):
    with_caches_from_elsewhere(
        asked(*sorted(wanted)), blocks, reservation=reservation, mixes_prefill=mixes_prefill, step_tokens=step_tokens
    )


def test_steps_that_grow_end_when_a_request_arrives():
    requests = asked((0.0, 10, 200), (0.5, 10, 2))
    answered(requests, RoundTimes(per_token=1e-4))
    passed = [0.0, 0.0]
    while passed[-1] < 0.5:
        passed.append(passed[-1] + 0.01 + 1e-4 * (10 + len(passed) - 2))
    assert requests.scheduled[1] == pytest.approx(passed[-1])


def test_a_replica_stops_before_a_step_that_begins_later():
    requests = asked((0.0, 10, 1_000))
    replica = Replica(0, RoundTimes(), rules(), None, requests)
    replica.submit(0, 0.0)
    replica.advance(0.055)
    assert replica.clock == pytest.approx(0.06)
    replica.advance(0.06)
    assert replica.clock == pytest.approx(0.06)
    assert replica.load == 1


@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 120), st.integers(1, 60)), min_size=1, max_size=25),
    st.sampled_from(("chunk", "prompt", "whole")),
    st.booleans(),
    st.booleans(),
    st.integers(12, 40),
    st.integers(8, 200),
)
def test_no_request_is_lost_and_the_cache_never_overflows(
    wanted, reservation, mixes_prefill, ahead, blocks, step_tokens
):
    requests = asked(*sorted(wanted))
    replica = answered(
        requests,
        RoundTimes(prompt_token=1e-4, per_token=1e-6),
        blocks=blocks,
        reservation=reservation,
        mixes_prefill=mixes_prefill,
        schedules_ahead=ahead,
        step_tokens=step_tokens,
    )
    # Each token of an answer after its first is one interval, of which recomputation shows none for the token it gives.
    gaps = sum(requests.output) - len(requests)
    assert gaps - len(replica.preemptions) <= replica.intervals.number <= gaps
    for number in range(len(requests)):
        times = (requests.arrival[number], requests.scheduled[number], requests.first[number], requests.end[number])
        assert list(times) == sorted(times)
    if not replica.preemptions:
        order = sorted(range(len(requests)), key=lambda number: (requests.arrival[number], number))
        assert [requests.scheduled[number] for number in order] == sorted(requests.scheduled)
    assert replica.clock < inf


def test_a_step_that_reads_a_prompt_gives_decoding_requests_all_tokens_of_its_check():
    """By hand: two and a half tokens of each check are two, three, two, three; nothing is lost at the end."""
    times = RoundTimes(step=0.01, prompt_token=1e-4, tokens_per_step=2.5, rows_per_sequence=4)
    requests = asked((0.0, 10, 40), (0.005, 100, 5), (0.02, 100, 5))
    replica = answered(requests, times, step_tokens=20)
    plain = answered(
        asked((0.0, 10, 40), (0.005, 100, 5), (0.02, 100, 5)), RoundTimes(prompt_token=1e-4), step_tokens=20
    )
    assert replica.clock < plain.clock
    assert [requests.end[number] > requests.first[number] for number in range(3)] == [True] * 3


def test_the_next_step_needs_blocks_for_all_tokens_that_it_checks():
    times = RoundTimes(tokens_per_step=2.0, rows_per_sequence=4)
    requests = asked((0.0, 30, 40), (0.0, 30, 40))
    assert len(answered(requests, times, blocks=7).preemptions) >= 1


def test_a_beginning_that_left_the_card_comes_back_over_the_bus_before_the_prompt_is_read():
    """By hand: 64 of 65 tokens come in 64 · 1 ms; without RAM the whole prompt is read, 65 · 10 ms."""
    ends = {}
    for name, ram in (("ram", RamCache(1_000, 1e-3)), ("none", None)):
        requests = Requests()
        begin = (CommonPrefix(1, 64),)
        requests.add(0.0, 65, 2, begin)
        requests.add(10.0, 150, 2)  # takes every block of the card
        requests.add(20.0, 65, 2, begin)
        times = RoundTimes(prompt_token=0.01)
        replica = Replica(0, times, rules(caches_prefixes=True), 10, requests, ram=ram)
        for number in requests.initial:
            replica.submit(number, requests.arrival[number])
        assert finish(replica, lambda: False)
        ends[name] = requests.first[2] - 20.0
        assert replica.fetched_tokens == (64 if ram else 0)
    assert ends["ram"] == pytest.approx(64e-3 + 0.01)
    assert ends["none"] == pytest.approx(65 * 0.01)


def test_a_batch_ends_with_its_longest_answer_and_the_next_begins():
    requests = asked((0.0, 10, 3), (0.0, 100, 11), (0.05, 10, 1), (9.0, 10, 2))
    requests.followed_by[0] = requests.add(NEVER, 5, 1)
    replica = StaticReplica(
        0, RoundTimes(prompt_token=1e-3, per_token=1e-5), rules(sequences=2, static_batching=True), requests
    )
    for number in requests.initial:
        replica.submit(number, requests.arrival[number])
    assert replica.load == 4
    replica.advance(0.1)
    first, step, more = 0.2, 0.01 + 1e-5 * 200, 2e-5
    assert requests.first[:2] == pytest.approx([first, first])
    assert requests.end[0] == pytest.approx(first + 2 * step + more)
    assert requests.end[1] == replica.clock == pytest.approx(first + 10 * step + 45 * more)
    assert requests.scheduled[2] == NEVER
    replica.advance()
    assert requests.scheduled[2] == pytest.approx(requests.end[1])
    assert requests.arrival[4] == pytest.approx(requests.end[0])
    assert requests.scheduled[3] == 9.0
    assert replica.load == 0
    assert replica.cached_prompt_tokens(0) == 0
    assert not replica.was_full
    assert replica.intervals.number == 2 + 10 + 1
    assert replica.busy_seconds < replica.clock


def test_a_full_batch_lets_others_wait():
    requests = asked(*[(0.0, 10, 3)] * 3)
    replica = StaticReplica(0, RoundTimes(), rules(sequences=2, static_batching=True), requests)
    for number in range(3):
        replica.submit(number, 0.0)
    replica.advance()
    assert replica.was_full
    assert requests.end[2] > requests.end[0]
