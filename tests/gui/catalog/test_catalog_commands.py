"""The Catalog tab's commands in the menu and the command palette."""

import pytest
from PySide6.QtWidgets import QDialog

from planner.gui.catalog.filters import CatalogFilter
from planner.gui.tab import TABS
from planner.gui.widgets.popover import search_choices
from planner.gui.window import MainWindow


@pytest.fixture
def window(qtbot, workspace, theme, tasks):
    workspace.settings.update(tab="catalog")
    made = MainWindow(workspace, theme, tasks, TABS[:2])
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.show()
    qtbot.waitUntil(lambda: not tasks.busy)
    return made


def do(window, name):
    window.commands[f"catalog.{name}"].trigger()


def test_each_view_has_a_command(window):
    for view in ("scatter", "compare", "table"):
        do(window, view)
        assert window.tab.view == view
    do(window, "systems")
    assert window.tab.page is window.tab.systems
    do(window, "systems")
    assert window.tab.page is window.tab.gpus


def test_columns_filters_and_the_comparison_have_commands(window, qtbot, tasks):
    do(window, "columns-money")
    assert "usd_per_gib" in window.tab.gpus.table.layout_now().shown
    window.tab.gpus.facets._toggles["confirmed"].click()
    do(window, "clear")
    assert not window.tab.gpus.filter.confirmed
    window.tab.gpus.table.choose("rtx-3090")
    do(window, "add")
    assert window.tab.compare.ids == ("accelerators:rtx-3090",)
    qtbot.waitUntil(lambda: not tasks.busy)


def test_entries_do_not_repeat_the_name_of_their_submenu(window):
    for action in window.commands.declared:
        *_, submenu, _group = action.menu.split("/")
        assert not window.commands[action.id].text().startswith(submenu), action.id
    choices = {choice.title: choice for choice in window._command_palette._command_choices()}
    assert {"Sort by: Bandwidth, GB/s", "Columns: Money"} < set(choices)
    (best, *_) = search_choices(list(choices.values()), "sort by bandwidth, GB/s")
    assert best.title == "Sort by: Bandwidth, GB/s"


def test_the_circuit_of_power_builds_is_chosen_and_stored(window, workspace, qtbot, tasks):
    gpus = window.tab.gpus
    qtbot.waitUntil(lambda: not tasks.busy and any(row.buying for row in gpus.model.all_records))
    gpus.table.choose("rtx-5090")
    assert "Circuit: 15 A at 120 V" in window.tab.gpus.detail.as_text()
    do(window, "circuit-230V-16A")
    assert "Circuit: 16 A at 230 V" in window.tab.gpus.detail.as_text()
    assert workspace.settings.current.catalog.circuit == "230V-16A"


def test_commands_leave_the_comparison_for_what_they_show(window, qtbot, tasks):
    tab = window.tab
    do(window, "compare")
    do(window, "systems")
    assert (tab.view, tab.page) == ("table", tab.systems)
    do(window, "compare")
    tab.apply_filter(CatalogFilter(confirmed=True))
    assert (tab.view, tab.page) == ("table", tab.gpus)
    assert tab.gpus.filter.confirmed
    qtbot.waitUntil(lambda: not tasks.busy)


def test_clear_all_filters_applies_to_the_shown_page(window, qtbot, tasks):
    tab = window.tab
    do(window, "systems")
    tab.bar.search.setText("dgx")
    assert tab.systems.model.rowCount() < len(tab.systems.model.all_records)
    do(window, "clear")
    assert tab.bar.search.text() == ""
    assert tab.systems.model.rowCount() == len(tab.systems.model.all_records)
    tab.bar.search.setText("dgx")
    tab.gpus.narrow(CatalogFilter().with_query(text="rtx"))  # of the hidden page
    assert tab.bar.search.text() == "dgx"
    qtbot.waitUntil(lambda: not tasks.busy)


@pytest.mark.parametrize("shown", ["systems", "compare", "scatter"])
@pytest.mark.parametrize("command", ["change", "new-card", "forget"])
def test_commands_on_a_card_show_the_accelerators_first(window, qtbot, tasks, command, shown):
    tab = window.tab
    tab.gpus.table.choose("rtx-3090")
    do(window, shown)
    told = []
    window.workspace.failed.connect(told.append)
    do(window, command)
    assert tab.page is tab.gpus
    assert tab.view == ("scatter" if shown == "scatter" else "table")
    if command == "forget":
        assert told.pop().message == "You have no values of your own for GeForce RTX 3090."
    else:
        (dialog,) = tab.gpus.findChildren(QDialog)
        dialog.reject()
    assert not told
    qtbot.waitUntil(lambda: not tasks.busy)


def test_no_two_commands_share_a_key(window):
    keys = [key.toString() for action in window.commands.declared for key in window.commands[action.id].shortcuts()]
    assert len(keys) == len(set(keys))


def test_every_command_is_in_the_menu_of_the_catalog(window):
    declared = [action for action in window.commands.declared if action.id.startswith("catalog.")]
    assert len(declared) >= 14
    assert all(action.menu.startswith("Catalog/") for action in declared)
