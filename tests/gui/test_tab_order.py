"""Tab visits every control of each tab and dialog once, in reading order, and comes back to the start."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QTextBrowser, QWidget
from pytestqt.qtbot import QtBot

from planner.gui.tab import START, TABS
from planner.gui.widgets.layout import focus_stops
from planner.gui.window import MainWindow

DIALOGS = (
    "plan.trace",
    "plan.launch",
    "plan.compare-log",
    "plan.prices",
    "plan.recommend",
    "help.manual",
    "help.shortcuts",
)
LOOKS, BETWEEN_LOOKS_MS = 10, 50


@pytest.fixture
def window(qtbot: QtBot, workspace, theme, tasks) -> Iterator[MainWindow]:
    """The window with its own tabs."""
    made = MainWindow(workspace, theme, tasks, TABS)
    qtbot.addWidget(made)
    made.show()
    with qtbot.waitActive(made):
        made.activateWindow()
    yield made
    workspace.undo_stack.setClean()
    made.close()  # which ends the work of the tabs that were shown
    qtbot.waitUntil(lambda: not tasks.busy)


def controls(top: QWidget) -> set[QWidget]:
    """Return what the Tab key has to reach in a window."""
    return {
        widget
        for widget in top.findChildren(QWidget)
        if widget.window() is top
        and widget.isVisible()
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
    }


def wait_until_settled(top: QWidget, window: MainWindow, qtbot: QtBot) -> None:
    """Wait until no control has appeared or disappeared for half a second; a look at all of them takes its time."""
    seen: list[set[QWidget]] = []

    def is_settled() -> bool:
        qtbot.wait(BETWEEN_LOOKS_MS)
        seen.append(controls(top))
        return not window.tasks.busy and len(seen) > LOOKS and all(found == seen[-1] for found in seen[-LOOKS:])

    qtbot.waitUntil(is_settled)


def walk(qtbot: QtBot, key: Qt.Key) -> list[QWidget]:
    """Press `key` until a control has the keyboard for the second time; return what had it, with that control."""
    visited: list[QWidget] = []
    assert QApplication.focusWidget() is not None, "nothing has the keyboard"
    while len(set(visited)) == len(visited):
        widget = QApplication.focusWidget()
        visited.append(widget)
        assert widget is not None, f"the keyboard is lost after {visited[-2:]}"
        qtbot.keyClick(widget, key)
        # In a text, the keys go from link to link first.
        while isinstance(widget, QTextBrowser) and QApplication.focusWidget() is widget:
            qtbot.keyClick(widget, key)
    return visited


def check_round(top: QWidget, window: MainWindow, qtbot: QtBot) -> None:
    wait_until_settled(top, window, qtbot)
    qtbot.keyClick(QApplication.focusWidget() or top, Qt.Key.Key_Tab)
    walk(qtbot, Qt.Key.Key_Tab)  # the first row of a table that is entered becomes current, which enables buttons
    for key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
        visited = walk(qtbot, key)
        assert visited[0] is visited[-1]
        assert set(visited) == controls(top)


@pytest.mark.parametrize("key", [tab.key for tab in TABS])
def test_tab_visits_each_control_of_the_window_once(window: MainWindow, qtbot: QtBot, key: str):
    window.show_tab(key)
    for width in (1280, 960):
        window.resize(width, 800)
        check_round(window, window, qtbot)


def visible_dialogs(window: MainWindow) -> list[QDialog]:
    return [dialog for dialog in window.findChildren(QDialog) if dialog.isVisible()]


@pytest.mark.parametrize("action", DIALOGS)
def test_tab_visits_each_control_of_a_dialog_once(window: MainWindow, qtbot: QtBot, action: str):
    window.commands[action].trigger()
    qtbot.waitUntil(lambda: visible_dialogs(window) != [])
    (dialog,) = visible_dialogs(window)
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    check_round(dialog, window, qtbot)
    dialog.close()


def test_tab_leaves_the_rows_that_were_added_later(window: MainWindow, qtbot: QtBot):
    window.show_tab("memory")
    next(focus_stops(window.tab)).setFocus()
    window.workspace.answer("task", {"workload.task": "training"})
    check_round(window, window, qtbot)


@pytest.mark.parametrize("key", [START.key, *(tab.key for tab in TABS)])
def test_alt_with_a_letter_leads_to_one_place(window: MainWindow, qtbot: QtBot, key: str):
    window.show_tab(key)
    wait_until_settled(window, window, qtbot)
    titles = [action.text() for action in window.menuBar().actions()]
    assert all("&" in title for title in titles)
    texts = titles + [
        made.text()
        for made in (*window.findChildren(QLabel), *window.findChildren(QAbstractButton))
        if made.isVisible() and made.window() is window and (isinstance(made, QAbstractButton) or made.buddy())
    ]
    letters = [text[text.index("&") + 1].lower() for text in texts if "&" in text]
    assert len(letters) == len(set(letters)), sorted(text for text in texts if "&" in text)


def test_the_next_pane_goes_round(window: MainWindow):
    window.show_tab("memory")
    visited = []
    for _ in range(5):
        window.commands["view.next-pane"].trigger()
        visited.append(QApplication.focusWidget())
    assert len(set(visited[:4])) == 4
    assert visited[4] is visited[0]
