"""PySide6 6.12.0 loses a reference to None on every void call under Python 3.11; a plot then aborts the process."""

import gc
import sys

from planner.gui.memory.memory_curve import CurveData, CurvePlot
from planner.plan.memory_curve import MemoryPoint
from planner.units import GIB

REDRAWS = 2000


def test_redrawing_a_plot_keeps_the_references_to_none(qtbot, theme):
    plot = CurvePlot(theme)
    qtbot.addWidget(plot)
    plot.resize(240, 160)
    plot.show()
    data = curve()
    plot.set_data(data)
    redraw(plot, data, 20)
    # Rubbish of earlier tests holds None as well; collected in between, it would count here.
    gc.collect()
    before = sys.getrefcount(None)
    redraw(plot, data, REDRAWS)
    gc.collect()
    # The fault loses one at every call that returns nothing, of which each redraw makes several.
    assert abs(sys.getrefcount(None) - before) < REDRAWS // 2


def redraw(plot: CurvePlot, data: CurveData, times: int) -> None:
    viewport = plot._plot.viewport()
    for number in range(times):
        plot._show_hovered(data.points[number % len(data.points)])
        viewport.repaint()


def curve() -> CurveData:
    points = tuple(
        MemoryPoint(
            value=value, total_bytes=(10 + value) * GIB, low_bytes=(9 + value) * GIB, high_bytes=(11 + value) * GIB
        )
        for value in range(1, 9)
    )
    return CurveData("batch", "Sequences at once", points, points[0], 16 * GIB, "Some card")
