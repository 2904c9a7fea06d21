"""The data and ticks of the memory curve."""

from dataclasses import replace
from math import isnan

import pytest

from planner.gui.memory.memory_curve import CurveData, curve_memory_ticks, curve_values, value_ticks
from planner.plan.memory_curve import MemoryPoint
from planner.units import GIB


def point(value, gib):
    return MemoryPoint(
        value=value,
        total_bytes=round(gib * GIB),
        low_bytes=round((gib - 0.5) * GIB),
        high_bytes=round((gib + 0.5) * GIB),
    )


def line(last=8, capacity_gib=24, current=1):
    points = tuple(point(value, 10 + 4 * value) for value in range(1, last + 1))
    capacity = None if capacity_gib is None else capacity_gib * GIB
    return CurveData("batch", "Sequences at once", points, points[current - 1], capacity, "Some card")


def test_values_go_past_the_current_and_the_largest_that_fits():
    assert curve_values(1, 6, 1, None) == tuple(range(1, 10))
    assert curve_values(4, None, 1, None) == tuple(range(1, 17))


def test_wide_values_are_spread_evenly_on_a_logarithmic_axis():
    values = curve_values(4096, 65_456, 128, 131_072)
    assert (values[0], values[-1]) == (128, 98_184)
    assert {4096, 65_456} <= set(values)
    assert len(values) <= 45
    assert list(values) == sorted(set(values))


def test_medium_values_are_spread_evenly():
    values = curve_values(1000, None, 500, None)
    assert values[0] == 500
    assert values[-1] == 4000
    assert len(values) == 34


def test_the_models_limit_bounds_the_values_unless_the_plan_is_beyond_it():
    assert curve_values(512, None, 128, 512)[-1] == 512
    assert curve_values(1024, None, 128, 512)[-1] == 1024


def test_a_value_below_the_usual_start_is_shown():
    assert curve_values(16, None, 128, 512)[0] == 16


def test_the_curve_is_cut_where_it_crosses_the_cards_line():
    below, above = line().split_at_card()
    assert below[-1] == above[0] == (3.5, 24)
    assert below[0] == (1, 14)
    assert above[-1] == (8, 42)


@pytest.mark.parametrize(
    ("capacity", "corner"), [(24, "below right"), (40, "above left"), (100, "above left"), (None, "above left")]
)
def test_words_about_the_card_stand_clear_of_the_curve(capacity, corner):
    assert line(capacity_gib=capacity).label_corner == corner


def test_words_about_the_card_stand_at_the_end_that_is_above_it():
    rising = line()
    falling = replace(rising, points=tuple(point(value, 50 - 4 * value) for value in range(1, 9)))
    assert falling.label_corner == "below left"
    assert replace(falling, capacity_bytes=40 * GIB).label_corner == "above right"


@pytest.mark.parametrize(("capacity", "fitting"), [(None, 8), (100, 8), (4, 0)])
def test_a_curve_on_one_side_of_the_line_is_whole(capacity, fitting):
    below, above = line(capacity_gib=capacity).split_at_card()
    assert (len(below), len(above)) == (fitting, 8 - fitting)


def test_a_curve_that_falls_or_crosses_twice_is_cut_as_well():
    points = (point(1, 30), point(2, 20), point(4, 22), point(8, 34))
    data = CurveData("count", "Cards with ZeRO-3", points, points[0], 24 * GIB, "Some card")
    below, above = data.split_at_card()
    assert [y for _, y in below] == [24, 20, 22, 24]
    assert [y for _, y in above[:2]] == [30, 24]
    assert isnan(above[2][0])
    assert [y for _, y in above[3:]] == [24, 34]
    low, _ = data.memory_range
    assert low < 20 * GIB


def test_an_axis_that_starts_at_nothing_is_linear():
    points = tuple(point(value, 10 + value) for value in range(34))
    assert not CurveData("gpu_layers", "Layers on the GPU", points, points[3], None, None).is_wide


def test_the_axis_shows_the_line_the_point_and_no_more_than_twice_that():
    low, high = (end / GIB for end in line(last=40).memory_range)
    assert low == 0
    assert high == 48
    low, high = (end / GIB for end in line(last=2, capacity_gib=None).memory_range)
    assert 0 < low < 13.5
    assert high > 18.5


def test_marks_are_round_numbers_or_powers_of_two():
    assert [text for _, text in value_ticks(line(), 4)] == ["2", "4", "6", "8"]
    wide = CurveData("context_length", "Context", (point(128, 14), point(131_072, 22)), point(128, 14), None, None)
    assert wide.is_wide
    assert [text for _, text in value_ticks(wide, 6)] == ["128", "512", "2,048", "8,192", "32,768", "131,072"]
    assert [text for _, text in curve_memory_ticks(line(last=40), 5)] == ["0", "10", "20", "30", "40"]


def test_the_nearest_point_is_found_on_the_axis():
    assert line().nearest_point(2.6).value == 3


def test_an_export_has_every_byte():
    rows = line(last=2).csv_rows()
    assert rows[0] == ("batch", "bytes", "low_bytes", "high_bytes", "host_bytes", "gib")
    assert rows[1] == ("1", str(14 * GIB), str(27 * GIB // 2), str(29 * GIB // 2), "", "14.000000")


def test_an_export_has_what_stays_in_ram():
    points = tuple(point(value, 10 + value).evolve(host_bytes=(8 - value) * GIB) for value in range(9))
    rows = CurveData("gpu_layers", "Layers on the GPU", points, points[0], None, None).csv_rows()
    assert [row[4] for row in rows[1:3]] == [str(8 * GIB), str(7 * GIB)]
