"""The dialog to set up a trace."""

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QDialog, QLabel, QLineEdit, QPushButton, QToolButton, QWidget
from traced_runs import NET, request

from planner.gui.memory.trace.dialog import TraceDialog
from planner.gui.memory.trace.request_form import device_options
from planner.gui.widgets.section import Section
from planner.trace.request import Argument, Target, TensorInput, TraceRequest


@pytest.fixture
def net(tmp_path) -> Path:
    file = tmp_path / "net.py"
    file.write_text(NET, encoding="utf-8")
    return file


@pytest.fixture
def dialog(trace_dialog) -> TraceDialog:
    return trace_dialog


def edit_of(field) -> QLineEdit:
    return field.findChild(QLineEdit)


def type_into(qtbot, edit, text):
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def choose(dialog, name):
    dialog.target.name.set_value(name)
    dialog.target.name.edited.emit(name)


def wanted_by(qtbot, dialog) -> TraceRequest:
    with qtbot.waitSignal(dialog.trace_requested) as asked:
        qtbot.keyClick(dialog, Qt.Key.Key_Return)
    return asked.args[0]


def test_a_typed_file_offers_its_names(dialog, net, qtbot):
    type_into(qtbot, edit_of(dialog.target.file), str(net))
    qtbot.waitUntil(lambda: dialog.target.candidate is not None)
    assert dialog.target.candidate.name == "example"
    assert not dialog.inputs.isVisible()
    choose(dialog, "Net")
    assert edit_of(dialog.target.arguments).placeholderText() == "e.g. width=8"
    assert [row.name.text() for row in dialog.inputs._rows] == ["x"]
    assert dialog.inputs.isVisible()


def test_a_class_with_its_inputs_is_asked_for_with_the_keyboard(dialog, net, qtbot, workspace):
    dialog.open_file(net)
    choose(dialog, "Net")
    type_into(qtbot, dialog.inputs._rows[0].shape.focusProxy(), "16x8")
    type_into(qtbot, edit_of(dialog.target.arguments), "width=8")
    asked = wanted_by(qtbot, dialog)
    assert asked.target == Target(kind="file", place=str(net), name="Net")
    assert asked.arguments == (Argument(name="width", value=8),)
    assert asked.inputs[0].name == "x"
    assert asked.inputs[0].value == TensorInput(shape=(16, 8))
    assert asked.task == "training"
    assert asked.compute_capability == "8.9"
    assert workspace.settings.current.traced_files == (str(net),)
    assert dialog.isVisible()  # until its code may run
    dialog.finish()
    assert not dialog.isVisible()


def test_a_function_brings_its_inputs_whose_batch_can_be_another(dialog, net, qtbot):
    dialog.open_file(net)
    type_into(qtbot, edit_of(dialog.run.field("batch")), "16")
    asked = wanted_by(qtbot, dialog)
    assert (asked.inputs, asked.batch) == ((), 16)


def test_the_shapes_of_inputs_say_the_batch(dialog, net, qtbot):
    dialog.open_file(net)
    type_into(qtbot, edit_of(dialog.run.field("batch")), "16")
    choose(dialog, "Net")
    assert not dialog.run.field("batch").isVisible()
    type_into(qtbot, dialog.inputs._rows[0].shape.focusProxy(), "4x8")
    assert wanted_by(qtbot, dialog).batch is None


def test_what_is_missing_is_said_and_the_keyboard_led_there(dialog, net, qtbot):
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert "Python file" in dialog.problem
    dialog.open_file(net)
    choose(dialog, "Net")
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert "at least one input" in dialog.problem
    type_into(qtbot, dialog.inputs._rows[0].shape.focusProxy(), "8x")
    assert "is not valid" in dialog.inputs.problem
    assert dialog.problem == ""
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert dialog.problem == "", "the field itself says it"


def test_wrong_answers_stay_with_their_message(dialog, net, qtbot):
    dialog.open_file(net)
    type_into(qtbot, edit_of(dialog.target.arguments), "8")
    assert "name" in dialog.target.arguments.problem
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.isVisible()
    type_into(qtbot, edit_of(dialog.more.step), "nonsense")
    assert "file.py:function" in dialog.more.step.problem


def test_an_invalid_python_file_is_reported_below_its_field(dialog, tmp_path):
    file = tmp_path / "net.py"
    file.write_text("class Net(", encoding="utf-8")
    dialog.open_file(file)
    assert "is not Python" in dialog.target.file.problem
    file.write_text("x = 3", encoding="utf-8")
    dialog.open_file(file)
    assert "no module" in dialog.target.file.problem
    dialog.open_file(tmp_path / "none.py")
    assert "cannot be read" in dialog.target.file.problem


