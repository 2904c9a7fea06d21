"""The cost tab around a plan that is trained, on a fixed day."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.cost.tab import CostTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.workload.training import Training

TODAY = date(2026, 11, 22)


@pytest.fixture
def tab(
    qtbot: QtBot,
    workspace: Workspace,
    theme: Theme,
    tasks: TaskRunner,
    unstyled: Callable[[], AbstractContextManager[None]],
) -> CostTab:
    """The tab at the size that it has in the smallest window, with its draws drawn."""
    workspace.apply("work", workload=Training(method="qlora", activation_checkpointing="full"))
    workspace.undo_stack.clear()
    with unstyled():
        made = CostTab(workspace, theme, tasks, lambda: TODAY)
    qtbot.addWidget(made)
    made.resize(1157, 706)
    made.show()
    qtbot.waitUntil(lambda: made.drawn)
    return made
