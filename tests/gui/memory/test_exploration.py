"""The memory curve and the values that fit, in the Memory tab."""

import csv
import io

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton

from planner.gui.memory.memory_curve import CurvePlot
from planner.gui.memory.tab import MemoryTab
from planner.plan.plan import ModelChoice
from planner.units import GIB
from planner.workload.workload import Inference, Training

pytestmark = pytest.mark.usefixtures("explored_tab")


@pytest.fixture
def curve(tab: MemoryTab):
    return tab.exploration.curve


def settled(tab, qtbot):
    return qtbot.waitSignal(tab.exploration.updated)


def tool(curve, words):
    return next(made for made in curve.findChildren(QToolButton) if made.accessibleName() == words)


def place_of(plot, point):
    """Where `point` stands, in the coordinates of the widget that gets the mouse."""
    view = plot._item.getViewBox()
    scene = view.mapViewToScene(QPointF(plot._data.x_position(point.value), point.total_bytes / GIB))
    return plot._plot.mapFromScene(scene)


def test_the_curve_follows_the_plan_after_a_delay(tab: MemoryTab, curve, qtbot):
    with settled(tab, qtbot):
        for batch in (2, 3, 4):
            tab.workspace.answer("batch", {"workload.batch": batch})
            assert curve.data.current.value == 1
    assert curve.data.current.value == 4
    assert curve.data.current.total_bytes == tab.workspace.evaluation.memory.total_bytes


def test_the_x_axis_can_be_changed(tab: MemoryTab, curve, qtbot):
    with settled(tab, qtbot):
        qtbot.keyClick(curve.over.focusProxy(), Qt.Key.Key_Down)
    assert curve.data.title == "Context length, tokens"
    assert curve.data.current.value == 4096
    with settled(tab, qtbot):
        tab.workspace.answer("batch", {"workload.batch": 2})
    assert curve.data.axis == "context_length"


def test_only_meaningful_axes_are_offered(tab: MemoryTab, curve, qtbot):
    assert offered(curve) == ["Batch size", "Context length", "Number of GPUs"]
    with settled(tab, qtbot):
        tab.workspace.apply("cards", count=2)
    assert offered(curve) == ["Batch size", "Context length"]
    with settled(tab, qtbot):
        tab.workspace.apply("llama.cpp", count=1, workload=Inference(weights="Q4_K_M"))
    assert "GPU layers" in offered(curve)
    with settled(tab, qtbot):
        tab.workspace.apply("lora", workload=Training(method="lora"))
    assert offered(curve) == ["Micro-batch size", "Sequence length", "LoRA rank", "Number of GPUs"]


def offered(curve):
    box = curve.over.focusProxy()
    return [box.itemText(row) for row in range(box.count())]


def test_training_goes_over_sequences(tab: MemoryTab, curve, qtbot):
    with settled(tab, qtbot):
        tab.workspace.answer("task", {"workload.task": "training"})
    assert curve.data.title == "Micro-batch size"


def row_of(tab, asked):
    return next(row for row in tab.exploration.rows if row.solution.field_name == asked)


def test_the_largest_value_can_be_taken(tab: MemoryTab, qtbot):
    row = row_of(tab, "batch")
    largest = row.solution.value
    with settled(tab, qtbot):
        qtbot.mouseClick(row.use, Qt.MouseButton.LeftButton)
        assert not row.use.isEnabled()
    assert tab.workspace.plan.workload.batch == largest
    assert tab.workspace.evaluation.memory.verdict == "fits"
    assert tab.workspace.undo_stack.count() == 1
    assert not row.use.isEnabled()
    tab.workspace.answer("batch", {"workload.batch": largest + 1})
    assert tab.workspace.evaluation.memory.verdict != "fits"


