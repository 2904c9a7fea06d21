"""Downsampling for plots: extremes of the readings in each pixel column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from series_kit import series_of

from planner.monitor.history.downsampling import BLOCK_SIZE
from planner.monitor.history.series import Series

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
