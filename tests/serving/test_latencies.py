"""Counts of durations and their percentiles."""

import pytest

from planner.serving.latencies import DurationCounts


def test_percentiles_are_within_half_a_percent():
    counts, other = DurationCounts(), DurationCounts()
    for number in range(1, 1_001):
        (counts if number % 2 else other).add(number / 1_000, 1)
    counts.include(other)
    assert counts.percentiles((50, 90, 99)) == pytest.approx([0.5, 0.9, 0.99], rel=0.006)
    assert counts.mean == pytest.approx(0.5005)
    assert counts.number == 1_000


@pytest.mark.parametrize("seconds", [0.004, 0.5, 0.999, 1.0, 1.002, 30.0])
def test_a_duration_is_known_to_a_quarter_of_a_percent(seconds):
    counts = DurationCounts()
    counts.add(seconds, 1)
    assert counts.percentiles((50,)) == pytest.approx([seconds], rel=0.0026)


def test_long_durations_and_none():
    counts = DurationCounts()
    assert counts.mean is None
    counts.add(0.0, 1)
    counts.add(30.0, 3)
    assert counts.percentiles((100, 50)) == pytest.approx([30.0, 30.0], rel=0.006)
    assert counts.mean == 22.5