@pytest.mark.parametrize("asked", ["count", "gpu"])
def test_solved_cards_can_be_put_into_the_plan(tab: MemoryTab, qtbot, asked):
    with settled(tab, qtbot):
        tab.workspace.apply("large", model=ModelChoice(id="meta-llama/Llama-3.1-70B"))
    row = row_of(tab, asked)
    wanted = row.solution.plan
    with settled(tab, qtbot):
        qtbot.mouseClick(row.use, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan == wanted
    assert tab.workspace.evaluation.memory.verdict == "fits"
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan.gpu == "rtx-4090"


def test_a_click_on_the_curve_over_cards_takes_as_many(tab: MemoryTab, curve, qtbot):
    with settled(tab, qtbot):
        curve.over.edited.emit("count")
    curve.value_chosen.emit(4)
    plan = tab.workspace.plan
    assert (plan.count, plan.workload.parallel.pipeline) == (4, 4)
    assert tab.workspace.undo_stack.undoText() == "number of GPUs"


def test_the_table_has_a_column_of_host_memory_where_something_is_offloaded(tab: MemoryTab, curve, qtbot):
    qtbot.mouseClick(tool(curve, "Show as table"), Qt.MouseButton.LeftButton)
    view = curve.table
    assert "host" not in [column.key for column in view.visible_columns]
    with settled(tab, qtbot):
        tab.workspace.apply("llama.cpp", workload=Inference(weights="Q4_K_M", gpu_layers=20))
    assert "host" in [column.key for column in view.visible_columns]
    assert "in host memory" in curve._read_out_text(curve.data, curve.data.current)


def test_the_table_has_the_same_figures_and_takes_a_value(tab: MemoryTab, curve, qtbot):
    qtbot.mouseClick(tool(curve, "Show as table"), Qt.MouseButton.LeftButton)
    view = curve.table
    assert view.isVisible()
    assert view.records().records == curve.data.points
    view.selectRow(4)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert tab.workspace.plan.workload.batch == curve.data.points[4].value


def test_a_click_on_the_curve_takes_the_value(tab: MemoryTab, curve, qtbot):
    plot = curve.findChild(CurvePlot)
    qtbot.mouseClick(plot._plot.viewport(), Qt.MouseButton.LeftButton, pos=place_of(plot, curve.data.points[5]))
    assert tab.workspace.plan.workload.batch == curve.data.points[5].value


def test_hovering_reads_out_the_point(curve, qtbot):
    assert curve.read_out.startswith("at batch size 1: ")
    plot = curve.findChild(CurvePlot)
    plot._on_pointer_moved(plot._plot.mapToScene(place_of(plot, curve.data.points[4])))
    assert curve.read_out.startswith("5: ")
    plot._on_pointer_moved(QPointF(-50, -50))
    assert curve.read_out.startswith("at batch size 1: ")


def copy(curve, kind):
    next(action for action in curve.export.actions() if action.text() == f"Copy as {kind}").trigger()


def test_the_curve_is_copied_as_picture_and_as_table(curve):
    copy(curve, "picture")
    assert not QGuiApplication.clipboard().pixmap().isNull()
    copy(curve, "table")
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == len(curve.data.points) + 1
    assert lines[0].startswith("batch\tbytes")


def test_the_curve_is_saved_as_picture_and_as_table(curve, tmp_path):
    curve.export.save_to(tmp_path / "curve.png")
    curve.export.save_to(tmp_path / "curve.csv")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.reader(io.StringIO((tmp_path / "curve.csv").read_text(encoding="utf-8"))))
    assert rows[1][1] == str(curve.data.points[0].total_bytes)


@pytest.mark.parametrize("name", ["curve.png", "curve.csv"])
def test_a_place_that_cannot_be_written_to_is_reported(tab: MemoryTab, curve, tmp_path, qtbot, name):
    with qtbot.waitSignal(tab.workspace.failed) as failed:
        curve.export.save_to(tmp_path / "missing" / name)
    assert name in failed.args[0].message
    assert failed.args[0].hint


def test_a_new_scheme_restyles_the_plot(curve, theme):
    plot = curve.findChild(CurvePlot)
    theme.apply("dark")
    corner = plot.grab().toImage().pixelColor(plot.width() - 2, 2)
    dark = theme.color("surface")
    theme.apply("light")
    assert corner == dark
    assert plot.grab().toImage().pixelColor(plot.width() - 2, 2) == theme.color("surface")
