"""Passes over the network, with the arithmetic."""

from planner.performance.inference.passes import Pass


def test_passes_add_up():
    assert Pass(1.0, 2.0).plus(Pass(3.0)).times(2) == Pass(8.0, 4.0)
