"""The memory tab around the sample plan, shown."""

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.memory.tab import MemoryTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


@pytest.fixture
def tab(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> MemoryTab:
    """The tab at the size that it has in the smallest window, with its curve drawn."""
    made = MemoryTab(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.resize(1157, 706)
    with qtbot.waitSignal(made.exploration.updated):
        made.show()
    return made
