"""The plots as a person uses them."""

import gc
import sys

import pytest
from plots_kit import SECONDS, A, B, wheel
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import getAllValidWrappers, isValid

from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.monitor.plots.panel import MetricPanel, reading_columns, reading_rows
from planner.gui.plot.pens import series_pen
from planner.gui.widgets.layout import in_column, laid_out_at_once, scrolled
from planner.monitor.history import HOST, History
from planner.monitor.readings.inventory import Inventory
from planner.units import GIB

REDRAWS = 150


def panel(grid: PlotGrid, key: str) -> MetricPanel:
    return next(panel for panel in grid.panels if panel.spec.key == key)


def viewport(grid: PlotGrid, key: str):
    return panel(grid, key)._chart._plot.viewport()


def keys(grid: PlotGrid) -> list[str]:
    return [panel.spec.key for panel in grid.panels]


def test_there_is_a_plot_for_what_was_measured(grid):
    assert keys(grid) == ["utilization", "memory_used", "power", "temperature", "cpu", "disk"]
    assert [curve.key for curve in panel(grid, "power").curves] == [(A, "power_watts"), (B, "power_watts")]
    assert [button.text() for button in grid.legend.buttons] == ["GPU 0", "GPU 1"]


def test_nothing_is_drawn_of_an_empty_history(qtbot, theme, settings):
    grid = PlotGrid(theme, History(), settings)
    qtbot.addWidget(grid)
    grid.show()
    grid.refresh()
    assert grid.panels == ()


def test_plots_that_are_put_away_while_they_wait_for_the_drawing_wait_no_more(
    qapp, theme, settings, two_cards, monkeypatch
):
    monkeypatch.setattr("planner.gui.monitor.plots.grid.import_finished", lambda _module: False)
    grid = PlotGrid(theme, two_cards, settings)
    grid.show()
    grid.refresh()
    qapp.processEvents()
    assert not any(panel.is_drawn for panel in grid.panels)
    waiting = [timer for timer in getAllValidWrappers() if isinstance(timer, QTimer) and timer.isActive()]
    grid.close()
    grid.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert waiting
    assert not any(isValid(timer) and timer.isActive() for timer in waiting)


def test_a_gap_breaks_the_curves(grid):
    grid.view.set_span(None)
    for curve in panel(grid, "utilization").curves:
        (place,) = curve.breaks
        assert curve.x[place] >= 260.0
        assert curve.x[place - 1] <= 199.0


def test_a_gap_breaks_thinned_curves_too(grid):
    grid.view.set_span(None)
    from planner.gui.monitor.plots.curves import series_curve
    from planner.gui.monitor.plots.plot_list import AxisRange

    thinned = series_curve(grid._history, (A, "utilization_fraction"), "0", 0, AxisRange(0.0, 599.0), 50)
    (place,) = thinned.breaks
    assert len(thinned.x) <= 104
    assert thinned.x[place] == 260.0
    assert (thinned.columns.low.min(), thinned.columns.high.max()) == (0.5, 0.9)


def test_what_is_drawn_keeps_its_place_on_an_axis_that_never_moves(grid, theme):
    plot = panel(grid, "power")._chart
    grid.view.move_cursor(500.0)
    for span in (None, 300.0, 100.0):
        grid.view.set_span(span)
        assert plot._item.getViewBox().viewRange()[0] == [0.0, 1.0]
        assert plot._cursor.value() == pytest.approx((500.0 - grid.view.start) / grid.view.span)
        middle = plot._plot.mapFromScene(plot._item.getViewBox().mapViewToScene(QPointF(0.5, 0.0)))
        assert plot.time_at(middle.x()) == pytest.approx(
            (grid.view.start + grid.view.end) / 2, abs=grid.view.span / 200
        )
        (mark,) = plot._marks.positions
        assert mark == pytest.approx((400.0 - grid.view.start) / grid.view.span)


