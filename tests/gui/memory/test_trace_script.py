"""Tracing a script from the window: its command line in the dialog, its result, and its errors."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit
from traced_runs import NET, recording

from planner.gui.memory.tab import MemoryTab
from planner.gui.memory.trace.dialog import TraceDialog
from planner.gui.memory.trace.script_form import ScriptForm
from planner.gui.settings import SettingsStore
from planner.paths import traces_dir
from planner.plan.files import load_plan, save_plan
from planner.trace.analysis.memory import facts_of
from planner.trace.files import store_recording
from planner.trace.request import AssumedValue, Target, TraceRequest
from planner.trace.user_code import content_digest

LOOP = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader

net = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=float(sys.argv[1]))
for batch in DataLoader(torch.zeros(64, 8), batch_size=4, num_workers=2):
    net(batch.cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def train(tmp_path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(LOOP, encoding="utf-8")
    return file


@pytest.fixture
def dialog(trace_dialog) -> TraceDialog:
    trace_dialog.target.choose_script()
    return trace_dialog


@pytest.fixture
def form(dialog) -> ScriptForm:
    return dialog.target.script


def enter(qtbot, field, text) -> None:
    """Type or paste `text` into the field, and leave it."""
    edit = field.findChild(QLineEdit)
    edit.setFocus()
    edit.selectAll()
    edit.insert(text)
    edit.editingFinished.emit()


def asked_by(qtbot, dialog) -> TraceRequest:
    with qtbot.waitSignal(dialog.trace_requested) as asked:
        qtbot.keyClick(dialog, Qt.Key.Key_Return)
    return asked.args[0]


def script_of(file: Path, *arguments: str, launcher: tuple[str, ...] = ()) -> Target:
    return Target(
        kind="script", place=str(file), command_arguments=arguments, launcher=launcher, folder=str(file.parent)
    )


def test_a_pasted_command_line_fills_the_form(dialog, form, train, qtbot):
    enter(qtbot, form.folder, str(train.parent))
    enter(qtbot, form.script, "torchrun --nproc_per_node 2 \\\n  train.py --name 'two words'\n")
    assert (form.script.text, form.arguments.text) == ("train.py", "--name 'two words'")
    assert form.launcher.text == "torchrun --nproc_per_node 2"
    launcher = ("torchrun", "--nproc_per_node", "2")
    asked = asked_by(qtbot, dialog)
    assert asked.target == script_of(train, "--name", "two words", launcher=launcher)
    assert (asked.task, asked.steps, asked.compute_capability) == ("training", 2, "8.9")


def test_a_command_line_is_traced_with_return_where_it_was_pasted(dialog, form, train, qtbot):
    edit = form.script.findChild(QLineEdit)
    edit.setFocus()
    qtbot.keyClicks(edit, f"python {train} --lr 0.1")
    assert asked_by(qtbot, dialog).target == script_of(train, "--lr", "0.1", launcher=("python",))


def test_a_package_is_traced_as_python_runs_it(dialog, form, qtbot, tmp_path):
    enter(qtbot, form.script, "python -m package.train --x")
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert "there is no module package.train" in dialog.problem.lower()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("")
    enter(qtbot, form.folder, str(tmp_path))
    assert form.script.text == "-m package.train"
    assert asked_by(qtbot, dialog).target == Target(
        kind="program", place="package.train", command_arguments=("--x",), launcher=("python",), folder=str(tmp_path)
    )


def test_steps_device_and_known_values_are_asked_too(dialog, form, train, qtbot):
    enter(qtbot, form.script, str(train))
    dialog.more.steps.set_value(5)
    enter(qtbot, dialog.more.assume, "train.py:9=3")
    dialog.run.field("device").choose(("cpu", None))
    asked = asked_by(qtbot, dialog)
    assert (asked.steps, asked.device, asked.assume) == (5, "cpu", (AssumedValue(name="train.py:9", value=3),))


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("", "Choose a Python file, or paste the command"),
        ("nothing.py", "There is no file"),
        ("torchrun --nproc_per_node=2", "names no script"),
        ("python broken.py", "is not Python: line 1"),
        ("python train.py > log.txt", "'>' is for a shell"),
        ("python 'train.py", "a quotation mark is not closed"),
        ("-m", "names no script"),
    ],
)
def test_what_is_wrong_with_a_script_is_said_and_the_keyboard_led_there(dialog, form, train, qtbot, script, problem):
    (train.parent / "broken.py").write_text("class Net(")
    enter(qtbot, form.folder, str(train.parent))
    enter(qtbot, form.script, script)
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert problem.lower() in dialog.problem.lower()
    assert dialog.isVisible()
    assert form.script.findChild(QLineEdit).hasFocus()


def test_arguments_that_cannot_be_divided_are_said(dialog, form, train, qtbot):
    enter(qtbot, form.script, str(train))
    enter(qtbot, form.arguments, "--name 'two words")
    assert "not closed" in form.arguments.problem
    form.script.findChild(QLineEdit).setFocus()
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert "not closed" in dialog.problem
    assert form.arguments.findChild(QLineEdit).hasFocus()


def test_a_working_folder_that_is_not_there_is_said(dialog, form, train, qtbot):
    enter(qtbot, form.script, str(train))
    enter(qtbot, form.folder, str(train.parent / "none"))
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert "there is no folder" in dialog.problem.lower()
    assert form.folder.findChild(QLineEdit).hasFocus()


def test_what_a_script_itself_decides_is_not_asked(dialog, form):
    assert dialog.windowTitle() == "Trace a script"
    for shown in (form.script, form.arguments, form.launcher, form.folder):
        assert shown.isVisible()
    for key in ("task", "batch", "optimizer", "precision", "checkpointing", "ranks"):
        assert dialog.run.field(key).isHidden(), key
    for hidden in (dialog.target.file, dialog.inputs, dialog.source, dialog.more.loss, dialog.more.rank):
        assert hidden.isHidden()
    dialog.target.type.choose("module")
    assert dialog.windowTitle() == "Trace a module"
    assert not form.isVisible()
    assert dialog.target.file.isVisible()
    assert dialog.run.field("optimizer").isVisible()


def test_a_dropped_file_is_a_script_or_a_module_by_what_it_holds(dialog, form, train, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    dialog.open_file(tmp_path / "net.py")
    assert not dialog.target.is_script
    assert dialog.target.candidate is not None
    dialog.target.type.choose("script")
    assert form.script.text == str(tmp_path / "net.py")
    assert "choose the type “a module”" in form.script.note
    dialog.open_file(train)
    assert dialog.target.is_script
    assert form.script.text == str(train)
    assert form.script.findChild(QLineEdit).hasFocus()
    assert form.script.note == ""
    dialog.target.type.choose("module")
    assert dialog.target.file.text == str(train)


def test_scripts_are_remembered_with_their_arguments(dialog, form, train, qtbot, holder, workspace, theme, tmp_path):
    enter(qtbot, form.script, f"torchrun {train} --lr 0.1")
    asked = asked_by(qtbot, dialog)
    again = TraceDialog(workspace, theme, holder)
    again.open()
    again.target.choose_script()
    assert again.request().target == asked.target
    assert [text for text, _ in again.target.script._recent_entries()] == [f"torchrun train.py --lr 0.1 – {tmp_path}"]
    again.open_file(train)
    assert again.request().target == asked.target
    workspace.settings.flush()
    assert SettingsStore(workspace.settings._path).current.traced_scripts == (asked.target,)


def test_the_command_for_a_shell_is_copied(dialog, form, train, qtbot):
    enter(qtbot, form.script, f"torchrun {train} --lr 0.1")
    dialog._copy.click()
    command = f"cd {train.parent} && gpu-planner trace --gpu rtx-4090 -- torchrun train.py --lr 0.1"
    assert QGuiApplication.clipboard().text() == command
    enter(qtbot, form.script, "")
    dialog._copy.click()
    assert "Choose a Python file" in dialog.problem


def traced_script(train: Path, **changes: object) -> TraceRequest:
    target = script_of(train, "--lr", "0.1", launcher=("torchrun", "--nproc_per_node=2"))
    return TraceRequest(target=target, task="training", **changes)


def test_a_plan_of_a_script_has_a_card_for_each_rank_and_is_opened_again(tab, qtbot, train, tmp_path):
    traced = recording(traced_script(train)).evolve(notes=("2 workers are not started.",))
    store_recording(traces_dir(), traced)
    with qtbot.waitSignal(tab.trace.updated):
        tab.workspace.take_trace(facts_of(traced), "trace of train.py")
    assert tab.workspace.plan.count == 2
    assert tab.controls.what_if.command.text() == "torchrun --nproc_per_node=2 train.py --lr 0.1"
    assert tab.controls.what_if.form.field("optimizer").isHidden()
    assert tab.trace.tables.run_notes.text == "2 workers are not started."
    assert "2 workers are not started." in tab.copy_result()
    tab.controls.what_if.copy.click()
    assert QGuiApplication.clipboard().text().endswith("-- torchrun --nproc_per_node=2 train.py --lr 0.1")
    save_plan(tmp_path / "script.json", tab.workspace.plan)
    assert load_plan(tmp_path / "script.json") == tab.workspace.plan


def test_a_module_has_no_command_and_skips_nothing(tab, qtbot, train):
    scripted = recording(traced_script(train)).evolve(notes=("Nothing is written.",))
    store_recording(traces_dir(), scripted)
    with qtbot.waitSignal(tab.trace.updated):
        tab.workspace.take_trace(facts_of(scripted), "trace")
    tab.trace.tables._run_notes_button.click()
    module = recording(TraceRequest(target=Target(kind="import", place="nets", name="Net"), task="training"))
    store_recording(traces_dir(), module)
    with qtbot.waitSignal(tab.trace.updated):
        tab.workspace.take_trace(facts_of(module), "trace")
    assert not tab.controls.what_if.copy.isVisible()
    assert tab.trace.tables._run_notes_button.isHidden()
    assert tab.trace.tables._pages.currentWidget() is tab.trace.tables.modules


def trace_from_the_dialog(tab: MemoryTab, qtbot, command: str) -> None:
    tab.workspace.navigator.trace_script()
    dialog = tab.trace_controller.dialog
    qtbot.waitUntil(dialog.isVisible)
    enter(qtbot, dialog.target.script.script, command)
    tab.workspace.settings.trust(content_digest(dialog.request()))
    qtbot.keyClick(dialog, Qt.Key.Key_Return)


@pytest.mark.oracle
def test_a_script_is_traced_edited_and_its_error_told(tab, qtbot, train):
    trace_from_the_dialog(tab, qtbot, f"python {train} 0.1")
    qtbot.waitUntil(lambda: tab.workspace.evaluation.traced is not None and tab.trace.view is not None)
    notes = tab.trace.tables.run_notes.text
    assert "2 workers of a data loader are not started" in notes
    assert "ended after 2 optimizer steps" in notes
    tab.trace_controller.edit()
    dialog = tab.trace_controller.dialog
    qtbot.waitUntil(dialog.isVisible)
    assert dialog.request() == tab.workspace.evaluation.traced.request
    qtbot.waitUntil(dialog.target.script.script.findChild(QLineEdit).hasFocus)
    enter(qtbot, dialog.target.script.arguments, "fast")
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: tab.tracer.failure is not None)
    shown = [label.text() for label in tab.trace_status.failure.findChildren(QLabel)]
    assert any(text.startswith("train.py could not be traced: ValueError: could not convert") for text in shown)
    assert 'train.py", line 8' in tab.trace_status.failure.details.toPlainText()
