"""Opening the user's own weights, and models from a local stand-in for the Hugging Face Hub."""

import json
import threading
from pathlib import Path

import huggingface_hub
import pytest
from fake_hub import refuse, running_hub
from huggingface_hub import constants
from made_files import TINY, tiny_tensors, write_gguf, write_model
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QInputDialog, QProgressDialog, QPushButton
from pytestqt.qtbot import QtBot

from planner.gui.choices import hub_choice
from planner.gui.memory.controls import SubjectForm
from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN
from planner.models.readers import hub as repository

NAME = "someone/tiny"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one model, and no token."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    close = getattr(huggingface_hub, "close_session", lambda: None)
    close()
    with running_hub() as running:
        template = f"{running.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        running.files[f"{NAME}/config.json"] = json.dumps(TINY).encode()
        yield running
        close()


def drop(window: MainWindow, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPointF(1, 1), copy, data, left, none))


def wait_for_model(window: MainWindow, qtbot: QtBot, name: str) -> None:
    qtbot.waitUntil(lambda: window.workspace.plan.model.id == name)


@pytest.mark.parametrize("kind", ["gguf", "safetensors", "folder"])
def test_weights_are_dropped_into_the_window(window: MainWindow, tmp_path, qtbot: QtBot, kind):
    folder = write_model(tmp_path / "tiny-llama", tiny_tensors())
    gguf = write_gguf(tmp_path / "tiny-Q8_0.gguf")
    drop(window, {"gguf": gguf, "safetensors": folder / "model.safetensors", "folder": folder}[kind])
    wait_for_model(window, qtbot, "tiny-Q8_0" if kind == "gguf" else "tiny-llama")
    architecture = window.workspace.evaluation.architecture
    assert window.workspace.evaluation.workload.weights == ("Q8_0" if kind == "gguf" else "bf16")
    assert architecture.stored_bytes
    assert window.workspace.undo_stack.undoText() == "model"


def test_a_damaged_file_is_reported_and_the_plan_stays(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "x.gguf"
    file.write_bytes(b"GGUF\3\0\0\0")
    with qtbot.waitSignal(window.workspace.failed) as failed:
        drop(window, file)
    assert "is cut short" in failed.args[0].message
    assert window.workspace.plan == SAMPLE_PLAN


def test_a_model_of_the_hub_is_opened_by_its_name(window: MainWindow, hub, qtbot: QtBot, monkeypatch):
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: (f" {NAME} ", True))
    window.commands["file.open-hub"].trigger()
    wait_for_model(window, qtbot, NAME)
    assert window.workspace.plan.model.path == f"hf:{NAME}"
    qtbot.waitUntil(lambda: not window.findChildren(QProgressDialog))


@pytest.mark.parametrize("answer", [("", True), (NAME, False)])
def test_an_empty_name_reads_nothing(window: MainWindow, hub, monkeypatch, answer):
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: answer)
    window.commands["file.open-hub"].trigger()
    assert hub.asked == []


def test_a_name_typed_into_the_plan_bar_is_read(window: MainWindow, hub, qtbot: QtBot):
    window.plan_bar.pick_model()
    listed = window.plan_bar._model_popover.list
    qtbot.keyClicks(listed.focusProxy(), f"hf:{NAME}")
    assert listed.matches[0].key == f"hf:{NAME}"
    qtbot.keyClick(listed.focusProxy(), Qt.Key.Key_Return)
    wait_for_model(window, qtbot, NAME)


def test_the_memory_tab_keeps_its_model_until_another_was_read(window: MainWindow, hub, qtbot: QtBot):
    subject = SubjectForm(window.workspace, window.theme)
    qtbot.addWidget(subject)
    subject.refresh(window.workspace.evaluation)
    field = subject.model
    before = field.value
    hub.files[f"{NAME}/config.json"] = lambda handler: refuse(handler, 401, "RepoNotFound")
    with qtbot.waitSignal(window.workspace.failed) as failed:
        field._on_list_choice(f"hf:{NAME}")
    assert "there is no such model" in failed.args[0].message
    assert field.value == before == window.workspace.plan.model.id
    qtbot.waitUntil(lambda: not window.findChildren(QProgressDialog))


def test_a_hub_that_accepts_and_never_answers_is_given_up(window: MainWindow, hub, qtbot: QtBot, monkeypatch):
    over = threading.Event()
    hub.files[f"{NAME}/config.json"] = lambda _handler: over.wait(10)
    assert repository.ANSWER_SECONDS < 5, "in the window this and the end of the connection stay under ten seconds"
    monkeypatch.setattr(repository, "ANSWER_SECONDS", 0.2)
    window.documents.open_hub(f"hf:{NAME}")
    qtbot.waitUntil(window.banner.isVisible)
    over.set()
    assert "The Hugging Face Hub did not respond in time" in window.banner.text
    qtbot.waitUntil(lambda: not window.findChildren(QProgressDialog))
    assert window.workspace.plan == SAMPLE_PLAN


def test_reading_from_the_hub_can_be_cancelled(window: MainWindow, hub, qtbot: QtBot):
    go = threading.Event()
    content = hub.files[f"{NAME}/config.json"]

    def slowly(handler) -> None:
        go.wait(10)
        hub.send(handler, content)

    hub.files[f"{NAME}/config.json"] = slowly
    window.documents.open_hub(f"hf:{NAME}")
    (dialog,) = window.findChildren(QProgressDialog)
    qtbot.waitUntil(lambda: bool(hub.asked))
    dialog.findChild(QPushButton).click()
    go.set()
    qtbot.waitUntil(lambda: not window.findChildren(QProgressDialog))
    assert window.workspace.plan == SAMPLE_PLAN


def test_only_names_of_the_hub_are_offered_as_typed(window: MainWindow):
    assert hub_choice(window.workspace, "hf:a/b ").key == "hf:a/b"
    assert hub_choice(window.workspace, "llama") is None


def test_a_name_with_an_owner_that_the_catalog_lacks_is_offered_from_the_hub(window: MainWindow):
    offered = hub_choice(window.workspace, "someone/model")
    assert (offered.key, offered.title) == ("hf:someone/model", "Open someone/model from Hugging Face")
    assert hub_choice(window.workspace, "meta-llama/Llama-3.1") is None
    assert hub_choice(window.workspace, "2 / 3 of it") is None


def test_without_a_network_the_banner_names_what_works(window: MainWindow, hub, qtbot: QtBot, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    window.documents.open_hub(f"hf:{NAME}")
    qtbot.waitUntil(window.banner.isVisible)
    assert window.banner.text.startswith("The Hugging Face Hub is switched off")
    assert window.banner.hint.startswith("342 models are built in; or open a config.json.")
    qtbot.wait(1)
    window.workspace.apply("number of cards", count=2)
    assert not window.banner.isVisible()
