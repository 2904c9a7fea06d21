"""Prompts and answers on separate replicas, with the transfer of the cache between them."""

import pytest
from served_traffic import CHAT, deployed, plan_on

from planner.performance.inference.steps import AS_ESTIMATED
from planner.serving.cluster import step_times
from planner.serving.deployment import Disaggregation
from planner.serving.disaggregated import run_disaggregated
from planner.serving.requests import draw_requests
from planner.serving.simulate import run_once
from planner.serving.traffic import FixedLength

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


def test_a_run_stops_when_it_is_asked_to():
    deployment = split_deployment()
    requests = draw_requests(CHAT, 5, 0)
    times = step_times(deployment, requests, AS_ESTIMATED)
    assert run_disaggregated(deployment, requests, times, INF, lambda: True) is None
    asked = iter([False] * 2 + [True] * 50)
    assert run_disaggregated(deployment, draw_requests(CHAT, 1, 0), times, INF, lambda: next(asked)) is None
