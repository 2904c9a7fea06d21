"""Tables of percentiles and targets."""

import pytest

from planner.serving.result import DurationCounts, LatencyTable, Percentile, ServingSimulation, TargetResult
from planner.serving.targets import parse_latency_target

TABLE = LatencyTable(
    latency="ttft",
    number=100,
    mean_seconds=1.0,
    low_mean_seconds=0.8,
    high_mean_seconds=1.3,
    percentiles=(
        Percentile(50.0, 1.0, 0.8, 1.2, 0.9, 1.1),
        Percentile(90.0, 2.0, 1.6, 2.4, 1.8, 2.2),
        Percentile(99.0, 4.0, 3.0, 5.0, 3.5, 4.5),
    ),
)


def test_a_percentile_between_two_of_the_table():
    assert TABLE.percentile(90).seconds == 2.0
    assert TABLE.percentile(70) == Percentile(70, *[pytest.approx(value) for value in (1.5, 1.2, 1.8, 1.35, 1.65)])
    assert TABLE.percentile(10).seconds == 1.0
    assert TABLE.percentile(99.9).seconds == 4.0
    with pytest.raises(ValueError, match="between 0 and 100"):
        TABLE.percentile(100)


def test_the_margin_of_a_target():
    target = parse_latency_target("ttft", "p95=2s")
    held = TargetResult(target=target, seconds=1.5, low_seconds=1, high_seconds=3, holds=True, surely=False)
    assert held.margin == pytest.approx(0.25)


def test_a_service_holds_if_nothing_is_left_behind():
    good = ServingSimulation(latencies=(TABLE,))
    assert good.holds
    assert good.latency("ttft") is TABLE
    assert good.latency("itl") is None
    assert not good.evolve(saturated=True).holds
    assert not good.evolve(rejected=1).holds
    assert not ServingSimulation(unsupported="no GPU").holds


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
