"""A plan whose file is changed by another program or window is merged with it, or the person is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from planner.gui.autosave import Autosave, SavedSession
from planner.gui.recovery import RecoveryDialog
from planner.gui.settings import SettingsStore
from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.plan.files import load_plan, save_plan

OTHER_BATCH = SAMPLE_PLAN.evolve(workload=SAMPLE_PLAN.workload.evolve(batch=8))


@pytest.fixture
def file(window: MainWindow, tmp_path: Path) -> Path:
    """The file of the window's plan."""
    path = tmp_path / "mine.json"
    window.workspace.save_plan(path)
    return path


def click(words: str) -> list[str]:
    """Click the button with these words in the next question; the returned list receives what was asked."""
    asked: list[str] = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        asked.append(f"{box.text()} {box.informativeText()}")
        next(button for button in box.buttons() if button.text().replace("&", "") == words).click()

    QTimer.singleShot(0, press)
    return asked


def come_back(window: MainWindow) -> None:
    window.activateWindow()
    QApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))


def test_changes_of_other_fields_are_shown_when_the_person_comes_back(window: MainWindow, file, qtbot: QtBot):
    workspace = window.workspace
    workspace.apply("number of cards", count=3)
    save_plan(file, OTHER_BATCH)
    come_back(window)
    qtbot.waitUntil(lambda: workspace.plan == OTHER_BATCH.evolve(count=3))
    assert workspace.modified
    assert window.banner.text == "mine.json was changed by another program or window: its changes are in the plan now."
    workspace.undo_stack.undo()
    assert workspace.plan == SAMPLE_PLAN.evolve(count=3)
    workspace.undo_stack.redo()
    window.commands["file.save"].trigger()
    assert load_plan(file) == OTHER_BATCH.evolve(count=3)


def test_a_plan_without_changes_follows_its_file(window: MainWindow, file, qtbot: QtBot):
    save_plan(file, OTHER_BATCH)
    come_back(window)
    qtbot.waitUntil(lambda: window.workspace.plan == OTHER_BATCH)
    assert not window.workspace.modified
    file.unlink()
    come_back(window)
    qtbot.waitUntil(lambda: not window.tasks.busy)
    assert window.workspace.plan == OTHER_BATCH


def test_saving_puts_different_changes_together_without_a_question(window: MainWindow, file):
    window.workspace.apply("number of cards", count=3)
    save_plan(file, OTHER_BATCH)
    assert window.documents.save()
    assert load_plan(file) == window.workspace.plan == OTHER_BATCH.evolve(count=3)


def test_changes_of_the_same_field_are_said_once_and_asked_about(window: MainWindow, file, qtbot: QtBot):
    workspace = window.workspace
    workspace.apply("number of cards", count=3)
    save_plan(file, SAMPLE_PLAN.evolve(count=4))
    come_back(window)
    qtbot.waitUntil(lambda: window.banner.text.endswith("in the same fields as here."))
    assert window.banner.hint == "When you save, you are asked which to keep: Number of GPUs: 3 here, 4 in the file."
    window.banner.hide()
    come_back(window)
    qtbot.waitUntil(lambda: not window.tasks.busy)
    assert not window.banner.isVisible()
    asked = click("Cancel")
    assert not window.documents.save()
    assert "• Number of GPUs: 3 here, 4 in the file" in asked[0]
    assert (workspace.plan.count, load_plan(file).count) == (3, 4)


@pytest.mark.parametrize(("words", "chosen", "other"), [("Keep mine", 3, 4), ("Take theirs", 4, 3)])
def test_the_version_that_is_not_chosen_is_kept(window: MainWindow, file, words, chosen, other):
    workspace = window.workspace
    workspace.apply("number of cards", count=3)
    save_plan(file, SAMPLE_PLAN.evolve(count=4))
    click(words)
    assert window.documents.save()
    assert (workspace.plan.count, load_plan(file).count, workspace.modified) == (chosen, chosen, False)
    kept = [Path(name) for name in workspace.settings.current.recent if Path(name) != file]
    assert [load_plan(path).count for path in kept] == [other]
    assert str(kept[0]) in window.banner.hint


def test_a_version_that_cannot_be_kept_stops_the_saving(window: MainWindow, file, own_state_dir):
    window.workspace.apply("number of cards", count=3)
    save_plan(file, SAMPLE_PLAN.evolve(count=4))
    own_state_dir.touch()
    click("Keep mine")
    assert not window.documents.save()
    assert load_plan(file).count == 4
    assert "nothing is saved" in window.banner.text


