"""The Memory tab with the sample plan, shown."""

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from planner.gui.memory.tab import MemoryTab
from planner.gui.memory.trace.dialog import TraceDialog
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


@pytest.fixture
def tab(
    qtbot: QtBot,
    workspace: Workspace,
    theme: Theme,
    tasks: TaskRunner,
) -> MemoryTab:
    """The tab at the size that it has in the smallest window; its curve is computed after the usual delay."""
    made = MemoryTab(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.resize(1157, 706)
    made.show()
    return made


@pytest.fixture
def explored_tab(tab: MemoryTab, qtbot: QtBot) -> MemoryTab:
    """The tab with its curve drawn."""
    with qtbot.waitSignal(tab.exploration.updated):
        tab.exploration.update_now()
    return tab


@pytest.fixture
def holder(qtbot: QtBot) -> QWidget:
    """A shown widget, over which dialogs open."""
    made = QWidget()
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def trace_dialog(holder: QWidget, workspace: Workspace, theme: Theme) -> TraceDialog:
    """The open dialog to set up a trace."""
    made = TraceDialog(workspace, theme, holder)
    made.open()
    return made
