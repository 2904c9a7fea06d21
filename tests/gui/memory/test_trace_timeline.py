"""The timeline of live memory: data, ticks, hover text and export."""

import csv
import io

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton
from traced_runs import recording, request

from planner.gui.memory.trace.timeline import (
    TimelineData,
    TimelinePanel,
    TimelinePlot,
    live_memory_ticks,
    moment_ticks,
    role_of,
)
from planner.present import format as fmt
from planner.trace.analysis.trace_result import conclude
from planner.units import MIB


@pytest.fixture
def result(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    return conclude(recording(request()), gpu, catalog.hardware.usable_memory(gpu))


@pytest.fixture
def data(result):
    return TimelineData(result, "GeForce RTX 4090")


@pytest.fixture
def panel(qtbot, theme, data):
    made = TimelinePanel(theme)
    qtbot.addWidget(made)
    made.resize(720, 360)
    made.show()
    made.set_data(data)
    return made


def tool(panel, words):
    return next(made for made in panel.findChildren(QAbstractButton) if made.accessibleName() == words)


def test_the_stack_ends_at_the_live_bytes(data):
    edges = data.stack()
    assert [series.category for series, _ in edges] == ["parameters", "gradients", "activations"]
    peak = data.result.peak_moment.bytes / data.unit[1]
    assert max(edges[-1][1]) == pytest.approx(peak)
    assert [series.category for series, _ in data.stack(("gradients",))] == ["parameters", "activations"]


def test_the_peak_is_where_it_was_found(data):
    assert data.times[data.peak_point] == data.result.peak_moment.time
    assert data.row(data.peak_point).moment.bytes == 400 * MIB


def test_phases_are_named_by_their_step(data):
    titles = [phase.title for phase in data.phases]
    assert titles == ["Load", "Forward 1", "Backward 1", "Step 1", "Forward 2", "Backward 2", "Step 2"]


def test_small_networks_are_shown_in_their_unit_without_a_far_card(data):
    assert data.unit[0] == "MiB"
    assert not data.card_in_view
    assert data.top_bytes < 1.5 * data.result.peak_moment.bytes


def test_the_card_is_in_view_where_it_is_near_and_leaves_out_the_overhead(result):
    overhead = result.term("framework_overhead").bytes
    near = result.model_copy(update={"capacity_bytes": 500 * MIB + overhead})
    data = TimelineData(near)
    assert data.card_in_view
    assert data.for_tensors_bytes == 500 * MIB
    assert TimelineData(result.model_copy(update={"capacity_bytes": None})).for_tensors_bytes is None


def test_the_ticks_are_round_and_moments_whole(data):
    assert live_memory_ticks(data, 4)[1][1] in {"100", "200"}
    assert all(value == round(value) for value, _ in moment_ticks(data, 20))


def test_every_colour_is_known(data, theme):
    inputs = data.series[0]._replace(category="inputs")
    assert all(theme.color(role_of(series)).isValid() for series in (*data.series, inputs))
    assert role_of(inputs) == "inputs"


def test_the_pointer_reads_out_when_what_and_who(panel, data, qtbot):
    plot = panel.findChild(TimelinePlot)
    view = plot._item.getViewBox()
    time = data.times[data.peak_point]
    scene = view.mapViewToScene(QPointF(time + 0.5, 1))
    plot._on_pointer_moved(scene)
    words = plot.card.text()
    assert plot.card.isVisible()
    assert "400" in words
    assert "Activations: 200" in words
    assert "mm in linear" in words
    assert "/home/me/net.py:13" in words
    assert "in the backward pass of step 1" in panel.read_out
    plot._on_pointer_moved(view.mapViewToScene(QPointF(-5, 1)))
    assert not plot.card.isVisible()


def test_the_keyboard_goes_from_moment_to_moment(panel, data, qtbot):
    plot = panel.findChild(TimelinePlot)
    plot.setFocus()
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    at_peak = plot.card.text()
    assert "400" in at_peak
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert plot.card.text() != at_peak
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert plot.card.text() == at_peak
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert not plot.card.isVisible()


def test_phases_narrower_than_their_titles_are_labelled_below_each_other(panel, data):
    plot = panel.findChild(TimelinePlot)
    panel.resize(420, 360)
    labels = [words for _line, words, _phase in plot._phases]
    assert len(labels) == len(data.phases)
    assert all(label.isVisible() for label in labels[:3])
    assert len({label.pos().y() for label in labels}) > 1


def test_the_chart_says_how_the_tensors_lead_to_the_answer(panel, data, result):
    overhead = fmt.size(result.term("framework_overhead").bytes)
    needed = fmt.size(result.total_bytes)
    assert data.sum_text == f"tensors {fmt.size(400 * MIB)} + framework overhead {overhead} = {needed}"
    assert panel.read_out == f"At the peak: {data.sum_text}"
    assert data.card_text.endswith(" usable")
    assert TimelineData(result.model_copy(update={"capacity_bytes": None})).card_text == ""


def test_a_category_can_be_hidden(panel, qtbot):
    legend = panel.legend
    plot = panel.findChild(TimelinePlot)
    assert len(plot._areas) == 3
    qtbot.mouseClick(tool(legend, "Show gradients in the timeline"), Qt.MouseButton.LeftButton)
    assert legend.hidden == {"gradients"}
    assert len(plot._areas) == 2
    qtbot.mouseClick(tool(legend, "Show gradients in the timeline"), Qt.MouseButton.LeftButton)
    assert len(plot._areas) == 3


def test_the_table_has_a_row_a_moment(panel, data, qtbot):
    qtbot.mouseClick(tool(panel, "Show as table"), Qt.MouseButton.LeftButton)
    assert panel.table.isVisible()
    assert [row.moment.time for row in panel.table.records().records] == list(data.times)


def test_the_timeline_is_copied_and_saved(panel, data, tmp_path):
    next(action for action in panel.export.actions() if action.text() == "Copy as table").trigger()
    assert QGuiApplication.clipboard().text().startswith("event\tstep\tphase\tlive_bytes")
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        panel.export.save_to(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    panel.export.save_to(tmp_path / "a.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"))))
    assert max(int(row["live_bytes"]) for row in rows) == data.result.peak_moment.bytes
    failures = []
    panel.failed.connect(failures.append)
    panel.export.save_to(tmp_path / "none" / "a.svg")
    panel.export.save_to(tmp_path / "none" / "a.csv")
    assert len(failures) == 2


def test_a_new_scheme_restyles_the_timeline(panel, theme):
    plot = panel.findChild(TimelinePlot)
    theme.apply("dark")
    try:
        assert plot._areas[0].opts["brush"].color() == theme.color(role_of(panel.data.series[0]))
    finally:
        theme.apply("light")
