"""Axes, their marks and what plots there are."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from planner.gui.monitor.plots.clock_ticks import clock_text, clock_ticks
from planner.gui.monitor.plots.scales import Range, axis_range, axis_ticks, value_text
from planner.gui.monitor.plots.specs import PLOTS, arranged
from planner.units import GIB, MIB

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()


def texts(span: float, wanted: int, began: float = NOON, zone=UTC) -> list[str]:
    return [text for _, text in clock_ticks(0.0, span, wanted, lambda time: began + time, zone)]


@pytest.mark.parametrize(
    ("span", "wanted", "expected"),
    [
        (1.0, 5, ["12:00:00.0", "12:00:00.2", "12:00:00.4", "12:00:00.6", "12:00:00.8", "12:00:01.0"]),
        (60.0, 4, ["12:00:00", "12:00:15", "12:00:30", "12:00:45", "12:01:00"]),
        (3600.0, 4, ["12:00", "12:15", "12:30", "12:45", "13:00"]),
        (86_400.0, 4, ["12:00", "18:00", "5 March", "06:00", "12:00"]),
        (4 * 86_400.0, 2, ["5 March", "6 March", "7 March", "8 March"]),
    ],
)
def test_marks_of_time_stand_at_round_times(span, wanted, expected):
    assert texts(span, wanted) == expected


def test_marks_of_hours_stand_at_the_hours_of_the_place():
    india = timezone(timedelta(hours=5, minutes=30))
    assert texts(3 * 3600.0, 3, zone=india) == ["18:00", "19:00", "20:00"]


def test_marks_are_where_their_time_is():
    began = NOON + 0.25
    for time, text in clock_ticks(100.0, 160.0, 6, lambda time: began + time, UTC):
        assert clock_text(began + time + 1e-6, UTC) == text


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("fraction", 0.873, "87\u2009%"),
        ("bytes", 17.4 * GIB, "17.4\u2009GiB"),
        ("bytes/s", 1.25e9, "1.25\u2009GB/s"),
        ("bytes/s", 0.0, "0\u2009B/s"),
        ("W", 312.4, "312\u2009W"),
        ("°C", None, "unknown"),
    ],
)
def test_values_are_told_with_their_unit(unit, value, text):
    assert value_text(unit, value) == text


@pytest.mark.parametrize(
    ("unit", "seen", "lines", "low", "high"),
    [
        ("fraction", Range(0.2, 0.4), (), 0, 1.02),
        ("fraction", None, (), 0, 1.02),
        ("°C", Range(45, 61), (92.0,), 20, 97),
        ("°C", Range(5, 61), (), 0, 66),
        ("W", Range(80, 300), (450.0,), 0, 472.5),
        ("W", Range(80, 300), (), 0, 400),
        ("bytes/s", None, (), 0, 1),
    ],
)
def test_an_axis_holds_what_is_seen_and_its_lines(unit, seen, lines, low, high):
    assert axis_range(unit, seen, lines) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("unit", "high", "last"),
    [
        ("fraction", 1.02, "100\u2009%"),
        ("bytes", 24 * GIB, "20\u2009GiB"),
        ("bytes", 100 * MIB, "100\u2009MiB"),
        ("bytes/s", 2e6, "2\u2009MB/s"),
    ],
)
def test_marks_of_values_have_their_unit(unit, high, last):
    assert axis_ticks(unit, Range(0.0, high), 4)[-1][1] == last


def test_every_plot_has_quantities_of_one_unit():
    for spec in PLOTS:
        assert {spec.metric(name).unit for name in spec.metrics} == {spec.unit}
    assert len({spec.key for spec in PLOTS}) == len(PLOTS)


def test_plots_keep_an_order_to_which_others_are_added():
    usual = [spec.key for spec in PLOTS]
    assert [spec.key for spec in arranged(())] == usual
    assert [spec.key for spec in arranged(("cpu", "utilization", "gone"))][-1] != "gone"
    order = [spec.key for spec in arranged(("power", "utilization"))]
    assert order[:3] == ["power", "utilization", "memory_used"] or order.index("power") < order.index("utilization")
    assert sorted(order) == sorted(usual)
