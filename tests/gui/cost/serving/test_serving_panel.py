from datetime import date

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from planner.cost.terms import CostTerms, DailyHours, Service
from planner.gui.cost.serving_panel import ServingPanel
from planner.gui.cost.serving_plots import ServedMinute
from planner.gui.cost.serving_search import ServingSearchDialog
from planner.gui.cost.tab import CostTab
from planner.plan.plan import ModelChoice
from planner.present.serving.options import search_sentence
from planner.serving.result import MinuteInDetail, MinuteMoment, RequestBar
from planner.workload.training import Training
from planner.workload.workload import Inference

TODAY = date(2026, 11, 22)
GPT2 = ModelChoice(id="openai-community/gpt2")
SERVICE = Service(requests_per_day=20_000, prompt_tokens=100, output_tokens=20, ttft_seconds=1, tpot_seconds=0.05)


@pytest.fixture
def served(qtbot, workspace, theme, tasks):
    """The cost tab around a small service in vLLM, once its simulation has ended."""
    workspace.apply("service", model=GPT2, workload=Inference(profile="vllm"), gpu="l40s", cost=CostTerms(job=SERVICE))
    workspace.undo_stack.clear()
    made = CostTab(workspace, theme, tasks, lambda: TODAY)
    for _part in made.prepare():
        pass
    qtbot.addWidget(made)
    made.resize(1157, 706)
    made.show()
    qtbot.waitUntil(lambda: made.serving.simulation is not None and not tasks.busy)
    return made


def _panel(tab: CostTab) -> ServingPanel:
    return tab.serving


def test_the_service_is_simulated_below_the_decision(served):
    panel = _panel(served)
    assert panel.isVisibleTo(served)
    assert panel.text.startswith("1 × L40S (1 replica) with vLLM, for ")
    assert "All latency targets are met." in panel.text
    assert "First token: median" in panel.rows.accessibleName()
    assert "≤ 1\u2009s, met" in panel.rows.accessibleName()


def test_other_jobs_and_training_have_no_simulation(served, workspace):
    workspace.apply("job", cost=CostTerms(job=DailyHours(hours_per_day=8)))
    served.refresh(workspace.evaluation)
    assert not _panel(served).isVisibleTo(served)
    workspace.apply("job", cost=CostTerms(job=SERVICE), workload=Training())
    served.refresh(workspace.evaluation)
    assert not _panel(served).isVisibleTo(served)
    _panel(served).simulate(workspace.evaluation, 1)  # a timer may still come
    assert not served.tasks.busy


def test_a_plan_without_a_gpu_asks_for_one(served, workspace):
    workspace.apply("no card", gpu=None)
    _panel(served).simulate(workspace.evaluation, 1)
    assert "Choose a GPU" in _panel(served).text


def test_several_groups_are_replicas(served, workspace, qtbot, tasks):
    _panel(served).simulate(workspace.evaluation, 3)
    assert _panel(served).text.startswith("3 × L40S (3 replicas) with vLLM")
    qtbot.waitUntil(lambda: not tasks.busy)
    simulation = _panel(served).simulation
    assert simulation is not None
    assert simulation.replicas == 3


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "chat.csv"
    lines = "".join(f"{second},{100 + second},20\n" for second in range(40))
    path.write_text(f"arrival_seconds,input_tokens,output_tokens\n{lines}", encoding="utf-8")
    return path


def _dropped(path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    action, button, key = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    return data, (action, data, button, key)


def test_a_trace_file_takes_the_place_of_the_plans_traffic_until_it_is_taken_back(
    served, qtbot, tasks, trace_file, monkeypatch
):
    panel = _panel(served)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(trace_file), ""))
    panel.open_trace.click()
    qtbot.waitUntil(lambda: "40 requests of chat.csv, " in panel.text and not tasks.busy)
    assert panel.simulation.requests == 40
    served.find_service()
    qtbot.waitUntil(lambda: served.dialog is not None and not tasks.busy)
    assert "the trace's numbers of tokens" in served.dialog._question.text()
    served.dialog.close()
    panel.close_trace.click()
    qtbot.waitUntil(lambda: panel.simulation.requests > 40 and not tasks.busy)
    assert "chat.csv" not in panel.text
    assert not panel.close_trace.isVisibleTo(served)


