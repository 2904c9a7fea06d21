"""The Start page, alone and in the window."""

import pytest
from pytestqt.qtbot import QtBot
from shell_fakes import PLACES

from planner.gui.start_page import StartPage
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.window import MainWindow
from planner.gui.workspace import Workspace


@pytest.fixture
def page(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> StartPage:
    """The page alone, shown."""
    made = StartPage(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def started(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> MainWindow:
    """The window of a first start around plain tabs, shown."""
    made = MainWindow(workspace, theme, tasks, PLACES, page="start")
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.show()
    return made