def test_extremes_are_joined_at_one_end(grid):
    from planner.gui.monitor.plots.curves import series_curve
    from planner.gui.monitor.plots.plot_list import AxisRange

    condensed = series_curve(grid._history, (A, "utilization_fraction"), "0", 0, AxisRange(0.0, 599.0), 50)
    assert condensed.is_condensed
    low, high = condensed.columns.low, condensed.columns.high
    assert condensed.y[:6].tolist() == [low[0], high[0], high[1], low[1], low[2], high[2]]
    grid.view.set_span(60.0)
    assert not panel(grid, "utilization").curves[0].is_condensed


def test_dashes_do_not_cut_into_extremes_where_the_colour_is_enough(theme):
    assert series_pen(theme, 1).style() == Qt.PenStyle.CustomDashLine
    assert series_pen(theme, 1, is_condensed=True).style() == Qt.PenStyle.SolidLine
    assert series_pen(theme, 8, is_condensed=True).style() == Qt.PenStyle.CustomDashLine


def test_the_cursor_is_one_for_all_and_tells_the_values(grid, qtbot):
    with qtbot.waitSignal(grid.view.cursor_moved):
        grid.view.move_cursor(301.0)
    assert panel(grid, "utilization").read_out.endswith("0: 90\u2009%   1: 90\u2009%")
    assert panel(grid, "cpu").read_out.endswith("CPU: 25\u2009%   Waiting for disks: 1\u2009%")
    assert panel(grid, "disk").read_out.endswith("5\u2009MB/s")
    assert panel(grid, "power")._chart._cursor.isVisible()
    grid.view.move_cursor(230.0)
    assert panel(grid, "power").read_out.endswith("no readings")
    grid.view.move_cursor(None)
    assert panel(grid, "power").read_out == "0: 300\u2009W   1: 301\u2009W"
    assert not panel(grid, "power")._chart._cursor.isVisible()


