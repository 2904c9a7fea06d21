"""Recording, replaying, marking, alerts and processes in the Monitor tab."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from fake_nvml_kit import A, B, card
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QInputDialog, QWidget

from planner.gui.monitor.dialogs import DoctorDialog, SummaryDialog
from planner.gui.monitor.replay import RecordingLoader, RecordingReplay
from planner.monitor.alerts import AlertKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.recorder import Recorder
from planner.monitor.settings import AlertRules
from planner.plan.plan import ModelChoice


def wait(qtbot, holds):
    qtbot.waitUntil(lambda: bool(holds()))


@pytest.fixture
def sleeper():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_what_is_recorded_is_replayed_in_the_same_view_and_live_goes_on(qtbot, make_tab, driver, recording: Path):
    driver.say(card(0, A, utilization=33))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    assert tab.toolbar.record.text() == "Stop &recording"
    begun = tab.feed.now
    tab.feed.add_mark(tab.feed.now, "here")
    wait(qtbot, lambda: tab.feed.now > begun + 0.5)
    tab.toolbar.record.click()
    assert tab.toolbar.record.text() == "&Record"
    driver.say(card(0, A, utilization=66))
    tab.controller.open_recording_file(recording)
    wait(qtbot, lambda: not tab.feed.is_live)
    assert tab.toolbar.source.text() == f"Replay of {recording.name}"
    wait(qtbot, lambda: "33" in tab.cards.texts[0])
    assert [mark.text for mark in tab.feed.history.marks] == ["here"]
    assert not tab.toolbar.record.isVisible()
    tab.toolbar.live.click()
    wait(qtbot, lambda: "66" in tab.cards.texts[0])
    assert tab.toolbar.source.text() == "Live"


def test_a_recording_that_cannot_be_made_or_read_is_told(qtbot, make_tab, driver, workspace, tmp_path):
    driver.say(card(0, A))
    tab = make_tab()
    with qtbot.waitSignal(workspace.failed) as told:
        tab.controller.record_to(tmp_path / "none" / "run.gpurec")
    assert "cannot be written" in told.args[0].message
    with qtbot.waitSignal(workspace.failed) as told:
        tab.controller.open_recording_file(tmp_path / "none.gpurec")
    assert "cannot be read" in told.args[0].message
    head_only = tmp_path / "head.gpurec"
    head = b'{"recording":{"version":1,"program":"a test","wall_seconds":1767600000.0}}'
    head_only.write_bytes(gzip.compress(head + b"\n"))
    with qtbot.waitSignal(workspace.failed, timeout=60_000) as told:
        tab.controller.open_recording_file(head_only)
    assert told.args[0].message == f"{head_only}: no readings"
    assert tab.feed.is_live


def test_the_machine_is_checked_once_it_has_been_read(qtbot, theme, tasks):
    latest, parent = Latest(), QWidget()
    qtbot.addWidget(parent)
    dialog = DoctorDialog(latest, theme, tasks, parent)
    qtbot.wait(300)
    assert dialog.text.toPlainText() == "Checking…"
    latest.note_sample(Sample(1.0, 2.0))
    qtbot.waitUntil(lambda: "Driver" in dialog.text.toPlainText(), timeout=60_000)


def test_the_demo_is_labelled_and_says_what_holds_the_cards_back(qtbot, make_tab, driver):
    tab = make_tab(without_driver=True)
    tab.empty_state.demo.click()
    wait(qtbot, lambda: not tab.feed.is_live)
    assert tab.toolbar.source.text() == "Demo: invented readings"
    wait(qtbot, lambda: "input-bound (the CPU is fully used)" in tab.headline.text)
    assert "2 × RTX 4090" in tab.cards.totals_text
    wait(qtbot, lambda: "Recorded plan: Qwen/Qwen2.5-0.5B" in tab.plan_strip.sentence.text())
    assert "invented" in tab.copy_result()
    tab.replay_bar.slider.setValue(8800)
    assert "lost" in tab.cards.texts[1]
    assert not tab.toolbar.pause.isVisible()
    tab.replay_bar.play.click()
    assert not tab.feed.replay.is_playing


def test_a_click_in_a_plot_or_on_the_slider_moves_the_whole_replay_there(qtbot, make_tab, driver):
    tab = make_tab(without_driver=True)
    tab.controller.show_demo()
    wait(qtbot, lambda: tab.feed.replay is not None)
    replay, slider, band = tab.feed.replay, tab.replay_bar.slider, tab.plots.band
    tab.replay_bar.play.click()
    wait(qtbot, lambda: band.items)
    where = QPoint(round(band.width() * 0.7), 5)
    qtbot.mouseClick(band, Qt.MouseButton.LeftButton, pos=where)
    time = band.time_at(where.x())
    assert replay.now == pytest.approx(time)
    wait(qtbot, lambda: tab.plots.view.cursor == pytest.approx(time))
    assert slider.value() == round(replay.seconds * 10)
    QApplication.sendEvent(band, QEvent(QEvent.Type.Leave))
    wait(qtbot, lambda: tab.plots.view.cursor == pytest.approx(time))
    qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, slider.height() // 2))
    assert replay.seconds == pytest.approx(replay.length / 4, rel=0.03)
    assert slider.value() == round(replay.seconds * 10)


def test_a_replay_moves_with_the_clock_and_stops_at_its_end(qapp, qtbot):
    now = [0.0]
    from planner.gui.monitor.controller import DEMO

    replay = RecordingReplay(RecordingLoader(DEMO, is_demo=False).load(), lambda: now[0])
    replay.set_speed(10.0)
    replay.play()
    now[0] = 6.0
    wait(qtbot, lambda: replay.seconds == 60.0)
    now[0] = 1000.0
    wait(qtbot, lambda: not replay.is_playing)
    assert replay.seconds == replay.length
    replay.play()
    assert replay.seconds == 0.0
    replay.stop()


def test_a_note_is_asked_for_and_put_on_the_time_line(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.toolbar.note.click()
    assert isinstance(tab.controller.dialog, QInputDialog)
    tab.controller.dialog.setTextValue("new batch")
    tab.controller.dialog.accept()
    assert [mark.text for mark in tab.feed.history.marks] == ["new batch"]


def test_an_alert_is_told_and_marked(qtbot, make_tab, driver, workspace):
    driver.say(card(0, A, temperature__0=95))
    with qtbot.waitSignal(workspace.noticed) as told:
        tab = make_tab(rules=AlertRules(is_on=True, temperature_celsius=90, hold_seconds=0))
    assert told.args[0] == "GPU 0 Test 0 is at 95\u2009°C"
    assert [mark.text for mark in tab.feed.history.marks] == [told.args[0]]


def test_alerts_are_switched_on_and_remembered(qtbot, make_tab, driver, workspace):
    driver.say(card(0, A))
    tab = make_tab()
    assert not tab.feed.needs_driver_while_hidden
    tab.toolbar.alerts.click()
    dialog = tab.controller.dialog
    assert not dialog.rules["temperature_celsius"].number.isEnabled()
    dialog.is_on.setChecked(True)
    dialog.rules["temperature_celsius"].number.choose(77)
    dialog.rules["memory_fraction"].setChecked(False)
    dialog.may_end_others.setChecked(True)
    dialog.accept()
    remembered = workspace.settings.current.monitor
    assert remembered.alerts.is_on
    assert remembered.alerts.temperature_celsius == 77
    assert remembered.alerts.memory_fraction is None
    assert remembered.may_end_others
    assert tab.feed.needs_driver_while_hidden
    assert tab.toolbar.alerts.toolTip() == "Alerts: on"
    assert AlertKind.LOST == "lost"


def test_processes_are_listed_filtered_copied_and_ended_after_a_question(qtbot, make_tab, driver, sleeper):
    pid = sleeper.pid
    driver.say(
        card(0, A) | {"0.process.compute": f"{pid}:{2**30}"}, card(1, B) | {"1.process.graphics": f"999999:{2**20}"}
    )
    tab = make_tab()
    tab.focus_search()
    table = tab.processes.table
    wait(qtbot, lambda: table.records().rowCount() == 2)
    assert tab.process_section.is_open
    tab.processes.search.setText(str(pid))
    assert table.records().rowCount() == 1
    tab.processes.copy()
    assert f"{pid}\t0\t" in QGuiApplication.clipboard().text()
    tab.processes.search.clear()
    tab.processes.only_own.setChecked(True)
    assert table.records().rowCount() == 1
    table.enter()
    table.choose(table.records().identify(table.records().record(0)))
    assert tab.processes.end.isEnabled()
    tab.processes.end.click()
    box = tab.processes.kill_process.box
    assert str(pid) in box.text()
    next(button for button in box.buttons() if "End it" in button.text()).click()
    assert sleeper.wait(10) != 0


def test_a_process_that_is_not_of_this_machine_is_not_ended(qtbot, make_tab, driver, workspace):
    driver.say(card(0, A) | {"0.process.compute": f"999999:{2**20}"})
    tab = make_tab()
    tab.focus_search()
    table = tab.processes.table
    wait(qtbot, lambda: table.records().rowCount() == 1)
    table.enter()
    table.choose(table.records().identify(table.records().record(0)))
    with qtbot.waitSignal(workspace.failed) as told:
        tab.processes.end.click()
    assert "PID is not valid here" in told.args[0].hint
    assert tab.processes.kill_process.box is None


def test_a_diagnosis_is_shown_in_full_with_its_evidence(qtbot, make_tab, driver):
    tab = make_tab(without_driver=True)
    tab.controller.show_demo()
    wait(qtbot, lambda: "input-bound" in tab.headline.text)
    tab.cards.opened.emit(tab.feed.latest.inventory.devices[0].uuid)
    text = tab.controller.dialog.text.toPlainText()
    assert "Host" in text or "CPU" in text
    assert "What to try, most likely first" in text
    tab.controller.dialog.close()


def test_the_plan_is_laid_beside_the_card_it_is_for(qtbot, make_tab, driver, workspace):
    process = {"0.process.compute": f"999999:{18 * 2**30}"}
    driver.say(card(0, A, name="NVIDIA GeForce RTX 4090", memory__used=19 * 2**30) | process, card(1, B))
    workspace.apply("model", model=ModelChoice(id="meta-llama/Llama-3.2-3B"))  # the sample plan is not compared
    tab = make_tab()
    wait(qtbot, lambda: "predicted" in tab.plan_strip.sentence.text())
    assert tab.plan_strip.sentence.text().startswith("GPU 0: predicted ")
    assert set(tab.plan_strip.expected) == {A}
    workspace.apply("card", gpu="tesla-t4")
    wait(qtbot, lambda: "which is not among these GPUs" in tab.plan_strip.sentence.text())
    tab.plan_strip.plan.click()
    assert workspace.plan.gpu == "rtx-4090"
    workspace.undo_stack.undo()
    assert workspace.plan.gpu == "tesla-t4"


def test_a_measured_speed_takes_the_place_of_the_estimate(qtbot, make_tab, driver, workspace):
    driver.say(card(0, A, name="NVIDIA GeForce RTX 4090"), card(1, B))
    workspace.apply("model", model=ModelChoice(id="meta-llama/Llama-3.2-3B"))
    tab = make_tab()
    wait(qtbot, lambda: tab.plan_strip.expected)
    estimated = workspace.evaluation.time
    tab.plan_strip.speed.click()
    questions = tab.controller.dialog.questions
    questions.speed.edited.emit(estimated.tokens_per_second / 2)
    assert workspace.plan.timing.measured.gpu == "rtx-4090"
    assert workspace.evaluation.time.tokens_per_second == pytest.approx(estimated.tokens_per_second / 2)
    assert workspace.evaluation.time.basis == "measured"
    workspace.undo_stack.undo()
    assert workspace.evaluation.time == estimated
    tab.controller.dialog.close()


def test_a_recording_is_laid_beside_the_plan_that_it_was_made_with(qtbot, make_tab, driver, workspace, recording):
    driver.say(card(0, A, name="NVIDIA GeForce RTX 4090"))
    workspace.apply("card", gpu="tesla-t4")
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    begun = tab.feed.now
    workspace.apply("card", gpu="rtx-4090")
    wait(qtbot, lambda: tab.feed.now > begun + 0.5)
    tab.toolbar.record.click()
    workspace.apply("card", gpu="tesla-t4")
    tab.controller.open_recording_file(recording)
    wait(qtbot, lambda: "yet. Recorded plan: " in tab.plan_strip.sentence.text())
    assert set(tab.plan_strip.expected) == {A}
    tab.plan_strip.take.click()
    assert workspace.plan.gpu == "rtx-4090"
    assert not tab.plan_strip.take.isVisible()
    workspace.undo_stack.undo()
    assert workspace.plan.gpu == "tesla-t4"
    tab.toolbar.live.click()
    wait(qtbot, lambda: "which is not among these GPUs" in tab.plan_strip.sentence.text())


def test_a_recording_whose_plan_cannot_be_read_is_laid_beside_the_window_s(
    qtbot, make_tab, driver, workspace, recording
):
    with Recorder(recording) as recorder:
        recorder.note(Inventory("580"))
        recorder.note_plan({"schema_version": 999})
        recorder.note(Sample(1.0, 1e9))
    tab = make_tab(without_driver=True)
    with qtbot.waitSignal(workspace.noticed) as told:
        tab.controller.open_recording_file(recording)
    assert told.args[0] == "The recorded plan cannot be read; the readings are compared with your current plan."
    assert "newer version" in told.args[1]


def test_the_processes_are_brought_into_sight_where_there_is_no_room_for_all(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    tab.resize(1150, 420)
    wait(qtbot, lambda: tab.cards.texts)
    wait(qtbot, lambda: tab.plots.height() >= tab.plots.minimumSizeHint().height())
    tab.focus_search()
    wait(qtbot, lambda: not tab.processes.search.visibleRegion().isEmpty())


def test_what_a_recording_came_to_is_told_when_it_ends_and_has_a_price_once_one_is_set(
    qtbot, make_tab, driver, workspace, recording
):
    driver.say(card(0, A, power=200_000))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    begun = tab.feed.now
    wait(qtbot, lambda: tab.feed.now > begun + 0.5)
    tab.toolbar.record.click()
    wait(qtbot, lambda: isinstance(tab.controller.dialog, SummaryDialog))
    dialog = tab.controller.dialog
    assert "Wh used by the GPUs" in dialog.text
    assert "$" not in dialog.text
    dialog.tariff.choose(0.3)
    assert "at $0.30 per kWh" in dialog.text
    assert workspace.settings.current.monitor.usd_per_kwh == 0.3
    dialog.copy.click()
    assert "Test 0" in QGuiApplication.clipboard().text()
    dialog.replay.click()
    wait(qtbot, lambda: not tab.feed.is_live)
    tab.controller.show_summary()
    wait(qtbot, lambda: tab.controller.dialog is not None)
    assert "at $0.30 per kWh" in tab.controller.dialog.text
    tab.controller.dialog.close()


def test_a_recording_is_exported(qtbot, make_tab, driver, workspace, tmp_path):
    tab = make_tab(without_driver=True)
    tab.controller.show_demo()
    wait(qtbot, lambda: not tab.feed.is_live)
    for name in ("table.csv", "table.parquet"):
        with qtbot.waitSignal(workspace.noticed) as told:
            tab.controller.export_to(tmp_path / name, tab.feed.replay.loaded.recording)
        assert told.args[0].startswith("Exported ")
        assert (tmp_path / name).stat().st_size > 10_000


def test_a_recording_is_exported_to_a_tracker(qtbot, make_tab, driver, workspace, tmp_path, monkeypatch):
    tab = make_tab(without_driver=True)
    with qtbot.waitSignal(workspace.noticed) as told:
        tab.controller.choose_tracker()
    assert told.args[0] == "Open a recording first."
    tab.controller.show_demo()
    wait(qtbot, lambda: not tab.feed.is_live)
    tab.controller.choose_tracker()
    dialog = tab.controller.dialog
    assert dialog.folder.text().endswith("runs")
    for index, package in ((1, "mlflow"), (2, "wandb")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr("planner.gui.monitor.dialogs.find_spec", lambda _name: None)
        dialog.trackers.setCurrentIndex(index)
        assert dialog.height() >= dialog.heightForWidth(dialog.width())  # no line of the text is cut off
        assert f"[{package}]" in dialog.about.text()
        assert not dialog.export.isEnabled()
    dialog.trackers.setCurrentIndex(0)
    dialog.folder.setText(" ")
    assert not dialog.export.isEnabled()
    monkeypatch.setattr(
        "planner.gui.monitor.dialogs.QFileDialog.getExistingDirectory", lambda *_: str(tmp_path / "runs")
    )
    dialog.browse.click()
    with qtbot.waitSignal(workspace.noticed, check_params_cb=lambda text, _: text.startswith("Exported")) as told:
        dialog.export.click()
    assert told.args == [
        f"Exported 28,001 values to {tmp_path / 'runs' / 'training'}.",
        f"Show: tensorboard --logdir {tmp_path / 'runs'}",
    ]
    with qtbot.waitSignal(workspace.failed) as failed:
        tab.controller.track_in(tmp_path / "runs", "tensorboard", tab.feed.replay.loaded.recording)
    assert "already exists" in failed.args[0].message


def test_a_recording_in_progress_is_written_to_a_tracker_too(qtbot, make_tab, driver, workspace, recording, tmp_path):
    driver.say(card(0, A, utilization=33))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    tab.controller.choose_tracker()
    dialog = tab.controller.dialog
    assert dialog.windowTitle() == f"Track {recording.name} while it is recorded"
    dialog.folder.setText(str(tmp_path / "runs"))
    with qtbot.waitSignal(workspace.noticed, timeout=60_000, check_params_cb=lambda text, _: "also" in text) as told:
        dialog.export.click()
    assert told.args[0] == f"{recording.name} is also written to {tmp_path / 'runs'} until it ends."
    assert f"recording {recording.name} and a tracker's run for" in tab.controller.recording_status
    begun = tab.feed.now
    tab.feed.add_mark(begun, "warm")
    workspace.apply("batch size", workload=workspace.plan.workload.evolve(batch=2))
    wait(qtbot, lambda: tab.feed.now > begun + 0.5)
    with qtbot.waitSignal(workspace.noticed, timeout=60_000, check_params_cb=lambda text, _: "values" in text) as told:
        tab.toolbar.record.click()
    assert not tab.feed.is_tracked
    (events,) = (tmp_path / "runs" / recording.stem).iterdir()
    written = events.read_bytes()
    assert all(part in written for part in (b"gpu/0/utilization", b"warm", b'"batch": 2'))
    assert told.args[1] == f"Show: tensorboard --logdir {tmp_path / 'runs'}"


def test_a_tracker_that_fails_leaves_the_recording(qtbot, make_tab, driver, workspace, recording, tmp_path):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    (tmp_path / "runs").write_text("no folder")
    with qtbot.waitSignal(workspace.failed, timeout=60_000) as told:
        tab.controller.track_live(tmp_path / "runs", "tensorboard", recording)
    assert "is not a folder" in told.args[0].message
    with qtbot.waitSignal(workspace.noticed, timeout=60_000, check_params_cb=lambda text, _: "also" in text):
        tab.controller.track_live(tmp_path / "kept", "tensorboard", recording)
    tab.feed._tracking._failure = "the disk is full"
    with qtbot.waitSignal(workspace.failed, timeout=60_000) as told:
        wait(qtbot, lambda: not tab.feed.is_tracked)
    assert told.args[0].message.endswith("the disk is full")
    assert told.args[0].hint == "The recording goes on without it."
    assert tab.feed.recording_path == recording
    tab.feed.stop()


def test_a_recording_has_a_report(qtbot, make_tab, driver, workspace, tmp_path, monkeypatch):
    tab = make_tab(without_driver=True)
    with qtbot.waitSignal(workspace.noticed) as told:
        tab.controller.choose_report()
    assert told.args[0] == "Open a recording first."
    tab.controller.show_demo()
    wait(qtbot, lambda: not tab.feed.is_live)
    monkeypatch.setattr("planner.gui.monitor.controller.choose_report_file", lambda *_: tmp_path / "run.md")
    with qtbot.waitSignal(workspace.noticed, timeout=60_000) as told:
        tab.controller.choose_report()
    assert told.args[0] == f"Wrote the report to {tmp_path / 'run.md'}."
    assert "## Diagnosis" in (tmp_path / "run.md").read_text(encoding="utf-8")
