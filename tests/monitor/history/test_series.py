"""Time series: kept readings, thinning and gaps."""

import numpy as np
import pytest
from series_kit import series_of

from planner.monitor.history.series import Gap, Series


def test_one_reading_per_second_is_kept_for_the_whole_period() -> None:
    series = series_of([float(number % 7) for number in range(1000)], seconds=400)
    assert series.times[-1] == 999
    assert (np.diff(series.times) == 1).all()
    assert series.times[0] <= 599


@pytest.mark.parametrize("rate", [1.3, 4.0, 10.0])
def test_memory_is_bounded_and_extremes_are_kept_at_any_rate(rate: float) -> None:
    count = int(1500 * rate)
    values = [
        100.0 if number % 531 == 0 else -100.0 if number % 777 == 0 else float(number % 50) for number in range(count)
    ]
    series = Series(400)
    most = 0
    for number, value in enumerate(values):
        series.append(number / rate, value)
        most = max(most, series.nbytes)
    assert most <= 16 * (1.25 * 400 + 4)
    start = series.times[0]
    assert start <= (count - 1) / rate - 400
    spikes = [number / rate for number, value in enumerate(values) if abs(value) == 100 and number / rate > start]
    kept = {time for time, value in zip(series.times, series.values, strict=True) if abs(value) == 100}
    assert all(
        any(other in kept and values[round(other * rate)] == values[round(time * rate)] for other in near(time, spikes))
        for time in spikes
    )


def near(time: float, spikes: list[float]) -> list[float]:
    """Return the spikes within the same two seconds."""
    return [other for other in spikes if other // 2 == time // 2]


def test_thinned_gaps_that_are_too_short_are_dropped() -> None:
    series = Series(400)
    for number in range(20_000):
        if number % 40 == 7:
            series.note_missing()
        else:
            series.append(number / 10, 1.0)
    assert len(series.gaps(0, 2000)) < 400 * 1.25


def test_a_missing_reading_is_a_gap() -> None:
    series = series_of([1.0, 2.0])
    series.note_missing()
    assert series.last is None
    assert series.value_at(1.2) is None
    series.append(5.0, 7.0)
    assert series.gaps(0, 10) == (Gap(1.0, 5.0),)
    assert series.gaps(6, 10) == ()
    assert [series.value_at(time) for time in (-1.0, 0.5, 1.0, 3.0, 5.0)] == [None, 1.0, 2.0, None, 7.0]


def test_a_late_reading_leaves_a_gap() -> None:
    series = series_of([1.0, 2.0, 3.0])
    series.append(60.0, 4.0)
    assert series.gaps(0, 100) == (Gap(2.0, 60.0),)
    assert series.value_at(30.0) is None


def test_a_longer_interval_is_one_gap() -> None:
    series = series_of([1.0] * 20, step=0.1)
    for number in range(1, 6):
        series.append(1.9 + 10 * number, 1.0)
    assert len(series.gaps(0, 100)) == 1


def test_jitter_is_no_gap() -> None:
    series = Series(1e6)
    for time in (0.0, 0.1, 0.15, 0.7, 0.75, 1.1):
        series.append(time, 1.0)
    assert series.gaps(0, 2) == ()


def test_a_value_holds_until_the_next_is_late() -> None:
    series = series_of([1.0, 2.0, 3.0])
    assert series.value_at(4.0) == 3.0
    assert series.value_at(6.0) is None
    assert series.last == 3.0
    assert Series(10).last is None


def test_an_older_reading_is_ignored() -> None:
    series = series_of([1.0, 2.0])
    series.append(1.0, 9.0)
    assert series.values.tolist() == [1.0, 2.0]
