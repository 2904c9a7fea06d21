"""The dialog that compares the estimate with the log of a run."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from planner.plan.logs.files import corrections_file, load_corrections
from planner.plan.plan import ModelChoice
from planner.units import MIB
from planner.workload.workload import Inference, Training

SUMMARY = """\
|                  PyTorch CUDA memory summary, device ID 0                 |
| Allocated memory      |   1062 MiB |  23501 MiB |   89299 MB |   88237 MB |
| GPU reserved memory   |  23900 MiB |  23900 MiB |   16924 MB |    4504 MB |
"""


@pytest.fixture
def log(tmp_path) -> Path:
    file = tmp_path / "run.log"
    file.write_text(f"other lines\n{SUMMARY}", encoding="utf-8")
    return file


@pytest.fixture
def dialog(tab, workspace):
    workspace.apply("run", model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=Training())
    workspace.navigator.log_requested.emit(None)
    return tab.log_dialog


def read(qtbot, dialog, text=SUMMARY):
    with qtbot.waitSignal(dialog.source.read):
        dialog.source.field.setPlainText(text)


def test_the_menu_below_the_questions_opens_it_once(tab):
    (asked,) = [action for action in tab.controls.compare.menu().actions() if "Lo&g" in action.text()]
    asked.trigger()
    first = tab.log_dialog
    assert first.isVisible()
    assert first.source.field.hasFocus() or first.focusWidget() is first.source.field
    asked.trigger()
    assert tab.log_dialog is first


def test_pasted_text_is_compared_row_by_row(dialog, qtbot):
    assert dialog.view is None
    assert not dialog.table.isVisible()
    read(qtbot, dialog)
    assert [row.title for row in dialog.view.rows] == ["Allocated by PyTorch", "Reserved by PyTorch"]
    assert dialog.table.isVisible()
    assert "measured" in dialog.sentence.text()
    dialog.table.setFocus()
    dialog.table.choose("Reserved by PyTorch")
    assert "beyond its tensors" in dialog.reason.text()


def test_text_without_anything_is_refused_beside_the_field(dialog, qtbot):
    with qtbot.waitSignal(dialog.source.refused):
        dialog.source.field.setPlainText("Hello.")
    assert dialog.problem.isVisible()
    assert "no memory amounts" in dialog.problem.text().lower()
    read(qtbot, dialog)
    assert not dialog.problem.isVisible()


def test_an_amount_that_no_estimate_has_is_refused_too(dialog, qtbot):
    read(qtbot, dialog, "| PyTorch CUDA memory summary, device ID 0 |\n| Active memory         |   1 MiB |   1 MiB |")
    assert dialog.problem.isVisible()
    assert dialog.view is None


def test_a_file_is_opened_or_dropped_and_its_telling_lines_shown(dialog, log, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (str(log), ""))
    with qtbot.waitSignal(dialog.source.read):
        qtbot.mouseClick(dialog.source.open_button, Qt.MouseButton.LeftButton)
    shown = dialog.source.field.toPlainText()
    assert shown.startswith("run.log:")
    assert "other lines" not in shown
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(log))])
    assert dialog.source.field.canInsertFromMimeData(dropped)
    with qtbot.waitSignal(dialog.source.read):
        dialog.source.field.insertFromMimeData(dropped)
    text = QMimeData()
    text.setText("more")
    dialog.source.field.insertFromMimeData(text)
    assert "more" in dialog.source.field.toPlainText()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: ("", ""))
    qtbot.mouseClick(dialog.source.open_button, Qt.MouseButton.LeftButton)


def test_a_file_can_come_with_the_request(tab, workspace, log, qtbot):
    workspace.navigator.log_requested.emit(None)
    with qtbot.waitSignal(tab.log_dialog.source.read):
        workspace.navigator.log_requested.emit(log)
    assert tab.log_dialog.view is not None


def test_a_pickle_is_refused_with_what_to_do(tab, workspace, tmp_path, qtbot):
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(b"\x80\x04\x95")
    workspace.navigator.log_requested.emit(None)
    dialog = tab.log_dialog
    with qtbot.waitSignal(dialog.source.refused):
        workspace.navigator.log_requested.emit(file)
    assert "json.dump" in dialog.problem.text()


def test_a_correction_is_off_until_it_is_switched_on_and_always_in_view(dialog, tab, workspace, qtbot):
    read(qtbot, dialog)
    assert dialog.use.isEnabled()
    assert not dialog.use.isChecked()
    assert not tab.correction.isVisible()
    dialog.use.setFocus()
    qtbot.keyClick(dialog.use, Qt.Key.Key_Space)
    assert workspace.evaluation.memory.reserved_bytes == 23900 * MIB
    assert tab.correction.isVisible()
    assert tab.correction.words.text().startswith("Corrected by your log of")
    assert load_corrections(corrections_file()) == workspace.plan.corrections
    assert dialog.use.isChecked()
    workspace.undo_stack.undo()
    assert not dialog.use.isChecked()
    assert not tab.correction.isVisible()
    workspace.undo_stack.redo()
    tab.correction.off.click()
    assert workspace.plan.corrections == ()
    qtbot.keyClick(dialog.use, Qt.Key.Key_Space)
    qtbot.keyClick(dialog.use, Qt.Key.Key_Space)
    assert workspace.plan.corrections == ()


def test_a_kept_correction_is_offered_without_its_log(dialog, tab, workspace, qtbot):
    read(qtbot, dialog)
    dialog.use.click()
    tab.correction.off.click()
    dialog._log_and_reading = None
    dialog.compare()
    assert dialog.use.isEnabled()
    assert not dialog.use.isChecked()
    assert "Stored from your log of" in dialog.about.text()
    dialog.use.click()
    assert workspace.plan.corrections


def test_without_anything_to_correct_it_says_what_that_takes(dialog, workspace, qtbot):
    assert not dialog.use.isEnabled()
    assert "can correct" in dialog.about.text()
    read(qtbot, dialog, "Model loading took 14.9889 GiB and 3.6 seconds")
    assert not dialog.use.isEnabled()
    assert "This log cannot correct the estimate" in dialog.about.text()


def test_the_commands_of_the_plan_are_shown_with_what_they_should_show_and_copied(dialog, workspace, qtbot):
    commands = dialog.commands
    qtbot.waitUntil(lambda: "train_step()" in commands.command.toPlainText())
    assert dialog.empty.isVisible()
    assert commands.expected.text().startswith("Expected: Allocated by PyTorch ")
    commands.choice.setCurrentIndex(1)
    assert commands.command.toPlainText().startswith("nvidia-smi ")
    commands.copy.click()
    assert QGuiApplication.clipboard().text() == commands.command.toPlainText()
    workspace.apply("serve", workload=Inference(profile="vllm"), gpu="l40s")
    qtbot.waitUntil(lambda: commands.choice.count() == 3)
    assert commands.choice.currentText() == "Speed: while the server runs"
    assert commands.command.toPlainText().startswith("vllm bench serve ")


def test_a_plan_that_no_command_can_measure_says_why(dialog, workspace, qtbot):
    workspace.apply("serve", workload=Inference(profile="vllm"), gpu=None)
    qtbot.waitUntil(dialog.commands.problem.isVisible)
    assert "has no GPU" in dialog.commands.problem.text()
    assert not dialog.commands.copy.isEnabled()
    workspace.apply("serve", gpu="l40s")
    qtbot.waitUntil(dialog.commands.copy.isEnabled)
    assert not dialog.commands.problem.isVisible()


def test_what_was_copied_is_pasted_over_what_was_there(dialog, qtbot):
    dialog.source.field.setPlainText("other text")
    QGuiApplication.clipboard().setText(SUMMARY)
    with qtbot.waitSignal(dialog.source.read):
        qtbot.mouseClick(dialog.source.paste_button, Qt.MouseButton.LeftButton)
    assert dialog.source.field.toPlainText() == SUMMARY
    assert not dialog.empty.isVisible()


def test_a_measured_speed_is_kept_in_the_plan_and_taken_out_again(dialog, workspace, qtbot):
    assert not dialog.keep_speed.isVisible()
    read(qtbot, dialog, '{"seconds_per_step": 0.5}')
    (row,) = dialog.view.rows
    assert (row.title, row.in_range) == ("Optimizer step", "no")
    dialog.keep_speed.setFocus()
    qtbot.keyClick(dialog.keep_speed, Qt.Key.Key_Space)
    assert workspace.plan.timing.measured.value == 0.5
    assert dialog.keep_speed.isChecked()
    assert dialog.view.rows[0].predicted_value == row.predicted_value
    dialog.keep_speed.click()
    assert workspace.plan.timing.measured is None
    assert not dialog.keep_speed.isChecked()


def test_the_comparison_follows_the_plan_and_is_copied(dialog, workspace, qtbot):
    dialog.copy()
    read(qtbot, dialog)
    before = dialog.view.rows[0].predicted_value
    workspace.answer("batch", {"workload.micro_batch": 2})
    assert dialog.view.rows[0].predicted_value > before
    dialog.copy()
    assert "Allocated by PyTorch" in QGuiApplication.clipboard().text()
