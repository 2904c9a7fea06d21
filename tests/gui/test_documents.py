"""Opening and saving of plans and models, and the question about unsaved changes."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from planner.gui.autosave import Autosave, SavedSession
from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.trace.request import TraceRequest
from planner.workload.workload import Inference

TINY_LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a small model, in a folder with the model's name."""
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    file = folder / "config.json"
    file.write_text(json.dumps(TINY_LLAMA))
    return file


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    file = tmp_path / "four.plan.json"
    file.write_text(SAMPLE_PLAN.evolve(count=4).model_dump_json())
    return file


def answer(button: QMessageBox.StandardButton) -> list[str]:
    """Press `button` in the next question; the returned list receives what was asked."""
    asked: list[str] = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        asked.append(box.text())
        box.button(button).click()

    QTimer.singleShot(0, press)
    return asked


def choose(monkeypatch, method: str, path: Path | None) -> None:
    """Let the platform's file dialog, which no test can drive, name `path`, or be cancelled."""
    monkeypatch.setattr(QFileDialog, method, lambda *_: (str(path) if path else "", ""))


def test_a_plan_is_opened(window: MainWindow, plan_file, qtbot: QtBot):
    window.documents.open(plan_file)
    qtbot.waitUntil(lambda: window.workspace.plan.count == 4)
    assert window.workspace.path == plan_file
    assert window.workspace.settings.current.recent == (str(plan_file),)


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_configuration_becomes_the_plans_model(window: MainWindow, config, qtbot: QtBot, as_folder):
    window.documents.open(config.parent if as_folder else config)
    qtbot.waitUntil(lambda: window.workspace.plan.model.architecture is not None)
    assert window.workspace.plan.model.id == "tiny-llama"
    assert window.workspace.undo_stack.undoText() == "model"
    assert window.workspace.path is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff garbage",
        b"[]",
        b'{"model_type": "martian"}',
        b'{"schema_version": 99}',
        b'{"schema_version": 1}',
    ],
)
def test_an_unreadable_file_is_reported_and_the_plan_stays(window: MainWindow, tmp_path, qtbot: QtBot, content):
    file = tmp_path / "x.json"
    file.write_bytes(content)
    window.workspace.apply("number of cards", count=3)
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    assert "x.json" in window.banner.text or "martian" in window.banner.text
    assert window.workspace.plan.count == 3


def test_a_missing_file_is_reported(window: MainWindow, tmp_path, qtbot: QtBot):
    window.documents.open(tmp_path / "gone.json")
    qtbot.waitUntil(window.banner.isVisible)
    assert "gone.json" in window.banner.text


