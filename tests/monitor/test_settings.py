"""Sampling intervals and growing pauses."""

import pytest

from planner.monitor.settings import BackOff, clamp_interval


def test_pauses_double_until_a_reset():
    pauses = BackOff(1.0, 5.0)
    assert [pauses.next_seconds() for _ in range(5)] == [1, 2, 4, 5, 5]
    pauses.reset()
    assert pauses.next_seconds() == 1


@pytest.mark.parametrize(("asked", "kept"), [(0.01, 0.1), (1.5, 1.5), (60, 10.0)])
def test_intervals_are_limited_to_the_supported_range(asked, kept):
    assert clamp_interval(asked) == kept
