"""Statistics of short time series, and the detection of work phases."""

import pytest
from diagnosis_kit import stretch

from planner.monitor.diagnosis.time_series import Episode, TimeSeries, WorkPhase, current_phase


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.95, 4.8), (1.0, 5.0), (0.25, 2.0)])
def test_quantiles_are_interpolated_between_the_nearest_values(share, value):
    assert stretch(5.0, 1.0, 4.0, 2.0, 3.0).quantile(share) == pytest.approx(value)
    assert stretch(7.0).quantile(share) == 7.0


@pytest.mark.parametrize(
    ("values", "growth"),
    [
        ((1, 2, 3, 4, 5, 6), 5.0),
        ((1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6), 5.0),
        ((1, 2, 3, 3, 4, 5), 0.0),  # it stopped for a while
        ((1, 1.1, 1.2, 5, 5.1, 5.2), 0.0),  # one step was nearly all of it
        ((6, 5, 4, 3, 2, 1), 0.0),
        ((1, 2, 3), 0.0),  # too few to tell
        ((1,), 0.0),
    ],
)
def test_only_steady_growth_counts(values, growth):
    assert stretch(*values).growth == pytest.approx(growth)


@pytest.mark.parametrize(
    ("values", "falls"),
    [
        ((1, 0, 1, 0, 1), 2),
        ((1, 0.5, 0.2, 0.1, 0.8, 0.5, 0.9, 0.3), 2),
        ((0, 1), 0),
        ((0.6, 0.1, 0.6, 0.1), 0),
        ((1.0, 1.0), 0),
    ],
)
def test_swings_are_counted_from_high_to_low(values, falls):
    assert stretch(*values).swings == falls


def test_episodes_above_and_below_a_level():
    assert list(stretch(0, 0, 1, 1, 0).episodes(0.5)) == [
        Episode(False, 0, 2),
        Episode(True, 2, 4),
        Episode(False, 4, 4),
    ]
    assert list(stretch(1).episodes(0.5)) == [Episode(True, 0, 0)]


def test_values_hold_until_the_next_value():
    slow = TimeSeries((1.0, 4.0), (10.0, 20.0))
    assert slow.at_times((0.5, 1.0, 3.9, 4.0, 9.0)) == [None, 10.0, 10.0, 20.0, 20.0]
    assert slow.at_times((1.0, 4.0)) == (10.0, 20.0)
    together = stretch(1, 2, 3, 4, 5).combine(lambda one, other: one * other, slow)
    assert together == TimeSeries((1.0, 2.0, 3.0, 4.0), (20.0, 30.0, 40.0, 100.0))
    assert stretch(1).combine(lambda one, other: one, slow) is None
    assert stretch(1).combine(lambda _: None) is None


def utilization_of(*parts):
    """Return a utilization_of that is read once a second: parts of so many seconds at so much."""
    values = tuple(value for seconds, value in parts for _ in range(seconds))
    return TimeSeries(tuple(map(float, range(len(values)))), values)


@pytest.mark.parametrize(
    ("parts", "phase"),
    [
        ([(120, 0.9)], WorkPhase(0.0)),
        ([(120, 0.0)], WorkPhase(0.0)),
        ([(40, 0.0), (80, 0.9)], WorkPhase(40.0)),
        # It has stopped: for long, or just now.
        ([(80, 0.9), (40, 0.0)], WorkPhase(80.0)),
        ([(100, 0.9), (20, 0.0)], WorkPhase(0.0, 100.0)),
        # A moment of utilization_of on an idle card: no work, before other work neither.
        ([(60, 0.0), (2, 0.4), (58, 0.0)], WorkPhase(0.0)),
        ([(116, 0.0), (4, 0.9)], WorkPhase(116.0)),
        ([(10, 0.0), (2, 0.4), (90, 0.0), (18, 0.9)], WorkPhase(102.0)),
        # Bursts: each wait is of the work, until one is longer than all others.
        ([(5, 0.9), (35, 0.0), (5, 0.9), (35, 0.0), (5, 0.9), (35, 0.0)], WorkPhase(0.0, 85.0)),
        ([(10, 0.9), (15, 0.0), (10, 0.9), (15, 0.0), (10, 0.9), (60, 0.0)], WorkPhase(60.0)),
        ([(10, 0.9), (20, 0.0), (10, 0.9), (60, 0.0), (20, 0.9)], WorkPhase(100.0)),
        # Two works, and a rest between them.
        ([(20, 0.9), (40, 0.0), (60, 0.9)], WorkPhase(60.0)),
        ([(20, 0.9), (29, 0.0), (60, 0.9)], WorkPhase(0.0)),
        ([(10, 0.0), (10, 0.9), (60, 0.0), (5, 0.9), (35, 0.0)], WorkPhase(85.0)),
    ],
)
def test_the_start_of_the_current_work_phase(parts, phase):
    assert current_phase(utilization_of(*parts)) == phase