def test_a_plan_for_an_unknown_card_is_reported(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "x.json"
    file.write_text(SAMPLE_PLAN.evolve(gpu="gtx-0").model_dump_json())
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    assert window.workspace.plan == SAMPLE_PLAN
    assert "The window's Catalog tab, or `gpu-planner gpus` in a shell, " in window.banner._hint.text()


def test_files_are_chosen_in_the_platforms_dialog(window: MainWindow, plan_file, config, qtbot, monkeypatch):
    choose(monkeypatch, "getOpenFileName", plan_file)
    window.commands["file.open"].trigger()
    qtbot.waitUntil(lambda: window.workspace.plan.count == 4)
    choose(monkeypatch, "getOpenFileName", config)
    window.commands["file.open-model"].trigger()
    qtbot.waitUntil(lambda: window.workspace.plan.model.id == "tiny-llama")


def test_a_models_folder_is_chosen_in_a_dialog_of_its_own(window: MainWindow, config, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(config.parent))
    window.commands["file.open-folder"].trigger()
    qtbot.waitUntil(lambda: window.workspace.plan.model.id == config.parent.name)


def test_a_cancelled_dialog_changes_nothing(window: MainWindow, monkeypatch):
    choose(monkeypatch, "getOpenFileName", None)
    choose(monkeypatch, "getSaveFileName", None)
    for action in ("file.open", "file.open-model", "file.save", "file.save-as"):
        window.commands[action].trigger()
    assert window.workspace.plan == SAMPLE_PLAN
    assert window.workspace.path is None


def test_saving_asks_for_a_name_once(window: MainWindow, tmp_path, monkeypatch):
    choose(monkeypatch, "getSaveFileName", tmp_path / "mine.json")
    window.commands["file.save"].trigger()
    assert window.workspace.path == tmp_path / "mine.json"
    choose(monkeypatch, "getSaveFileName", None)
    window.workspace.apply("number of cards", count=2)
    window.commands["file.save"].trigger()
    assert load_plan(tmp_path / "mine.json").count == 2
    assert not window.commands["file.save"].isEnabled()


def test_an_unwritable_folder_is_reported(window: MainWindow, tmp_path, monkeypatch):
    choose(monkeypatch, "getSaveFileName", tmp_path / "gone" / "mine.json")
    window.commands["file.save-as"].trigger()
    assert "mine.json" in window.banner.text
    assert window.workspace.path is None


def test_work_without_a_file_is_asked_about_before_another_plan_replaces_it(window: MainWindow, tmp_path, monkeypatch):
    window.workspace.apply("number of cards", count=2)
    asked = answer(QMessageBox.StandardButton.Cancel)
    window.commands["file.new"].trigger()
    assert asked == ["Save this plan?"]
    assert window.workspace.plan.count == 2
    choose(monkeypatch, "getSaveFileName", None)
    answer(QMessageBox.StandardButton.Save)
    window.commands["file.new"].trigger()
    assert window.workspace.plan.count == 2, "a save that was cancelled keeps the plan"
    answer(QMessageBox.StandardButton.Discard)
    window.commands["file.new"].trigger()
    assert window.workspace.plan == SAMPLE_PLAN


def test_work_without_a_file_needs_no_question_on_quitting(window: MainWindow):
    window.workspace.apply("number of cards", count=2)
    assert window.close()
    assert window.workspace.plan.count == 2


@pytest.mark.parametrize("is_gone", [False, True])
def test_changes_that_are_discarded_on_quitting_do_not_come_back(edited: MainWindow, tmp_path, is_gone):
    autosave = Autosave(edited.workspace, tmp_path / "autosave")
    if is_gone:
        (tmp_path / "mine.json").unlink()
    answer(QMessageBox.StandardButton.Discard)
    assert edited.close()
    autosave.close()
    (file,) = (tmp_path / "autosave").glob("*.json")
    session = SavedSession.model_validate_json(file.read_bytes())
    assert (session.plan, session.modified) == (SAMPLE_PLAN, False)
    assert session.path == (None if is_gone else str(tmp_path / "mine.json"))


@pytest.fixture
def edited(window: MainWindow, tmp_path) -> MainWindow:
    """A window with a plan that differs from its file."""
    window.workspace.save_plan(tmp_path / "mine.json")
    window.workspace.apply("number of cards", count=2)
    return window


def test_cancelling_keeps_the_window_and_the_work(edited: MainWindow):
    asked = answer(QMessageBox.StandardButton.Cancel)
    assert not edited.close()
    assert asked == ["Save the changes to mine.json?"]
    assert edited.isVisible()
    assert edited.workspace.plan.count == 2


def test_closing_saves_when_asked_to(edited: MainWindow, tmp_path):
    answer(QMessageBox.StandardButton.Save)
    assert edited.close()
    assert load_plan(tmp_path / "mine.json").count == 2


def test_discarding_leaves_the_file_as_it_is(edited: MainWindow, tmp_path):
    answer(QMessageBox.StandardButton.Discard)
    edited.commands["file.new"].trigger()
    assert edited.workspace.plan == SAMPLE_PLAN
    assert load_plan(tmp_path / "mine.json").count == 1


def test_opening_another_plan_asks_first(edited: MainWindow, plan_file, qtbot: QtBot):
    answers = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        if box is not None:
            answers.append(box.text())
            box.button(QMessageBox.StandardButton.Cancel).click()

    edited.documents.open(plan_file)
    timer = QTimer(interval=10)
    timer.timeout.connect(press)
    timer.start()
    qtbot.waitUntil(lambda: bool(answers))
    timer.stop()
    assert edited.workspace.plan.count == 2


def test_a_plan_that_cannot_be_shown_is_refused_by_its_name_before_any_question(edited: MainWindow, tmp_path, qtbot):
    file = tmp_path / "gone.plan.json"
    file.write_text('{"schema_version": 2, "model": {"id": "nobody/nothing"}, "workload": {"task": "inference"}}')
    edited.documents.open(file)
    qtbot.waitUntil(edited.banner.isVisible)
    assert f"{file}: model: no model has the id" in edited.banner.text
    assert edited.workspace.plan.count == 2


def test_a_network_without_a_formula_goes_to_the_trace(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "wav2vec2"}')
    requests: list[object] = []
    window.workspace.navigator.trace_requested.connect(requests.append)
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    assert "wav2vec2" in window.banner.text
    assert window.banner.trace.isVisible()
    window.banner.trace.click()
    qtbot.waitUntil(lambda: bool(requests))
    (request,) = requests
    assert isinstance(request, TraceRequest)
    assert (request.target.kind, request.target.place) == ("config", tmp_path.name)
    window.workspace.noticed.emit("read", "")
    assert not window.banner.trace.isVisible()


def test_a_plan_beside_takes_what_it_needs_of_the_cards(window, tmp_path, monkeypatch):
    other = tmp_path / "other.json"
    workload = Inference(profile="vllm", context_length=2048)
    save_plan(other, Plan(model=ModelChoice(id="Qwen/Qwen3-0.6B"), gpu="h100-sxm5-80gb", workload=workload))
    window.workspace.replace(
        Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="h100-sxm5-80gb", workload=workload), None
    )
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    window.documents.choose_neighbour()
    asked = window.workspace.plan.workload
    assert asked.other_processes_bytes > 2**30
    assert asked.engine.memory_utilization < 0.92
    (box,) = [box for box in window.findChildren(QMessageBox) if box.windowTitle() == "GPUs shared with another plan"]
    assert "Qwen/Qwen3-0.6B in vLLM" in box.text()
    box.close()
