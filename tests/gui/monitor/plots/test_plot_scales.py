"""Axes, their marks and what plots there are."""

import pytest

from planner.gui.monitor.plots.plot_list import PLOTS, AxisRange, metric_range, metric_ticks, plots_in_order, value_text
from planner.units import GIB, MIB


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
        ("fraction", AxisRange(0.2, 0.4), (), 0, 1.02),
        ("fraction", None, (), 0, 1.02),
        ("°C", AxisRange(45, 61), (92.0,), 20, 97),
        ("°C", AxisRange(5, 61), (), 0, 66),
        ("W", AxisRange(80, 300), (450.0,), 0, 472.5),
        ("W", AxisRange(80, 300), (), 0, 400),
        ("bytes/s", None, (), 0, 1),
    ],
)
def test_an_axis_holds_what_is_seen_and_its_lines(unit, seen, lines, low, high):
    assert metric_range(unit, seen, lines) == pytest.approx((low, high))


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
    assert metric_ticks(unit, AxisRange(0.0, high), 4)[-1][1] == last


def test_every_plot_has_quantities_of_one_unit():
    for spec in PLOTS:
        assert {spec.metric(name).unit for name in spec.metrics} == {spec.unit}
    assert len({spec.key for spec in PLOTS}) == len(PLOTS)


def test_plots_keep_an_order_to_which_others_are_added():
    usual = [spec.key for spec in PLOTS]
    assert [spec.key for spec in plots_in_order(())] == usual
    assert [spec.key for spec in plots_in_order(("cpu", "utilization", "gone"))][-1] != "gone"
    order = [spec.key for spec in plots_in_order(("power", "utilization"))]
    assert order[:3] == ["power", "utilization", "memory_used"] or order.index("power") < order.index("utilization")
    assert sorted(order) == sorted(usual)
