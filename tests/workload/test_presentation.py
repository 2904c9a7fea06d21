"""Presentation of fields."""

from planner.workload.presentation import doubling


def test_stops_double():
    assert doubling(1, 8) == (1, 2, 4, 8)
    assert doubling(128, 1_000) == (128, 256, 512)
