"""The Catalog tab, about as large as in the smallest window."""

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.catalog.tab import CatalogTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


@pytest.fixture
def make_tab(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> Callable[[], CatalogTab]:
    """Make a tab and show it; one that is made later begins with what was remembered."""

    def make() -> CatalogTab:
        made = CatalogTab(workspace, theme, tasks)
        qtbot.addWidget(made)
        made.resize(1160, 700)
        made.show()
        made.activateWindow()
        return made

    return make


@pytest.fixture
def tab(make_tab: Callable[[], CatalogTab]) -> CatalogTab:
    """The tab with the sample plan."""
    return make_tab()
