"""PySide6 6.12.0 loses a reference to None on every void call under Python 3.11; a plot then aborts the process."""

import sys

from planner.gui.memory.curve_data import CurveData
from planner.gui.memory.curve_plot import CurvePlot
from planner.plan.explore import CurvePoint
from planner.units import GIB

REDRAWS = 2000


def test_redrawing_a_plot_keeps_the_references_to_none(qtbot, theme):
    plot = CurvePlot(theme)
    qtbot.addWidget(plot)
    plot.resize(240, 160)
    plot.show()
    curves = [curve(slope) for slope in (1, 2)]
    for data in curves:
        plot.set_data(data)
        plot.repaint()
    before = sys.getrefcount(None)
    for number in range(REDRAWS):
        plot.set_data(curves[number % 2])
        plot.repaint()
    assert abs(sys.getrefcount(None) - before) < REDRAWS // 10


def curve(slope: int) -> CurveData:
    points = tuple(
        CurvePoint(
            value=value,
            total_bytes=(10 + slope * value) * GIB,
            low_bytes=(9 + slope * value) * GIB,
            high_bytes=(11 + slope * value) * GIB,
        )
        for value in range(1, 9)
    )
    return CurveData("Sequences at once", points, points[0], 16 * GIB, "Some card")
