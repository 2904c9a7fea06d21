"""Tracing in the window: consent, progress, result, cancellation and failure."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QLineEdit, QPushButton
from pytestqt.qtbot import QtBot
from traced_runs import NET, FakeTrace, TracedTab, recording, request

from planner.errors import TraceError
from planner.gui.memory.tab import MemoryTab
from planner.gui.tab import TabEntry
from planner.gui.window import MainWindow
from planner.paths import traces_dir
from planner.plan.trace_request import operator_fields
from planner.present.plan.phrase import work_phrase
from planner.trace.analysis.memory import facts_of
from planner.trace.files import save_recording, store_recording
from planner.trace.run import TraceProgress
from planner.units import MIB

CATALOG = TabEntry("catalog", "Catalog", "catalog", "shell_fakes", "CardsTab")


@pytest.fixture
def net(tmp_path) -> Path:
    file = tmp_path / "net.py"
    file.write_text(NET, encoding="utf-8")
    return file


@pytest.fixture
def window(qtbot: QtBot, workspace, theme, tasks) -> MainWindow:
    """The window around a memory tab whose traces run nothing."""
    places = (CATALOG, TabEntry("memory", "Memory", "memory", "traced_runs", "TracedTab"))
    made = MainWindow(workspace, theme, tasks, places)
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.resize(1280, 800)
    made.show()
    return made


@pytest.fixture
def tab(window) -> TracedTab:
    return window.tab


@pytest.fixture
def traced(tab, qtbot, net) -> TracedTab:
    """The tab with a traced module in the plan, its recording kept and shown."""
    asked = request(str(net))
    store_recording(traces_dir(), recording(asked))
    tab.workspace.settings.trust(digest_of(asked))
    with qtbot.waitSignal(tab.trace.updated):
        tab.workspace.take_trace(facts_of(recording(asked)), "trace")
    return tab


def digest_of(asked):
    from planner.trace.user_code import content_digest

    return content_digest(asked)


def do(window: MainWindow, action_id: str) -> None:
    action = window.commands[action_id]
    assert action.isEnabled(), f"{action_id} is not enabled"
    action.trigger()


def button(widget, words):
    return next(made for made in widget.findChildren(QPushButton) if made.text().replace("&", "") == words)


def ask_for(qtbot, tab, net) -> None:
    """Ask for `Net` with its input, as a person does, and agree to run it."""
    dialog = tab.trace_controller.dialog
    qtbot.waitUntil(dialog.isVisible)
    dialog.open_file(net)
    dialog.target.name.set_value("Net")
    dialog.target.name.edited.emit("Net")
    shape = dialog.inputs._rows[0].shape.focusProxy()
    qtbot.keyClicks(shape, "4x8")
    qtbot.keyClick(dialog, Qt.Key.Key_Return)


def started(qtbot, tab, number=1) -> FakeTrace:
    qtbot.waitUntil(lambda: len(tab.start.traces) >= number)
    return tab.start.last


def finish(qtbot, tab) -> None:
    with qtbot.waitSignal(tab.trace.updated):
        tab.start.last.end()


def batch_edit(tab) -> QLineEdit:
    return tab.controls.what_if.form.field("batch").findChild(QLineEdit)


def type_into(qtbot, edit, text):
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def test_a_module_is_asked_for_agreed_to_traced_and_shown(window, tab, net, qtbot):
    do(window, "view.catalog")
    do(window, "plan.trace")
    assert window.tab is tab
    ask_for(qtbot, tab, net)
    assert tab.start.traces == []
    assert str(net) in tab.trace_controller.consent.text()
    qtbot.mouseClick(button(tab.trace_controller.consent, "Run it"), Qt.MouseButton.LeftButton)
    trace = started(qtbot, tab)
    assert not tab.trace_controller.dialog.isVisible()
    assert tab.trace_status.isVisible()
    trace.on_progress(TraceProgress("forward", 1, 2, 1234, "step 2 of 2: forward · 1,234 allocations and frees"))
    qtbot.waitUntil(lambda: "1,234" in tab.trace_status.progress._text.text())
    assert "step 2 of 2" in tab.trace_status.progress._text.text()
    do(window, "view.catalog")
    do(window, "view.memory")
    finish(qtbot, tab)
    assert not tab.trace_status.isVisible()
    assert work_phrase(window.workspace.evaluation).startswith("traced training")
    assert window.workspace.plan.model.id == "net.py:Net"
    assert tab.trace.timeline.data.result.peak_moment.bytes == 400 * MIB
    assert [row.class_name for row in tab.trace.tables.modules.records().records] == ["Net", "Linear"]
    assert "Net" in tab.copy_result()
    assert window.commands["edit.undo"].text() == "&Undo: trace of net.py:Net"


def test_the_filled_in_dialog_stays_behind_the_question_and_cancel_returns_to_it(window, tab, net, qtbot):
    do(window, "plan.trace")
    ask_for(qtbot, tab, net)
    dialog, consent = tab.trace_controller.dialog, tab.trace_controller.consent
    assert dialog.isVisible()
    assert consent.parent() is dialog
    qtbot.mouseClick(button(consent, "Cancel"), Qt.MouseButton.LeftButton)
    assert dialog.isVisible()
    assert dialog.target.name.value == "Net"
    assert not tab.tracer.busy
    dialog.reject()


def test_what_was_agreed_to_is_not_asked_again_until_the_file_changes(traced, window, net, qtbot):
    do(window, "plan.trace-again")
    started(qtbot, traced)
    assert traced.trace_controller.consent is None
    finish_same(qtbot, traced)
    net.write_text(NET + "\n# changed\n", encoding="utf-8")
    do(window, "plan.trace-again")
    assert len(traced.start.traces) == 1
    qtbot.mouseClick(button(traced.trace_controller.consent, "Cancel"), Qt.MouseButton.LeftButton)
    assert not traced.tracer.busy
    assert len(traced.start.traces) == 1


def finish_same(qtbot, tab) -> None:
    with qtbot.waitSignal(tab.tracer.changed):
        tab.start.last.end()
    qtbot.waitUntil(lambda: not tab.tracer.busy)


def test_a_change_is_traced_after_a_rest_while_the_old_answer_stays(traced, window, qtbot):
    before = traced.answer.headline
    type_into(qtbot, batch_edit(traced), "16")
    assert traced.trace_status.isVisible()
    assert "previous settings" in traced.trace_status.progress._old.text()
    assert traced.answer._headline.property("role") == "muted"
    trace = started(qtbot, traced)
    assert trace.request.inputs[0].value.shape == (16, 8)
    assert traced.answer.headline == before
    finish(qtbot, traced)
    assert traced.trace.result.peak_moment.bytes == 1000 * MIB
    assert traced.answer._headline.property("role") != "muted"
    assert window.workspace.undo_stack.undoText() == "batch size"
    with qtbot.waitSignal(traced.trace.updated):
        do(window, "edit.undo")
    assert traced.trace.result.peak_moment.bytes == 400 * MIB
    assert batch_edit(traced).text() == "4"


def test_a_newer_change_takes_the_place_of_an_older(traced, qtbot):
    type_into(qtbot, batch_edit(traced), "16")
    first = started(qtbot, traced)
    type_into(qtbot, batch_edit(traced), "32")
    second = started(qtbot, traced, 2)
    assert first.cancelled
    assert second.request.inputs[0].value.shape == (32, 8)
    finish(qtbot, traced)
    assert traced.workspace.plan.model.trace.request.inputs[0].value.shape == (32, 8)


def test_cancel_ends_the_trace_and_the_plan_stays(traced, window, qtbot):
    plan = traced.workspace.plan
    type_into(qtbot, batch_edit(traced), "16")
    trace = started(qtbot, traced)
    do(window, "plan.trace-cancel")
    assert trace.cancelled
    assert not traced.trace_status.isVisible()
    assert traced.workspace.plan == plan
    assert batch_edit(traced).text() == "4"


def test_another_model_lets_go_of_the_change(traced, window, qtbot):
    type_into(qtbot, batch_edit(traced), "16")
    trace = started(qtbot, traced)
    do(window, "edit.undo")
    assert trace.cancelled
    assert not traced.tracer.busy
    assert traced.exploration.isVisible()


def test_closing_the_window_ends_the_trace(traced, window, qtbot):
    type_into(qtbot, batch_edit(traced), "16")
    trace = started(qtbot, traced)
    traced.workspace.undo_stack.setClean()
    window.close()
    assert trace.cancelled


def test_a_failure_says_what_happened_and_can_be_copied_edited_and_dismissed(traced, qtbot):
    answer = traced.answer.headline
    type_into(qtbot, batch_edit(traced), "16")
    error = TraceError("forward", "RuntimeError: no", "Check it.", traceback="Traceback: net.py", printed="hello")
    started(qtbot, traced).end(error)
    qtbot.waitUntil(lambda: traced.tracer.failure is not None)
    panel = traced.trace_status.failure
    assert panel.isVisible()
    assert "net.py:Net could not be traced: in the forward pass: RuntimeError: no" in panel._message.text()
    assert "hello" in panel.details.toPlainText()
    assert traced.answer.headline == answer
    panel.copy.click()
    assert "Check it." in QGuiApplication.clipboard().text()
    panel.edit.click()
    qtbot.waitUntil(traced.trace_controller.dialog.isVisible)
    assert traced.trace_controller.dialog.request().inputs[0].value.shape == (16, 8)
    traced.trace_controller.dialog.reject()
    panel.dismiss.click()
    assert not traced.trace_status.isVisible()
    assert batch_edit(traced).text() == "4"


def test_a_missing_file_is_reported(traced, window, net):
    net.unlink()
    do(window, "plan.trace-again")
    assert "net.py" in traced.trace_status.failure._message.text()


def test_the_estimate_is_checked_by_a_trace_of_the_plans_model(window, tab, qtbot):
    tab.workspace.answer("task", {"workload.task": "training"})
    plan = tab.workspace.plan
    do(window, "plan.check-estimate")
    trace = started(qtbot, tab)
    assert trace.request.target.kind == "config"
    assert trace.request.sequence_length == 2048
    trace.end()
    qtbot.waitUntil(tab.comparison.isVisible)
    assert tab.workspace.plan == plan
    assert tab.comparison.rows[-1].estimated_bytes == tab.workspace.evaluation.memory.total_bytes
    assert "above the trace" in tab.comparison.sentence.text()
    tab.workspace.answer("batch", {"workload.micro_batch": 2})
    assert not tab.comparison.isVisible()
    do(window, "edit.undo")
    assert tab.comparison.isVisible()
    with qtbot.waitSignal(tab.trace.updated):
        tab.comparison.use.click()
    assert tab.workspace.evaluation.traced is not None
    assert not tab.comparison.isVisible()


def test_an_estimate_that_cannot_be_checked_is_reported_in_the_banner(window, tab):
    tab.workspace.answer("weights", {"workload.weights": "nf4"})
    do(window, "plan.check-estimate")
    assert "need more than PyTorch" in window.banner.text
    assert tab.start.traces == []


def test_a_python_file_that_is_dropped_is_asked_about(window, tab, net, qtbot):
    drop(window, net)
    qtbot.waitUntil(tab.trace_controller.dialog.isVisible)
    assert tab.trace_controller.dialog.target.candidate.name == "example"
    tab.trace_controller.dialog.reject()


def test_a_recording_that_is_dropped_is_opened_and_saved_again(window, tab, qtbot, tmp_path, monkeypatch):
    file = tmp_path / "net.trace.json.gz"
    save_recording(file, recording(request()))
    with qtbot.waitSignal(tab.trace.updated):
        drop(window, file)
    assert tab.workspace.plan.model.id == "net.py:Net"
    assert tab.trace.timeline.isVisible()
    again = tmp_path / "again.trace.json.gz"
    monkeypatch.setattr("planner.gui.documents.QFileDialog.getSaveFileName", lambda *_args: (str(again), ""))
    do(window, "file.save-trace")
    qtbot.waitUntil(again.exists)


def test_a_missing_recording_is_reported(traced, window, qtbot):
    for file in traces_dir().iterdir():
        file.unlink()
    with qtbot.waitSignal(traced.trace.updated):
        traced.workspace.apply("card", gpu="h100-sxm5-80gb")
    assert "Trace again" in traced.trace._missing.text()
    assert not traced.trace.timeline.isVisible()
    assert traced.answer.facts.startswith("On 1 × H100")


def test_a_card_that_is_too_small_says_where_it_runs_out(traced, qtbot):
    with qtbot.waitSignal(traced.trace.updated):
        traced.workspace.answer("others", {"workload.other_processes_bytes": 24_500_000_000})
    assert "run out of memory" in traced.trace.runs_out.text()
    assert traced.trace.runs_out.isVisible()


def test_the_tables_are_chosen_copied_and_saved(traced, tmp_path):
    tables = traced.trace.tables
    for number, start in enumerate(("Module\t", "Operator\t", "Peak allocated", "No assumptions were made")):
        tables.show_page(number)
        tables.export.actions()[0].trigger()
        assert QGuiApplication.clipboard().text().startswith(start)
    tables.show_page(1)
    tables.export.save_to(tmp_path / "alive.csv")
    assert "activations" in (tmp_path / "alive.csv").read_text(encoding="utf-8").lower()


def test_questions_follow_the_task(traced, qtbot):
    form = traced.controls.what_if.form
    assert form.field("optimizer").isVisible()
    form.field("task").edited.emit("inference")
    assert not form.field("optimizer").isVisible()
    form.field("ranks").edited.emit(8)
    assert form.request.parallel.strategy == "ddp"
    form.field("strategy").edited.emit("fsdp")
    form.field("device").edited.emit(("cpu", None))
    form.field("precision").edited.emit((None, "bf16"))
    trace = started(qtbot, traced)
    assert trace.request.task == "inference"
    assert (trace.request.parallel.ranks, trace.request.parallel.strategy) == (8, "fsdp")
    assert (trace.request.device, trace.request.autocast) == ("cpu", "bf16")
    finish(qtbot, traced)
    assert traced.workspace.plan.count == 8


def test_nothing_is_cut_off_at_the_smallest_size(traced):
    for area in (traced.controls, traced.results):
        assert area.widget().minimumSizeHint().width() <= area.viewport().width()


def test_a_real_child_traces_a_real_module(qtbot, workspace, theme, tasks, net):
    pytest.importorskip("torch")
    made = MemoryTab(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.resize(1157, 706)
    made.show()
    made.exploration.update_now()
    asked = request(str(net), batch=2)
    workspace.settings.trust(digest_of(asked))
    with qtbot.waitSignal(made.trace.updated, timeout=180_000):
        made.tracer.trace(asked)
    assert made.tracer.failure is None
    assert workspace.evaluation.traced.parameters == 72
    assert made.trace.result.peak_moment.bytes > 0
    assert "net.py:13" in made.copy_result()


def drop(window: MainWindow, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    actions = Qt.DropAction.CopyAction
    window.dropEvent(QDropEvent(QPoint(5, 5), actions, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier))


def test_a_trace_can_be_cancelled_only_while_one_runs(traced, window, qtbot):
    cancel = window.commands["plan.trace-cancel"]
    assert not cancel.isEnabled()
    type_into(qtbot, batch_edit(traced), "16")
    started(qtbot, traced)
    assert cancel.isEnabled()
    cancel.trigger()
    assert not cancel.isEnabled()


def test_a_trace_for_another_card_is_said_and_made_again(traced, qtbot, net):
    asked = request(str(net)).evolve(compute_capability="8.9")
    traced.workspace.take_trace(facts_of(recording(asked)), "trace")
    assert not traced.other_card.isVisible()
    traced.workspace.apply("card", gpu="h100-sxm5-80gb")
    assert traced.other_card.isVisible()
    assert "a GPU of compute capability 8.9" in traced.other_card.words.text()
    traced.other_card.again.click()
    trace = started(qtbot, traced)
    assert trace.request == asked.evolve(**operator_fields(traced.workspace.catalog.hardware.gpu("h100-sxm5-80gb")))
    trace.end()
    qtbot.waitUntil(lambda: not traced.other_card.isVisible())


def test_a_form_that_was_left_with_escape_is_as_it_was(window, tab, qtbot):
    do(window, "plan.trace")
    dialog = tab.trace_controller.dialog
    qtbot.waitUntil(dialog.isVisible)
    assert dialog.focusWidget() is dialog.target.file.focusProxy()
    edit = dialog.inputs._rows[0].shape.focusProxy()
    type_into(qtbot, edit, "4x8")
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    do(window, "plan.trace")
    assert dialog.inputs._rows[0].shape.text == "4x8"


def test_a_python_file_that_is_opened_is_asked_about(window, tab, net):
    window.documents.open(net)
    assert tab.trace_controller.dialog.target.file.text == str(net)
