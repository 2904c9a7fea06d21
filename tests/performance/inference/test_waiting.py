"""Waiting times in a queue, against known formulas."""

import pytest

from planner.performance.inference.waiting import wait_seconds


def test_waits_of_erlangs_formula():
    # One place, half busy: a request of one second waits one second on average (M/M/1).
    assert wait_seconds(0.5, 1.0, 1) == pytest.approx(1.0)
    # Two places, each half busy: C(2, 1) = 1/3, and 1/3 · 1 / (2 − 1) of a second.
    assert wait_seconds(1.0, 2.0, 2) == pytest.approx(1 / 3)
    assert wait_seconds(1.0, 2.0, 2) > wait_seconds(0.5, 2.0, 2)
    assert wait_seconds(0.8, 1.0, 10_000) == 0.0


def test_a_queue_that_only_grows_has_no_mean_wait():
    assert wait_seconds(1.0, 1.0, 4) is None