def test_both_versions_can_have_a_file(window: MainWindow, file, tmp_path, monkeypatch):
    window.workspace.apply("number of cards", count=3)
    save_plan(file, SAMPLE_PLAN.evolve(count=4))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "second.json"), ""))
    click("Save as…")
    assert window.documents.save()
    assert (load_plan(file).count, load_plan(tmp_path / "second.json").count) == (4, 3)


def test_a_file_for_a_card_that_nobody_knows_is_asked_about(window: MainWindow, file):
    window.workspace.apply("number of cards", count=3)
    save_plan(file, SAMPLE_PLAN.evolve(gpu="gone"))
    asked = click("Keep mine")
    assert window.documents.save()
    assert "• GPU: GeForce RTX 4090 here, gone in the file" in asked[0]
    assert load_plan(file).gpu == "rtx-4090"


def test_without_the_version_that_was_opened_every_difference_is_asked_about(window: MainWindow, file):
    window.workspace.replace(SAMPLE_PLAN.evolve(count=3), file, modified=True)
    save_plan(file, OTHER_BATCH)
    asked = click("Cancel")
    assert not window.documents.save()
    assert asked[0].count("•") == 2


@pytest.mark.parametrize("content", ["{", '{"schema_version": 99}'])
def test_a_file_that_this_version_cannot_read_is_kept_when_it_is_replaced(window: MainWindow, file, content):
    file.write_text(content)
    window.workspace.apply("number of cards", count=3)
    assert window.documents.save()
    assert file.with_name("mine.json.bad").read_text() == content
    assert load_plan(file).count == 3
    assert str(file.with_name("mine.json.bad")) in window.banner.hint


@pytest.fixture
def recovery(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> Iterator[RecoveryDialog]:
    """The dialog with the plans of two windows that crashed: of one card that nobody knows, and of two cards."""
    folder = tmp_path / "autosave"
    folder.mkdir()
    for number, plan in enumerate((SAMPLE_PLAN.evolve(gpu="gone"), SAMPLE_PLAN.evolve(count=2))):
        session = SavedSession(plan=plan, modified=True, number=number, path=str(tmp_path / "two.json"))
        (folder / f"{number}.json").write_text(session.model_dump_json())
    (folder / "2.json").write_text(SavedSession(plan=SAMPLE_PLAN, number=2).model_dump_json())
    window.documents.autosave = Autosave(window.workspace, folder, window)
    dialog = window.recover_plans()
    yield dialog
    window.documents.autosave.close()


def texts(dialog: RecoveryDialog) -> list[str]:
    return [dialog.list.item(row).text().partition("\n")[0] for row in range(dialog.list.count())]


def test_plans_that_windows_left_are_listed_and_one_is_opened(recovery, window: MainWindow, tmp_path):
    first, second = texts(recovery)
    assert first.endswith("· 2 × GeForce RTX 4090")
    assert second == "meta-llama/Llama-3.1-8B (the catalog does not know its GPU or model)"
    recovery.open_here.click()
    assert (window.workspace.plan.count, window.workspace.path) == (2, tmp_path / "two.json")
    assert window.workspace.modified
    assert texts(window.recover_plans()) == [second]


def test_a_plan_that_a_window_left_is_saved_or_deleted(recovery, window: MainWindow, tmp_path, monkeypatch, qtbot):
    saved = tmp_path / "saved.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    recovery.save.click()
    assert recovery.list.count() == 2
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(saved), ""))
    recovery.save.click()
    assert load_plan(saved).count == 2
    for words, count in (("Cancel", 1), ("Delete", 1)):
        recovery.delete.click()
        box = recovery.findChild(QMessageBox)
        next(button for button in box.buttons() if button.text().replace("&", "") == words).click()
        qtbot.waitUntil(lambda: recovery.findChild(QMessageBox) is None)
        assert recovery.list.count() == count
    assert texts(recovery) == ["There are no plans to recover."]
    assert not recovery.open_here.isEnabled()
    assert window.documents.autosave.unsaved_plans() == []


def test_a_plan_is_not_opened_over_work_that_the_person_keeps(recovery, window: MainWindow):
    window.workspace.apply("number of cards", count=7)
    click("Cancel")
    recovery.open_here.click()
    assert window.workspace.plan.count == 7
    assert recovery.list.count() == 2


def test_a_file_that_is_open_in_another_window_is_said_to_be(recovery, window: MainWindow, file, qtbot, catalog):
    folder = file.parent / "autosave"
    other = Workspace(catalog, SettingsStore(file.parent / "other.json"))
    other.replace(SAMPLE_PLAN, file)
    autosave = Autosave(other, folder, other)
    other.replace(SAMPLE_PLAN, file)
    autosave.flush()
    window.documents.open(file)
    qtbot.waitUntil(lambda: window.banner.text == "mine.json is open in another window, too.")
    autosave.close()
