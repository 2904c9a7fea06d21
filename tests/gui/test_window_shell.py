"""The main window: tabs, menus, command palette, status line and dropped files."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QLineEdit, QMenu, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from planner.gui.theme import Theme
from planner.gui.widgets.labels import ElidedLabel
from planner.gui.window import MainWindow, StatusLine, TabList
from planner.gui.workspace import SAMPLE_PLAN, Workspace


def do(window: MainWindow, action_id: str) -> None:
    """Do what the menu entry does, if it is enabled."""
    action = window.commands[action_id]
    assert action.isEnabled(), f"{action_id} is not enabled"
    action.trigger()


def palette_edit(window: MainWindow) -> QLineEdit:
    popup = QApplication.activePopupWidget()
    return popup.findChild(QLineEdit)


def test_the_remembered_tab_is_built_and_the_other_not_yet(window: MainWindow):
    assert window.tab.key == "memory"
    assert len(window.tab.drawn) == 1
    do(window, "view.catalog")
    assert window.tab.key == "catalog"
    assert window.workspace.settings.current.tab == "catalog"


def test_a_hidden_tab_is_drawn_when_it_is_shown_again(window: MainWindow):
    memory = window.tab
    do(window, "view.catalog")
    window.workspace.apply("number of cards", count=2)
    window.workspace.apply("number of cards", count=3)
    assert len(memory.drawn) == 1
    do(window, "view.memory")
    assert len(memory.drawn) == 2
    assert memory.drawn[-1] is window.workspace.evaluation
    window.workspace.apply("number of cards", count=4)
    assert len(memory.drawn) == 3


def test_the_tabs_at_the_left_lead_to_their_pages(window: MainWindow, qtbot: QtBot):
    names = window.findChild(TabList)
    catalog = next(button for button in names.findChildren(QAbstractButton) if button.text() == "Catalog")
    qtbot.mouseClick(catalog, Qt.MouseButton.LeftButton)
    assert window.tab.key == "catalog"
    assert catalog.isChecked()


def test_undo_and_redo_are_named_in_the_menu(window: MainWindow):
    assert not window.commands["edit.undo"].isEnabled()
    window.workspace.apply("number of cards", count=2)
    assert window.commands["edit.undo"].text() == "&Undo: number of cards"
    do(window, "edit.undo")
    assert window.workspace.plan == SAMPLE_PLAN
    assert window.commands["edit.redo"].text() == "&Redo: number of cards"
    do(window, "edit.redo")
    assert window.workspace.plan.count == 2


def test_the_status_line_tells_the_last_step_and_the_catalog(window: MainWindow):
    window.workspace.apply("number of cards", count=2)
    texts = [label.text() for label in window.findChild(StatusLine).findChildren(QLabel)]
    assert "Undo: number of cards" in texts
    assert any("accelerators" in text for text in texts)


def test_the_status_line_counts_a_card_of_ones_own(window: MainWindow):
    catalog = window.workspace.catalog
    gpus = catalog.hardware.gpus
    mine = gpus[0].evolve(id="mine", name="Mine", aliases=(), own=True)
    window.workspace.set_catalog(replace(catalog, hardware=replace(catalog.hardware, gpus=(mine, *gpus))))
    texts = [label.text() for label in window.findChild(StatusLine).findChildren(QLabel)]
    assert any(f"{len(gpus) + 1} accelerators" in text for text in texts)


def test_the_task_is_swapped_there_and_back(window: MainWindow):
    assert window.commands["plan.swap-task"].text() == "Fine-&tune this model"
    do(window, "plan.swap-task")
    assert window.workspace.plan.workload.task == "training"
    do(window, "plan.swap-task")
    assert window.workspace.plan.workload.task == "inference"


def test_the_main_action_is_that_of_the_tab(window: MainWindow):
    assert window.commands["plan.primary"].text() == "Find cards"
    do(window, "plan.primary")
    assert window.tab.ran == 1
    do(window, "view.catalog")
    assert not window.commands["plan.primary"].isEnabled()


def test_finding_cards_leads_to_the_catalog(window: MainWindow):
    do(window, "plan.find-cards")
    assert window.tab.key == "catalog"
    assert window.tab.only_fitting


def test_starting_from_a_recipe_leads_to_the_questions(window: MainWindow, qtbot: QtBot):
    window.show_tab("catalog")
    with qtbot.waitSignal(window.workspace.navigator.preset_requested):
        window.commands["plan.preset"].trigger()
    assert window.tab.key == "memory"


def test_the_status_line_shows_adjustments_until_the_next_step(window: MainWindow):
    workspace = window.workspace
    workspace.answer("task", {"workload.task": "training", "workload.compute": "bf16"})
    workspace.end_gesture()
    told = window.findChild(StatusLine).findChild(ElidedLabel)
    workspace.answer("method", {"workload.method": "qlora"})
    assert told.text() == (
        "Also changed: activation checkpointing to Full (every layer), compute precision to BF16 autocast."
    )
    workspace.end_gesture()
    workspace.answer("batch", {"workload.micro_batch": 2})
    assert told.text() == ""


def test_a_tab_can_request_another_tab(window: MainWindow):
    window.workspace.navigator.fitting_cards_requested.emit()
    assert window.tab.key == "catalog"
    window.workspace.navigator.show_memory()
    assert window.tab.key == "memory"


def test_the_result_is_copied(window: MainWindow):
    do(window, "edit.copy-result")
    assert QGuiApplication.clipboard().text() == window.tab.copy_result()


def test_search_puts_the_keyboard_into_the_tabs_field(window: MainWindow, qtbot: QtBot):
    window.activateWindow()
    do(window, "edit.search")
    qtbot.waitUntil(window.tab.search.hasFocus)


def test_the_scheme_is_switched_and_remembered(window: MainWindow):
    do(window, "view.theme-dark")
    try:
        assert window.theme.dark
        assert window.commands["view.theme-dark"].isChecked()
        assert window.workspace.settings.current.scheme == "dark"
    finally:
        do(window, "view.theme-light")
    assert not window.commands["view.theme-dark"].isChecked()


def test_the_palette_runs_a_command_by_keyboard_alone(window: MainWindow, qtbot: QtBot):
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), "catalog")
    qtbot.keyClick(palette_edit(window), Qt.Key.Key_Return)
    assert window.tab.key == "catalog"
    assert QApplication.activePopupWidget() is None


def test_the_palette_puts_a_card_into_the_plan(window: MainWindow, qtbot: QtBot):
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), "h200 sxm")
    qtbot.keyClick(palette_edit(window), Qt.Key.Key_Return)
    assert "h200" in window.workspace.plan.gpu
    assert window.workspace.undo_stack.undoText() == "GPU"


def test_the_palette_puts_a_model_into_the_plan(window: MainWindow, qtbot: QtBot):
    other = next(r.id for r in window.workspace.catalog.models.records if r.id != SAMPLE_PLAN.model.id)
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), other)
    qtbot.keyClick(palette_edit(window), Qt.Key.Key_Return)
    assert window.workspace.plan.model.id == other


def test_the_palette_puts_the_named_value_of_a_setting_into_the_plan(window: MainWindow, qtbot: QtBot):
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), "vllm")
    qtbot.keyClick(palette_edit(window), Qt.Key.Key_Return)
    assert window.workspace.plan.workload.profile == "vllm"
    assert window.workspace.undo_stack.undoText() == "software"


def test_the_palette_leads_to_a_setting(window: MainWindow, qtbot: QtBot):
    do(window, "view.catalog")
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), "batch size")
    with qtbot.waitSignal(window.workspace.navigator.setting_requested) as requested:
        qtbot.keyClick(palette_edit(window), Qt.Key.Key_Return)
    assert requested.args == ["batch"]
    assert window.tab.key == "memory"


@pytest.mark.parametrize(
    ("words", "title"), [("offline", "Manual"), ("internet", "Manual"), ("which card", "Find GPUs that fit")]
)
def test_the_palette_finds_actions_by_other_words(window: MainWindow, qtbot: QtBot, words: str, title: str):
    do(window, "view.palette")
    qtbot.keyClicks(palette_edit(window), words)
    assert title in [choice.title for choice in QApplication.activePopupWidget().list.matches]
    QApplication.activePopupWidget().close()


def test_the_shortcuts_name_undo_without_its_step(window: MainWindow):
    window.workspace.apply("number of cards", count=2)
    do(window, "help.shortcuts")
    dialog = window.findChild(QDialog)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "Undo" in texts
    dialog.close()


def test_the_palette_offers_only_what_can_be_done(window: MainWindow):
    do(window, "view.palette")
    titles = [choice.title for choice in QApplication.activePopupWidget().list.matches]
    assert "Undo" not in titles
    assert "Command palette" not in titles
    assert {"Save as", "Theme: Dark"} <= set(titles)
    QApplication.activePopupWidget().close()


def test_every_key_is_used_once(window: MainWindow):
    keys = [key.toString() for action in window.commands.declared for key in window.commands[action.id].shortcuts()]
    assert len(keys) == len(set(keys))


def test_every_action_is_in_a_menu(window: MainWindow):
    in_menus = {action.objectName() for menu in window.menuBar().findChildren(QMenu) for action in menu.actions()}
    assert {action.id for action in window.commands.declared} <= in_menus


def test_mnemonics_are_unique_within_a_menu(window: MainWindow):
    for menu in window.menuBar().findChildren(QMenu):
        letters = [text[text.index("&") + 1].lower() for text in (a.text() for a in menu.actions()) if "&" in text]
        assert len(letters) == len(set(letters)), menu.title()


def test_every_focusable_widget_has_a_name(window: MainWindow):
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
        and not (widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text()))
        and not widget.metaObject().className().startswith("QComboBox")  # Qt's own list of a drop-down
    ]
    assert not nameless


def test_nothing_is_cut_off_at_the_smallest_promised_size(window: MainWindow):
    window.resize(1280, 800)
    assert window.minimumSizeHint().width() <= 1280
    assert window.minimumSizeHint().height() <= 800


def test_an_error_is_shown_in_the_banner(window: MainWindow, qtbot: QtBot):
    with window.workspace.reporting():
        window.workspace.apply("card", gpu="gtx-0")
    assert window.banner.isVisible()
    assert "gtx-0" in window.banner.text


def test_help_pages_open_and_close(window: MainWindow, qtbot: QtBot):
    do(window, "help.shortcuts")
    dialog = next(
        child
        for child in window.children()
        if isinstance(child, QWidget) and child.windowTitle() == "Keyboard shortcuts"
    )
    assert "Ctrl+K" in [label.text() for label in dialog.findChildren(QLabel)]
    dialog.close()
    do(window, "help.about")
    about = window.findChild(QMessageBox)
    assert "GPU Planner" in about.text()
    about.close()


def test_the_recent_menu_says_when_it_is_empty(window: MainWindow, tmp_path):
    recent = next(menu for menu in window.findChildren(QMenu) if menu.title() == "&Recent")
    recent.aboutToShow.emit()
    assert [action.isEnabled() for action in recent.actions()] == [False]
    window.workspace.save_plan(tmp_path / "a.json")
    recent.aboutToShow.emit()
    assert [action.text() for action in recent.actions()] == [str(tmp_path / "a.json")]


def test_the_title_names_the_file_and_marks_changes(window: MainWindow, tmp_path):
    assert window.windowTitle() == "GPU Planner"
    window.workspace.save_plan(tmp_path / "mine.plan.json")
    assert window.windowTitle().startswith("mine.plan.json[*]")
    assert not window.isWindowModified()
    window.workspace.apply("number of cards", count=2)
    assert window.isWindowModified()


def drop(window: MainWindow, *urls: QUrl) -> QDropEvent:
    data = QMimeData()
    data.setUrls(list(urls))
    event = QDropEvent(
        QPoint(50, 50).toPointF(),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    event.setAccepted(False)
    window.dropEvent(event)
    return event


def test_a_dropped_plan_is_opened(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "plan.json"
    file.write_text(SAMPLE_PLAN.evolve(count=4).model_dump_json())
    assert drop(window, QUrl.fromLocalFile(str(file))).isAccepted()
    qtbot.waitUntil(lambda: window.workspace.plan.count == 4)


def test_only_one_local_file_can_be_dropped(window: MainWindow):
    assert not drop(window, QUrl("https://example.org/plan.json")).isAccepted()
    assert not drop(window, QUrl.fromLocalFile("/a"), QUrl.fromLocalFile("/b")).isAccepted()


def test_geometry_and_tab_are_restored(window: MainWindow, workspace: Workspace, theme: Theme, tasks, qtbot: QtBot):
    window.showMaximized()
    do(window, "view.catalog")
    window.close()
    again = MainWindow(workspace, theme, tasks, window.places)
    qtbot.addWidget(again)
    assert again.tab.key == "catalog"
    assert again.isMaximized()
