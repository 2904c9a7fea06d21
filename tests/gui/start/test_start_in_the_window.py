"""The Start page in the window: when it is shown, how it is left, and the sample that it leaves behind."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from planner.gui.window import MainWindow, StatusLine, TabList
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.plan.files import save_plan

GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    **{"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 1000},
}


def sample_button(window: MainWindow) -> QAbstractButton:
    bar = window.findChild(StatusLine)
    return next(button for button in bar.findChildren(QAbstractButton) if button.text() == "Sample plan")


def test_a_first_start_shows_only_the_question(started: MainWindow):
    assert started.tab.key == "start"
    assert not started.plan_bar.isVisible()
    assert not started.commands["plan.card"].isEnabled()
    assert not started.commands["file.start"].isEnabled()


def test_escape_goes_back_to_the_tab_and_a_key_to_the_page(started: MainWindow, qtbot: QtBot):
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert started.tab.key == "memory"
    assert started.plan_bar.isVisible()
    started.show_tab("catalog")
    started.commands["file.start"].trigger()
    assert started.tab.key == "start"
    qtbot.keyClick(started.tab, Qt.Key.Key_Escape)
    assert started.tab.key == "catalog"


def test_the_home_button_is_above_the_tabs(started: MainWindow, qtbot: QtBot):
    buttons = started.findChild(TabList).findChildren(QAbstractButton)
    assert [button.text() for button in buttons] == ["Start", "Catalog", "Memory"]
    qtbot.mouseClick(buttons[1], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    assert started.tab.key == "start"
    assert buttons[0].isChecked()


def test_the_sample_is_called_so_until_something_is_chosen(started: MainWindow, workspace: Workspace, qtbot: QtBot):
    assert not sample_button(started).isVisible()
    started.leave_start()
    assert sample_button(started).isVisible()
    workspace.apply("price of energy", cost=workspace.plan.cost.evolve(region="DE"))
    assert sample_button(started).isVisible()
    qtbot.mouseClick(sample_button(started), Qt.MouseButton.LeftButton)
    assert started.tab.key == "start"
    started.leave_start()
    workspace.apply("number of cards", count=2)
    assert not sample_button(started).isVisible()
    workspace.undo_stack.undo()
    assert sample_button(started).isVisible()


def test_a_plan_of_the_samples_model_and_card_that_was_chosen_is_no_sample(
    started: MainWindow, workspace: Workspace, qtbot: QtBot
):
    started.tab.model.choose(SAMPLE_PLAN.model.id)
    started.tab.own_cards.choose(SAMPLE_PLAN.gpu)
    started.tab.show_result()
    assert (workspace.plan.model, workspace.plan.gpu) == (SAMPLE_PLAN.model, SAMPLE_PLAN.gpu)
    qtbot.waitUntil(lambda: started.tab.key == "memory")
    assert not sample_button(started).isVisible()
    workspace.new_plan()
    assert sample_button(started).isVisible()


def test_a_model_file_becomes_the_answer_to_the_question(started: MainWindow, tmp_path: Path, qtbot: QtBot):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(GPT2))
    with qtbot.waitSignal(started.workspace.changed):
        started.documents.open(file)
    assert started.tab.key == "start"
    assert started.tab.model.value == started.workspace.plan.model
    started.tab.own_cards.choose("rtx-3090")
    started.tab.show_result()
    qtbot.waitUntil(lambda: started.tab.key == "memory")
    assert started.workspace.plan.model.path == str(file)


def test_an_opened_plan_leaves_the_page(started: MainWindow, tmp_path: Path, qtbot: QtBot):
    file = tmp_path / "plan.json"
    save_plan(file, SAMPLE_PLAN)
    with qtbot.waitSignal(started.workspace.changed):
        started.workspace.navigator.file_requested.emit(file)
    assert started.tab.key == "memory"
    assert started.workspace.path == file


def test_undo_leaves_the_page_to_show_what_was_undone(started: MainWindow, workspace: Workspace):
    started.leave_start()
    workspace.apply("number of cards", count=2)
    started.show_tab("start")
    workspace.undo_stack.undo()
    assert started.tab.key == "memory"


def test_a_window_that_was_left_on_the_page_opens_on_it(started: MainWindow, theme, tasks, qtbot: QtBot):
    again = MainWindow(started.workspace, theme, tasks, started.places)
    qtbot.addWidget(again)
    assert again.tab.key == "start"


def test_the_page_is_in_the_palette_and_copies_the_plan(started: MainWindow):
    assert "Llama-3.1-8B" in started.tab.copy_result()
    started.tab.focus_search()
    popup = QApplication.activePopupWidget()
    assert popup is not None
    popup.close()
    started.leave_start()
    assert "file.start" in [action.id for action, _ in started.commands.enabled()]


@pytest.mark.parametrize("size", [(960, 600), (1920, 1080)])
def test_the_page_fits_the_smallest_and_a_large_window(started: MainWindow, size: tuple[int, int]):
    started.resize(*size)
    QApplication.processEvents()
    for key in ("run", "watch"):
        started.tab.doors.choose(key)
        area = started.tab.findChild(QScrollArea)
        assert area.verticalScrollBar().maximum() == 0
        assert area.horizontalScrollBar().maximum() == 0


def test_a_model_chosen_in_the_palette_is_planned_and_its_memory_shown(
    started: MainWindow, workspace: Workspace, qtbot: QtBot
):
    started.open_palette()
    started.commands.refresh()
    palette = started._command_palette
    palette.list.search("Plan for Llama-3.1-8B")
    palette.list.chosen.emit(palette.list.matches[0].key)
    qtbot.waitUntil(lambda: started.tab.key == "memory")
    assert workspace.plan.model == SAMPLE_PLAN.model
    assert not workspace.is_sample


def test_escape_says_that_the_sample_is_not_what_was_entered(started: MainWindow, qtbot: QtBot):
    started.tab.model.choose("openai-community/gpt2")
    told: list[str] = []
    started.workspace.noticed.connect(lambda message, _details: told.append(message))
    qtbot.keyClick(started.tab, Qt.Key.Key_Escape)
    assert told == ["This is the sample plan."]
    assert started.tab.key == "memory"
