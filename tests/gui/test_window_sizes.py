"""The window at other sizes: on small screens, with icons only, and with the questions in a drawer."""

from types import SimpleNamespace

import pytest
from PySide6.QtCore import QMargins, QRect, Qt
from PySide6.QtWidgets import QLineEdit, QToolButton
from pytestqt.qtbot import QtBot

from planner.gui.tab import QuestionTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.window import MainWindow, TabList
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation

TITLE_BAR = QMargins(0, 0, 0, 32)
"""The position of a window is that of its frame."""


class AskingTab(QuestionTab):
    key, title, icon_name = "asking", "Asking", "memory"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.question = QLineEdit()
        self._lay_out(self.question)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show nothing."""


@pytest.fixture
def narrow(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> AskingTab:
    """A tab with a question, in a narrow window."""
    made = AskingTab(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.set_narrow(True)
    made.show()
    return made


def fit(window: MainWindow, monkeypatch: pytest.MonkeyPatch, screen: QRect) -> QRect:
    monkeypatch.setattr(window, "screen", lambda: SimpleNamespace(availableGeometry=lambda: screen), raising=False)
    window.fit_to_screen()
    return QRect(window.pos(), window.size()).marginsAdded(TITLE_BAR)


@pytest.mark.parametrize("screen", [QRect(0, 0, 853, 533), QRect(0, 0, 1024, 700), QRect(100, 40, 1366, 720)])
def test_a_smaller_screen_shows_all_of_the_window(window: MainWindow, monkeypatch: pytest.MonkeyPatch, screen: QRect):
    window.setGeometry(900, 500, 1280, 800)  # as it was left on a larger screen
    assert screen.contains(fit(window, monkeypatch, screen))


def test_a_larger_screen_leaves_the_window_as_it_was(window: MainWindow, monkeypatch: pytest.MonkeyPatch):
    window.setGeometry(300, 200, 1280, 800)
    before = window.geometry()
    fit(window, monkeypatch, QRect(0, 0, 2560, 1440))
    assert window.geometry() == before


def test_a_window_off_the_screen_comes_back(window: MainWindow, monkeypatch: pytest.MonkeyPatch):
    window.setGeometry(-3000, -50, 1280, 800)
    screen = QRect(0, 0, 1920, 1080)
    assert screen.contains(fit(window, monkeypatch, screen))


def test_tabs_without_titles_still_say_what_they_are(window: MainWindow):
    styles = Qt.ToolButtonStyle
    buttons = window.findChild(TabList).findChildren(QToolButton)
    for width, style in ((1000, styles.ToolButtonIconOnly), (1280, styles.ToolButtonTextBesideIcon)):
        window.resize(width, 700)
        assert {button.toolButtonStyle() for button in buttons} == {style}
        assert [button.toolTip() for button in buttons] == ["Start", "Catalog", "Memory"]
        assert [button.accessibleName() for button in buttons] == ["Start", "Catalog", "Memory"]


def test_a_button_opens_and_closes_the_drawer(narrow: AskingTab, qtbot: QtBot):
    assert not narrow.question.isVisible()
    qtbot.mouseClick(narrow.drawer, Qt.MouseButton.LeftButton)
    assert narrow.question.isVisible()
    qtbot.mouseClick(narrow.drawer, Qt.MouseButton.LeftButton)
    assert not narrow.question.isVisible()


def test_escape_closes_the_drawer(narrow: AskingTab, qtbot: QtBot):
    narrow.open_questions()
    assert narrow.question.isVisible()
    qtbot.keyClick(narrow.question, Qt.Key.Key_Escape)
    assert not narrow.question.isVisible()
    assert narrow.focusWidget() is narrow.drawer


def test_a_wide_window_needs_no_drawer(narrow: AskingTab):
    narrow.set_narrow(False)
    assert narrow.question.isVisible()
    assert not narrow.drawer.isVisible()
