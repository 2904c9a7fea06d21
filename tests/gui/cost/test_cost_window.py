"""What the window has for the cost tab: actions, keys, the status line."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pytestqt.qtbot import QtBot

from planner.cost.terms import days_since
from planner.gui.cost.prices_dialog import PricesDialog
from planner.gui.cost.recommend_dialog import RecommendDialog
from planner.gui.cost.tab import CostTab
from planner.gui.tab import TABS
from planner.gui.window import MainWindow
from planner.present.cost.prices import age_phrase, newest_age_days
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference


@pytest.fixture
def window(qtbot: QtBot, workspace, theme, tasks) -> Iterator[MainWindow]:
    """The window with its own tabs."""
    made = MainWindow(workspace, theme, tasks, TABS)
    made.show_tab("cost")
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.show()
    qtbot.waitUntil(lambda: made.cost().drawn)
    yield made
    made.cost().shut_down()


def test_the_tabs_have_keys_in_their_order(window: MainWindow):
    shown = {}
    for number in "1234":
        action = next(
            window.commands[declared.id]
            for declared in window.commands.declared
            if window.commands[declared.id].shortcut().toString() == f"Ctrl+{number}"
        )
        shown[number] = action.text().replace("&", "")
    assert list(shown.values()) == ["Catalog", "Memory", "Cost", "Monitor"]


def test_keys_and_mnemonics_of_actions_are_used_once(window: MainWindow):
    keys = [key.toString() for one in window.commands.declared for key in window.commands[one.id].shortcuts()]
    assert sorted(keys) == sorted(set(keys))
    for menu in {one.menu.split("/")[0] for one in window.commands.declared}:
        own = [
            window.commands[one.id].text()
            for one in window.commands.declared
            if one.menu.split("/")[0] == menu and one.menu.count("/") == 1
        ]
        letters = [found[1].lower() for text in own if (found := re.search(r"&(\w)", text))]
        assert sorted(letters) == sorted(set(letters)), (menu, own)


@pytest.mark.parametrize(("action", "dialog"), [("plan.recommend", RecommendDialog), ("plan.prices", PricesDialog)])
def test_dialogs_open_from_the_menu(window: MainWindow, action, dialog, qtbot):
    window.show_tab("catalog")
    window.commands[action].trigger()
    assert isinstance(window.tab, CostTab)
    assert isinstance(window.tab.dialog, dialog)
    qtbot.waitUntil(window.tab.dialog.isVisible)
    window.tab.dialog.close()


def test_unequal_cards_are_not_chosen_for(window: MainWindow):
    gpus = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    window.workspace.apply("cards", workload=Inference(gpus=gpus), gpu=None, count=2)
    assert not window.commands["plan.recommend"].isEnabled()


def test_the_status_line_says_how_old_prices_are(window: MainWindow, qtbot, catalog):
    label = window._status.prices
    qtbot.waitUntil(label.isVisible)
    today = datetime.now(UTC).date()
    used = window.workspace.cost.estimate.result.rent.oldest_price_date
    assert label.text() == f"Rental price used: {age_phrase(days_since(used, today))}"
    window.workspace.cost = None
    window._status.show_prices()
    assert label.text() == f"Latest rental offer: {age_phrase(newest_age_days(catalog.offers, today))}"


def test_pinning_stays_in_the_tab(window: MainWindow):
    window.commands["plan.pin"].trigger()
    assert isinstance(window.tab, CostTab)
    assert window.tab.comparison.isVisible()
