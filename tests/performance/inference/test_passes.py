"""Passes over the network, with the arithmetic."""

from planner.performance.inference.passes import PassTime


def test_passes_add_up():
    assert PassTime(1.0, 2.0).followed_by(PassTime(3.0)).repeated(2) == PassTime(8.0, 4.0)