def test_inputs_are_added_and_removed(dialog, net, qtbot):
    dialog.open_file(net)
    choose(dialog, "Net")
    add = next(made for made in dialog.inputs.findChildren(QPushButton) if "Add" in made.text())
    qtbot.mouseClick(add, Qt.MouseButton.LeftButton)
    assert len(dialog.inputs._rows) == 2
    for _ in range(2):
        remove = dialog.inputs._rows[-1].findChild(QToolButton)
        qtbot.mouseClick(remove, Qt.MouseButton.LeftButton)
    assert len(dialog.inputs._rows) == 1


def test_an_import_path_is_enough(dialog, qtbot):
    dialog.target.kind.set_value("import")
    dialog.target.kind.edited.emit("import")
    type_into(qtbot, edit_of(dialog.target.place), "torch.nn")
    assert "package.module:Name" in dialog.target.place.problem
    type_into(qtbot, edit_of(dialog.target.place), "torch.nn:Linear")
    type_into(qtbot, edit_of(dialog.target.arguments), "in_features=8, out_features=4")
    type_into(qtbot, dialog.inputs._rows[0].shape.focusProxy(), "2x8")
    asked = wanted_by(qtbot, dialog)
    assert asked.target == Target(kind="import", place="torch.nn", name="Linear")


def test_a_request_is_shown_and_asked_again_as_it_was(dialog, net, qtbot):
    known = request(str(net)).evolve(
        arguments=({"name": "width", "value": 8},),
        optimizer="SGD",
        optimizer_arguments=({"name": "momentum", "value": 0.5},),
        autocast="bf16",
        loss="mse_loss",
        freeze=("linear.*",),
        lora={"rank": 4},
        steps=3,
    )
    dialog.set_request(known)
    assert wanted_by(qtbot, dialog) == known


def test_a_model_of_the_plan_keeps_its_configuration(dialog, qtbot):
    known = TraceRequest(target=Target(kind="config", place="gpt2", config="{}"), batch=2, sequence_length=64)
    dialog.set_request(known)
    assert not dialog.inputs.isVisible()
    assert not dialog.target.file.isVisible()
    assert wanted_by(qtbot, dialog) == known


def test_without_torch_the_dialog_names_the_package_to_install(holder, workspace, theme):
    made = TraceDialog(workspace, theme, holder, "tracing needs PyTorch; install it with: pip install torch")
    made.open()
    assert any("pip install torch" in label.text() for label in made.findChildren(QLabel))
    go = next(button for button in made.findChildren(QPushButton) if button.text() == "Trac&e")
    assert not go.isEnabled()


def test_everything_the_keyboard_reaches_has_a_name(dialog, net):
    dialog.open_file(net)
    choose(dialog, "Net")
    reached = [made for made in dialog.findChildren(QWidget) if made.focusPolicy() & Qt.FocusPolicy.TabFocus]
    nameless = [made for made in reached if not (made.accessibleName() or getattr(made, "text", str)())]
    assert [type(made).__name__ for made in nameless if made.isVisible()] == []


def test_escape_closes_the_dialog(dialog, qtbot):
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.result() == QDialog.DialogCode.Rejected


def test_a_shape_that_is_typed_before_the_file_is_read_stays(dialog, net, qtbot):
    type_into(qtbot, dialog.inputs._rows[0].shape.focusProxy(), "16x8")
    dialog.open_file(net)
    choose(dialog, "Net")
    assert [(row.name.text(), row.shape.text) for row in dialog.inputs._rows] == [("x", "16x8")]


def test_a_shape_beyond_the_named_inputs_keeps_its_row(dialog):
    dialog.inputs._add.click()
    for row, text in zip(dialog.inputs._rows, ("2x3", "4"), strict=True):
        row.shape.set_value(text)
    dialog.inputs.set_names(["x"])
    assert [(row.name.text(), row.shape.text) for row in dialog.inputs._rows] == [("x", "2x3"), ("", "4")]


def test_the_plans_card_is_named_among_the_devices(dialog, workspace):
    names = [title for _, title in device_options(dialog.run.request, workspace.evaluation.gpu)]
    assert names[0] == f"compute capability 8.9, {workspace.evaluation.gpu.name}"


def test_each_key_leads_to_one_place(dialog, net):
    for section in dialog.findChildren(Section):
        section.set_open(True)
    dialog.open_file(net)
    choose(dialog, "Net")
    for kind in ("file", "import", "script"):
        if kind == "script":
            dialog.target.choose_script()
        else:
            dialog.target.kind.choose(kind)
        keys = [
            match[1].lower()
            for made in (*dialog.findChildren(QLabel), *dialog.findChildren(QAbstractButton))
            if made.isVisibleTo(dialog) and (match := re.search(r"&(\w)", made.text()))
        ]
        assert sorted(keys) == sorted(set(keys)), kind
