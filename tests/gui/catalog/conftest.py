"""The Catalog tab, about as large as in the smallest window."""

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.catalog.tab import CatalogTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


@pytest.fixture
def make_tab(
    qtbot: QtBot,
    workspace: Workspace,
    theme: Theme,
    tasks: TaskRunner,
) -> Callable[..., CatalogTab]:
    """Return a function that makes and shows a tab, with the page of systems if `on_systems`.

    A tab that is made later starts with the stored settings.
    """

    def make(*, on_systems: bool = False) -> CatalogTab:
        made = CatalogTab(workspace, theme, tasks)
        if on_systems:
            made.systems.facets.finish()  # built on first use
        made.gpus.facets.finish()
        qtbot.addWidget(made)
        made.resize(1160, 700)
        made.show()
        made.activateWindow()
        page = made.gpus
        # The details follow the table.
        qtbot.waitUntil(lambda: page.detail.is_describing or page.table.current_record is None)
        if on_systems:
            made.bar.pages.button(1).click()
        return made

    return make


@pytest.fixture
def tab(make_tab: Callable[..., CatalogTab]) -> CatalogTab:
    """The tab with the sample plan."""
    return make_tab()
