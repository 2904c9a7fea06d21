"""Targets: what is written on a command line, and what is refused."""

import pytest

from planner.errors import SpecError
from planner.serving.targets import LatencyTarget, Targets, parse_latency_target


def test_targets_are_parsed():
    assert parse_latency_target("ttft", "p95=1s") == LatencyTarget(latency="ttft", percentile=95, seconds=1)
    assert parse_latency_target("itl", " p99.9 = 50ms ").seconds == pytest.approx(0.05)
    assert parse_latency_target("e2e", "mean=.5s").percentile is None
    assert parse_latency_target("ttft", "800ms") == parse_latency_target("ttft", "p95=0.8s")


@pytest.mark.parametrize("text", ["1", "p95=1", "p95=s", "p100=1s", "median=1s", ""])
def test_what_is_no_target_is_refused(text):
    with pytest.raises(SpecError, match=f"{text!r} is not a target such as p95=1s"):
        parse_latency_target("ttft", text)


def test_a_target_in_words():
    assert parse_latency_target("ttft", "p95=1s").title == "p95 time to first token"
    assert parse_latency_target("tpot", "mean=1s").title == "mean mean time between tokens of a request"


def test_each_percentile_has_one_limit():
    twice = (parse_latency_target("ttft", "p95=1s"), parse_latency_target("ttft", "p95=2s"))
    with pytest.raises(SpecError, match="one limit only"):
        Targets(limits=twice)