def test_nothing_is_read_if_no_trace_is_chosen(served, tasks, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    _panel(served).open_trace.click()
    assert not tasks.busy


def test_a_dropped_file_is_simulated_and_one_without_requests_is_reported(served, qtbot, tasks, trace_file, tmp_path):
    panel = _panel(served)
    data, rest = _dropped(trace_file)
    entering = QDragEnterEvent(QPoint(5, 5), rest[0], data, rest[2], rest[3])
    panel.dragEnterEvent(entering)
    assert entering.isAccepted()
    panel.dropEvent(QDropEvent(QPointF(5, 5), *rest))
    qtbot.waitUntil(lambda: "chat.csv" in panel.text and not tasks.busy)
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n", encoding="utf-8")
    data, rest = _dropped(bad)
    with qtbot.waitSignal(served.workspace.failed) as reported:
        panel.dropEvent(QDropEvent(QPointF(5, 5), *rest))
    assert "bad.csv" in reported.args[0].message
    assert "chat.csv" in panel.text


def test_plans_are_left_to_the_window(served, tmp_path):
    panel = _panel(served)
    data, rest = _dropped(tmp_path / "plan.json")
    entering = QDragEnterEvent(QPoint(5, 5), rest[0], data, rest[2], rest[3])
    panel.dragEnterEvent(entering)
    assert not entering.isAccepted()
    panel.dropEvent(QDropEvent(QPointF(5, 5), *rest))
    assert panel.traced is None


def test_the_curve_is_simulated_once_its_section_is_open(served, qtbot, tasks):
    panel = _panel(served)
    assert panel.curve.data is None
    panel.curve_section.set_open(True)
    panel.curve_section.toggled.emit(True)
    qtbot.waitUntil(lambda: not tasks.busy)
    curve = panel.curve.data
    assert curve is not None
    assert len(curve.points) == len(curve.csv_rows()) - 1 == 8
    assert panel.curve.read_out.startswith("at 27.8 requests/min: median")
    chart = panel.curve._chart
    assert chart is not None
    chart._show_hovered(chart._point_at(QPointF(0.0, 0.0)))
    assert panel.curve.read_out.startswith("at 6.94 requests/min")
    panel.curve.over.choose("e2e")
    assert panel.curve.data is not None
    assert panel.curve.data.target_seconds is None
    panel.curve._as_table.click()
    assert panel.curve.table is not None
    assert panel.curve.table.records().rowCount() == 8
    assert panel.curve._row_id(curve.points[0])


def test_the_minute_is_drawn_once_its_section_is_open(served, qtbot):
    panel = _panel(served)
    panel.minute_section.set_open(True)
    panel.minute_section.toggled.emit(True)
    minute = panel.minute.data
    assert minute is not None
    assert minute.minute.begin_seconds == 0
    assert panel.minute.read_out.endswith("requests")
    chart = panel.minute._chart
    assert chart is not None
    chart._show_hovered(chart._point_at(QPointF(30.0, 0.0)))
    assert panel.minute.read_out.startswith("at 30.0 s: ")
    panel.minute.legend.buttons[0].click()
    panel.minute.legend.buttons[3].click()
    panel.minute._as_table.click()
    assert panel.minute.table is not None
    assert panel.minute.table.records().rowCount() == len(minute.minute.requests) == len(minute.csv_rows()) - 1


def test_a_minute_counts_from_its_own_beginning():
    bars = (
        RequestBar(7, 0, 10, 5, 58.0, 61.0, 62.0, None, (63.0,)),
        RequestBar(8, 1, 10, 5, 65.0, None, None, None, ()),
    )
    moments = (MinuteMoment(61.0, 0, 1, 1, 0, 0.25), MinuteMoment(62.0, 1, 0, 0, 1, 0.5))
    shifted = ServedMinute.counted_from_zero(
        MinuteInDetail(begin_seconds=60.0, end_seconds=120.0, requests=bars, moments=moments)
    )
    first, second = shifted.bars
    assert (first.arrival, first.scheduled, first.first_token, first.end, first.preempted) == (-2, 1, 2, None, (3,))
    assert (second.arrival, second.scheduled) == (5, None)
    assert [moment.waiting for moment in shifted.moments_at(5)] == [1, 0]
    assert [moment.waiting for moment in shifted.moments_at(1.5)] == [1]


def test_traffic_of_a_kind_of_service_brings_its_lengths_and_targets(served, workspace):
    job = served.controls.job
    job.traffic.choose("chat")
    changed = workspace.plan.cost.job
    assert isinstance(changed, Service)
    assert (changed.traffic_preset, changed.prompt_tokens > 1_000, changed.ttft_seconds) == ("chat", True, 1)
    served.refresh(workspace.evaluation)
    assert not job.field("job.prompt_tokens").isVisibleTo(job)
    workspace.undo_stack.undo()
    assert workspace.plan.cost.job == SERVICE


@pytest.fixture
def owner(qtbot):
    """The window that the dialog belongs to."""
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def opened(qtbot, workspace, theme, tasks, owner, monkeypatch):
    """Open the search for a service, whose hardware is only owned cards of one vendor."""

    def open_with(job: Service) -> ServingSearchDialog:
        workspace.apply("service", model=GPT2, workload=Inference(profile="vllm"), gpu="l40s", cost=CostTerms(job=job))
        monkeypatch.setattr(
            ServingSearchDialog,
            "wish",
            property(
                lambda self: _wish(self).evolve(gpus=("l40s", "rtx-4090"), having=("own",), cards_per_replica=(1,))
            ),
        )
        dialog = ServingSearchDialog(workspace, theme, tasks, owner, lambda: TODAY)
        qtbot.addWidget(dialog)
        dialog.show()
        return dialog

    return open_with


_wish = ServingSearchDialog.wish.fget


def test_the_search_lists_hardware_and_takes_the_best_into_the_plan(opened, qtbot, workspace):
    dialog = opened(SERVICE)
    with qtbot.waitSignal(dialog.search_finished, timeout=60_000):
        pass
    assert dialog.sentence.text().startswith("Best: 1 × ")
    assert search_sentence(dialog.answer) in dialog.sentence.text()
    assert "What would change it:" in dialog._details.text()
    assert not dialog.progress.isVisibleTo(dialog)
    dialog.copy()
    copied = QGuiApplication.clipboard().text()
    assert "Best: 1 × " in copied
    assert "Per month" in copied
    row = dialog.model.records[0]
    dialog.table.choose(row.id)
    dialog._use.click()
    assert workspace.plan.gpu == row.option.plan.gpu
    assert workspace.undo_stack.undoText() == "hardware of the service"


def test_the_search_begins_again_when_a_choice_changes(opened, qtbot):
    dialog = opened(SERVICE)
    with qtbot.waitSignal(dialog.search_finished, timeout=60_000):
        pass
    with qtbot.waitSignal(dialog.search_finished, timeout=60_000):
        dialog.objective.choose("watts")
    assert dialog.answer is not None
    assert dialog.answer.wish.objective == "watts"


def test_a_service_without_targets_is_told_where_to_enter_them(opened):
    dialog = opened(SERVICE.evolve(ttft_seconds=None, tpot_seconds=None))
    assert "no latency targets" in dialog.sentence.text()
    assert dialog.answer is None


def test_what_comes_closest_is_shown_if_nothing_holds(opened, qtbot):
    dialog = opened(SERVICE.evolve(ttft_seconds=0.00001))
    with qtbot.waitSignal(dialog.search_finished, timeout=60_000):
        pass
    assert dialog.sentence.text().startswith("No hardware within the limits meets the targets. Closest: ")


def test_a_stopped_search_keeps_what_it_found(opened):
    dialog = opened(SERVICE)
    dialog.stop.click()
    assert "stopped before anything was found" in dialog.sentence.text()
    dialog.close()