def test_the_pointer_moves_the_cursor_pans_and_zooms(grid, qtbot):
    grid.view.set_span(100.0)
    surface = viewport(grid, "power")
    middle = QPoint(surface.width() // 2, surface.height() // 2)
    qtbot.mouseMove(surface, middle)
    qtbot.waitUntil(lambda: grid.view.cursor is not None)
    qtbot.mousePress(surface, Qt.MouseButton.LeftButton, pos=middle)
    drag(qtbot, surface, middle + QPoint(60, 0))
    qtbot.mouseRelease(surface, Qt.MouseButton.LeftButton, pos=middle + QPoint(60, 0))
    assert not grid.view.follow
    assert grid.view.end < 599.0
    span = grid.view.span
    wheel(surface, middle, 120, Qt.KeyboardModifier.ControlModifier)
    assert grid.view.span == pytest.approx(0.8 * span)
    end = grid.view.end
    wheel(surface, middle, 120, Qt.KeyboardModifier.ShiftModifier)
    assert grid.view.end < end
    start = grid.view.start
    wheel(surface, middle, 120, Qt.KeyboardModifier.NoModifier)
    assert grid.view.start == start


def drag(qtbot: QtBot, surface, to: QPoint) -> None:
    from PySide6.QtCore import QEvent, QPointF
    from PySide6.QtGui import QMouseEvent
    from PySide6.QtWidgets import QApplication

    held = Qt.MouseButton.LeftButton
    where = QPointF(to)
    move = QMouseEvent(
        QEvent.Type.MouseMove, where, where, Qt.MouseButton.NoButton, held, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(surface, move)


def test_a_double_click_asks_for_a_mark(grid, qtbot):
    surface = viewport(grid, "power")
    with qtbot.waitSignal(grid.mark_wanted) as asked:
        qtbot.mouseDClick(surface, Qt.MouseButton.LeftButton, pos=QPoint(surface.width() - 2, 30))
    assert asked.args == [pytest.approx(599.0, abs=5)]


def test_following_shows_what_comes(grid, two_cards, make_sample):
    grid.view.set_span(60.0)
    two_cards.note(make_sample(600))
    grid.refresh()
    assert grid.view.end == 600.0
    grid.view.set_follow(False)
    two_cards.note(make_sample(601))
    grid.refresh()
    assert grid.view.end == 600.0


def test_a_card_can_be_switched_off_in_all_plots(grid):
    grid.legend.buttons[0].click()
    assert [curve.key[0] for curve in panel(grid, "power").curves] == [B]
    grid.legend.show_only(A)
    assert [curve.key[0] for curve in panel(grid, "utilization").curves] == [A]
    grid.legend.show_only(A)
    assert len(panel(grid, "utilization").curves) == 2


def test_a_double_click_in_the_legend_leaves_one_alone(grid, qtbot):
    button = grid.legend.buttons[1]
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.mouseDClick(button, Qt.MouseButton.LeftButton)
    assert grid.legend.hidden == {A}


def test_a_curve_of_the_machine_can_be_switched_off(grid):
    cpu = panel(grid, "cpu")
    cpu.legend.buttons[1].click()
    assert [curve.key for curve in cpu.curves] == [(HOST, "cpu_fraction")]


def test_limits_and_lines_are_in_the_plots(grid):
    assert [line.title for line in panel(grid, "memory_used")._limit_lines()] == ["total 24.0\u2009GiB"]
    assert [line.value for line in panel(grid, "temperature")._limit_lines()] == [92.0]
    grid.set_limit_line("memory_used_bytes", A, 17.2 * GIB, "plan: 17.2 GiB")
    grid.refresh()
    plot = panel(grid, "memory_used")._chart
    assert [line.title for *_, line in plot._lines] == ["total 24.0\u2009GiB", "plan: 17.2 GiB"]
    grid.set_limit_line("memory_used_bytes", A, None)
    grid.refresh()
    assert len(plot._lines) == 1


def test_a_line_of_the_machine_is_not_in_the_cards_plot(grid):
    grid.set_limit_line("memory_used_bytes", HOST, 1.0, "RAM")
    assert len(panel(grid, "memory_used")._limit_lines()) == 1


def test_which_plots_are_shown_is_remembered(grid, settings):
    grid.show_plot("power", False)
    assert "power" not in keys(grid)
    assert "power" in settings.current.monitor.plots.hidden
    titles = {action.text(): action for action in grid.plots_menu().actions()}
    assert not titles["Power"].isChecked()
    assert "Fan (no readings)" in titles
    titles["Power"].toggle()
    assert "power" in keys(grid)


def test_the_number_of_columns_can_be_chosen(grid, settings):
    def choose(text: str) -> None:
        (columns,) = [action.menu() for action in grid.plots_menu().actions() if action.menu() is not None]
        next(action for action in columns.actions() if action.text() == text).trigger()

    def in_one_row() -> int:
        return sum(panel.y() == grid.panels[0].y() for panel in grid.panels)

    choose("3")
    assert settings.current.monitor.plots.columns == 3
    grid._grid.activate()
    assert in_one_row() == 3
    choose("as many as fit")
    assert settings.current.monitor.plots.columns is None
    grid._grid.activate()
    assert in_one_row() == 2


def test_the_order_of_plots_is_remembered(grid, settings):
    panel(grid, "power").moved.emit(-1)
    assert keys(grid)[:3] == ["utilization", "power", "memory_used"]
    panel(grid, "power").moved.emit(1)
    assert keys(grid)[:3] == ["utilization", "memory_used", "power"]
    panel(grid, "utilization").moved.emit(-1)
    assert keys(grid)[0] == "utilization"
    panel(grid, "cpu").moved.emit(1)
    assert keys(grid)[-1] == "cpu"
    assert settings.current.monitor.plots.order
    panel(grid, "disk").hidden.emit()
    assert "disk" not in keys(grid)


def test_a_plot_is_shown_as_a_table(grid):
    grid.view.set_span(4.0)
    shown = panel(grid, "power")
    shown._as_table.setChecked(True)
    rows = shown.table.records().records
    assert [row.time for row in rows] == [599.0, 598.0, 597.0, 596.0, 595.0, 594.0]
    assert shown.table.visible_columns[2].text(rows[0]) == "301\u2009W"
    grid.legend.buttons[0].click()
    assert [column.title for column in shown.table.visible_columns] == ["Time", "GPU 1"]


def test_a_thinned_table_tells_both_ends(grid):
    from planner.gui.monitor.plots.curves import series_curve

    shown = panel(grid, "utilization")
    grid.view.set_span(None)
    curves = [series_curve(grid._history, curve.key, "", 0, shown_range(grid), 50) for curve in shown.curves]
    row = reading_rows(curves, grid._history.wall_of)[5]
    _, column, _ = reading_columns(["GPU 0", "GPU 1"], shown.spec.unit)
    assert column.text(row) == "50\u2009% – 90\u2009%"


def test_what_scrolls_the_plots_ends_with_a_whole_row(grid, qtbot):
    above, body = QLabel("The headline", alignment=Qt.AlignmentFlag.AlignTop), QWidget()
    in_column(above, (grid, 1), owner=body, spacing=4)
    area = scrolled(body)
    qtbot.addWidget(area)
    grid.fill(area)
    area.resize(900, 380)
    area.show()

    def ends_with_a_row() -> bool:
        bottoms = {shown.mapTo(body, shown.rect().bottomLeft()).y() + 1 for shown in grid.panels}
        over = min(abs(area.viewport().height() - bottom) for bottom in bottoms)
        return over <= len(bottoms) and body.height() > area.viewport().height()

    qtbot.waitUntil(ends_with_a_row)
    before = grid.panels[0].height()
    with laid_out_at_once(above):
        above.setFixedHeight(60)
    qtbot.waitUntil(lambda: grid.panels[0].height() != before and ends_with_a_row())
    before = grid.panels[0].height()
    area.resize(900, 413)
    qtbot.waitUntil(lambda: grid.panels[0].height() != before and ends_with_a_row())
    above.setFixedHeight(400)  # of the plots only the legend is in sight
    qtbot.waitUntil(lambda: grid.y() > 400)
    assert grid.panels[0].height() > grid.panels[0].minimumSizeHint().height() / 2


def test_a_plot_of_which_only_the_heading_is_in_sight_is_drawn_once_there_is_more(grid, qtbot, make_sample):
    area = QScrollArea()
    qtbot.addWidget(area)
    lowest = max(grid.panels, key=lambda panel: panel.y())
    area.resize(grid.width() + 40, lowest.y() + lowest._bar.geometry().bottom())
    area.setWidget(grid)
    area.show()
    qtbot.waitUntil(lambda: not lowest.is_in_sight and not lowest.visibleRegion().isEmpty())
    drawn = lowest.curves
    grid._history.note(make_sample(SECONDS + 9))
    with qtbot.waitSignal(grid._draw_timer.timeout):
        grid.refresh()
        grid._draw_all_soon()
    assert lowest.curves is drawn
    assert panel(grid, "utilization").curves[0].x[-1] == SECONDS + 9
    lowest.export.aboutToShow.emit()
    assert lowest.curves is not drawn
    drawn = lowest.curves
    area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
    grid.draw_visible()
    assert lowest.curves is not drawn


def shown_range(grid: PlotGrid):
    from planner.gui.monitor.plots.plot_list import AxisRange

    return AxisRange(grid.view.start, grid.view.end)


@pytest.mark.parametrize("ending", [".csv", ".png", ".svg"])
def test_a_plot_is_saved(grid, tmp_path, ending):
    file = tmp_path / f"power{ending}"
    panel(grid, "power").export.save_to(file)
    assert file.stat().st_size > 1000
    if ending == ".csv":
        header, first, *_ = file.read_text(encoding="utf-8").splitlines()
        assert header == "clock,seconds,curve,quantity,lowest,highest"
        assert first.endswith(",0.000,0,power_watts,300,300")


def test_what_cannot_be_saved_is_told(grid, tmp_path, qtbot):
    with qtbot.waitSignal(grid.failed):
        panel(grid, "power").export.save_to(tmp_path / "no such folder" / "power.csv")


def test_figures_are_copied(grid):
    next(each for each in panel(grid, "power").export.actions() if each.text() == "Copy as table").trigger()
    assert QGuiApplication.clipboard().text().startswith("clock\tseconds")


def test_another_history_takes_the_place(grid, make_sample):
    other = History()
    other.note(make_sample(5000))
    grid.view.set_follow(False)
    grid.set_history(other, 600.0)
    assert not any(each.isVisible() for each in grid.findChildren(MetricPanel))
    grid.refresh()
    assert panel(grid, "power").isVisible()
    assert grid.view.follow
    assert grid.view.end == 5000.0
    assert len(panel(grid, "power").curves[0].x) == 1


def test_plots_are_drawn_once_they_have_a_new_column_or_something_happened(grid, two_cards, make_sample):
    power, end = panel(grid, "power"), two_cards.end
    grid.view.set_span(600.0)
    seconds = grid._column_seconds
    assert 1.0 < seconds <= 2.0
    # The next column begins at a multiple of its width.
    border = int((end // seconds + 1) * seconds) + 1
    for second in range(int(end) + 1, border):
        two_cards.note(make_sample(second))
    grid.refresh()
    drawn = power.curves
    two_cards.note(make_sample(border))
    grid.refresh()
    assert (power.curves is drawn) == (border // seconds == (border - 1) // seconds)
    drawn = power.curves
    grid.refresh()
    assert power.curves is drawn
    two_cards.add_mark(float(border), "now")
    grid.refresh()
    assert power.curves is not drawn


def test_a_card_that_is_gone_keeps_its_curves(grid, two_cards):
    two_cards.note(Inventory())
    grid.refresh()
    assert [button.text() for button in grid.legend.buttons] == [A, B]


def test_a_wider_window_has_more_columns_and_the_band_ends_with_the_first(grid, qtbot):
    for width, columns in ((1900, 3), (1100, 2), (400, 1)):
        grid.window().resize(width, 1200)
        qtbot.waitUntil(lambda columns=columns: grid._arrangement[1] == columns)
        first = grid.panels[0]
        qtbot.waitUntil(lambda first=first: grid.band._axis_right == first.geometry().right() + 1)
        assert grid.events.isVisible() is (columns > 1)


def test_four_plots_stand_two_by_two_however_wide_the_window(grid, qtbot):
    for key in ("cpu", "disk"):
        grid.show_plot(key, False)
    grid.window().resize(1900, 900)
    qtbot.waitUntil(lambda: grid._arrangement[1] == 2)


def test_the_list_beside_the_band_tells_the_latest_events_up_to_the_cursor(grid):
    grid.view.set_span(None)
    assert grid.events.lines[-1].endswith("GPU 1: slowed by heat: near the hardware's limit, 9\u2009s so far")
    grid.view.move_cursor(405.0)
    assert grid.events.lines[-1].endswith("larger batch")


def test_the_keys_go_through_the_latest_events(grid, qtbot):
    grid.view.set_span(None)
    events = grid.events
    events.setFocus(Qt.FocusReason.TabFocusReason)
    assert events.currentItem().text() == events.lines[-1]
    assert events.currentItem().toolTip() == events.lines[-1]
    qtbot.keyClick(events, Qt.Key.Key_Up)
    assert events.currentItem().text() == events.lines[-2]
    selected = events.lines[-2]
    grid.view.move_cursor(grid.view.end - 1)
    events.show_lines((*events.lines, "something new"))
    assert events.currentItem().text() == selected
    qtbot.keyClick(events, Qt.Key.Key_Backtab)
    assert (events.hasFocus(), events.currentItem()) == (False, None)


def test_another_look_is_taken_on(grid, theme):
    before = grid.grab().toImage()
    theme.apply("dark")
    try:
        assert grid.grab().toImage() != before
    finally:
        theme.apply("light")


def test_a_hidden_plot_takes_on_another_look_when_it_is_shown(grid, theme, qtbot):
    grid.hide()
    theme.apply("dark")
    try:
        grid.show()
        surface = theme.color("surface")
        qtbot.waitUntil(lambda: viewport(grid, "utilization").grab().toImage().pixelColor(1, 1) == surface)
    finally:
        theme.apply("light")


def test_redrawing_keeps_the_references_to_none(grid):
    surface = viewport(grid, "utilization")
    shown = panel(grid, "utilization")

    def redraw(times: int) -> None:
        for number in range(times):
            grid.view.move_cursor(300.0 + number)
            shown.refresh()
            surface.repaint()

    redraw(10)
    gc.collect()
    before = sys.getrefcount(None)
    redraw(REDRAWS)
    gc.collect()
    assert abs(sys.getrefcount(None) - before) < REDRAWS // 2
