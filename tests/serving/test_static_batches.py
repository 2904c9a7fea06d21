"""Batches that are answered one after the other."""

import pytest
from served_traffic import RoundTimes, asked, rules

from planner.serving.requests import NEVER
from planner.serving.static_batches import StaticReplica


def test_a_batch_ends_with_its_longest_answer_and_the_next_begins():
    requests = asked((0.0, 10, 3), (0.0, 100, 11), (0.05, 10, 1), (9.0, 10, 2))
    requests.followed_by[0] = requests.add(NEVER, 5, 1)
    replica = StaticReplica(0, RoundTimes(prompt_token=1e-3, per_token=1e-5), rules(sequences=2, static=True), requests)
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
    assert replica.cached_part(0) == 0
    assert not replica.was_full
    assert replica.intervals.number == 2 + 10 + 1
    assert replica.busy_seconds < replica.clock


def test_a_full_batch_lets_others_wait():
    requests = asked(*[(0.0, 10, 3)] * 3)
    replica = StaticReplica(0, RoundTimes(), rules(sequences=2, static=True), requests)
    for number in range(3):
        replica.submit(number, 0.0)
    replica.advance()
    assert replica.was_full
    assert requests.end[2] > requests.end[0]
