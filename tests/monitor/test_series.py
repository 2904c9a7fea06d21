"""Time series: kept readings, thinning and gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from series_kit import series_of

from planner.monitor.series import BLOCK_SIZE, Gap, Series


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


VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=800)


@given(VALUES, st.floats(0, 900), st.floats(1, 900), st.integers(1, 300))
def test_every_reading_lies_between_the_extremes_of_its_column(
    values: list[float], start: float, span: float, pixels: int
) -> None:
    series = series_of(values)
    columns = series.between(start, start + span, pixels)
    inside = (series.times >= start) & (series.times <= start + span)
    for time, value in zip(series.times[inside], series.values[inside], strict=True):
        column = np.searchsorted(columns.times, time, side="right") - 1
        assert columns.low[column] <= value <= columns.high[column]


@given(VALUES, st.integers(1, 40))
def test_extremes_are_readings_and_none_is_lost(values: list[float], pixels: int) -> None:
    columns = series_of(values).between(0.0, float(len(values)), pixels)
    assert columns.low.min() == min(values)
    assert columns.high.max() == max(values)
    assert set(columns.low) | set(columns.high) <= set(values)
    assert (np.diff(columns.times) > 0).all()


@given(st.integers(2, 60), st.integers(0, 400))
def test_extremes_stay_correct_while_readings_are_added(pixels: int, more: int) -> None:
    # What was built of blocks before must go on with what comes later.
    pattern = np.sin(np.arange(4 * BLOCK_SIZE**3))
    series = series_of(list(pattern[: 2 * BLOCK_SIZE**3]))
    series.between(0.0, 2.0 * BLOCK_SIZE**3, pixels)
    for number in range(2 * BLOCK_SIZE**3, 2 * BLOCK_SIZE**3 + more):
        series.append(float(number), float(pattern[number]))
    columns = series.between(0.0, float(len(series)), pixels)
    assert columns.low.min() == pattern[: len(series)].min()
    assert columns.high.max() == pattern[: len(series)].max()


def test_few_readings_are_kept_with_one_more_on_either_side() -> None:
    columns = series_of([3.0, 1.0, 4.0, 1.5, 9.0]).between(1.5, 2.5, 600)
    assert columns.times.tolist() == [1.0, 2.0, 3.0]
    assert columns.low is columns.high or columns.low.tolist() == columns.high.tolist() == [1.0, 4.0, 1.5]


def test_columns_stay_in_place_while_the_span_moves() -> None:
    series = series_of([float(number % 17) for number in range(5000)])
    before = series.between(1000.0, 4000.0, 100)
    after = series.between(1060.0, 4060.0, 100)
    apart = np.diff(before.times)
    assert (apart == apart[0]).all()
    assert 30 <= apart[0] <= 33
    common = np.intersect1d(before.times, after.times)
    assert common.tolist() == before.times[before.times >= after.times[0]].tolist()


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 40), st.floats(-300, 2500), st.floats(2, 2500)), max_size=12),
    st.integers(1, 40),
)
def test_extended_columns_equal_newly_computed_columns(
    pattern: list[float], steps: list[tuple[int, float, float]], pixels: int
) -> None:
    # The same looks, once at a series that was looked at before and once at a fresh one.
    grown = Series(2000)
    for more, start, span in [(500, 0.0, 500.0), *steps]:
        for _ in range(more):
            number = 0 if not len(grown) else round(grown.times[-1]) + 1
            grown.append(float(number), pattern[number % len(pattern)])
        fresh = Series(2000)
        for time, value in zip(grown.times.tolist(), grown.values.tolist(), strict=True):
            fresh.append(time, value)
        ours, other = grown.between(start, start + span, pixels), fresh.between(start, start + span, pixels)
        inside = (fresh.times >= start) & (fresh.times <= start + span)
        for columns in (ours, other):
            places = np.searchsorted(columns.times, fresh.times[inside], side="right") - 1
            assert (places >= 0).all()
            assert (columns.low[places] <= fresh.values[inside]).all()
            assert (columns.high[places] >= fresh.values[inside]).all()
        assert abs(len(ours.times) - len(other.times)) <= 1


def test_new_readings_are_added_to_existing_columns() -> None:
    values = [float(number * 7919 % 101) for number in range(6000)]
    series = series_of(values[:4000])
    for number in range(4000, 6000):
        series.append(float(number), values[number])
        seen = series.between(number - 3000.0, float(number), 100)
    fresh = series_of(values).between(2999.0, 5999.0, 100)
    assert [each.tolist() for each in seen] == [each.tolist() for each in fresh]


@pytest.mark.parametrize("pixels", [3, 40])
def test_wide_columns_have_the_extremes_of_all_their_readings(pixels: int) -> None:
    values = [float(number * 7919 % 10_007) for number in range(9_990)]
    series = series_of(values)
    columns = series.between(5.0, 9_985.0, pixels)
    borders = [*columns.times.astype(int), 9_986]
    for low, high, begin, end in zip(columns.low, columns.high, borders[:-1], borders[1:], strict=True):
        assert (low, high) == (min(values[begin:end]), max(values[begin:end]))
    again = series.between(5.0, 9_985.0, pixels)
    assert [each.tolist() for each in again] == [each.tolist() for each in columns]
    narrower = series.between(5.0, 9_985.0, 2 * pixels)
    assert (narrower.low.min(), narrower.high.max()) == (columns.low.min(), columns.high.max())
