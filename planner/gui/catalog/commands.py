"""Everything one can do in the Catalog tab, for the menu, the keys and the command palette."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from planner.gui.actions import Action
from planner.hardware.mains import CIRCUITS
from planner.present.catalog.column_sets import COLUMN_SETS, SORT_TITLES

if TYPE_CHECKING:
    from planner.gui.catalog.tab import CatalogTab
    from planner.gui.window import Window


class _Command(NamedTuple):
    id: str
    text: str
    run: "Callable[[CatalogTab], object]"
    menu: str
    shortcut: str = ""
    icon: str = ""


def declare(window: "Window") -> list[Action]:
    """Return the actions of the tab, which each of them shows; none where `window` has no such tab."""
    if not any(place.key == "catalog" and place.name == "CatalogTab" for place in window.places):
        return []

    def made(command: _Command) -> Action:
        run = partial(_run, window, command.run)
        return Action(f"catalog.{command.id}", command.text, run, f"Catalog/{command.menu}", *command[4:])

    return [made(command) for command in (*_SHOWING, *_column_sets(), *_orders(), *_COMPARING, *_circuits(), *_OWN)]


def _run(window: "Window", do: "Callable[[CatalogTab], object]") -> None:
    do(window.catalog())


_SHOWING = (
    _Command("table", "As a &table", lambda tab: tab.show_view("table"), "1", "Ctrl+Alt+1", "table"),
    _Command("scatter", "As a &scatter plot", lambda tab: tab.show_view("scatter"), "1", "Ctrl+Alt+2"),
    _Command("systems", "A&ccelerators or systems", lambda tab: tab.swap_page(), "1", "Ctrl+Alt+Y", "swap"),
    _Command("saved", "Saved &filters…", lambda tab: tab.open_saved(), "2", "Ctrl+Alt+F", "filter"),
    _Command("save-filter", "Sa&ve these filters…", lambda tab: tab.saved.ask_name(), "2"),
    _Command("clear", "Clear &all filters", lambda tab: tab.clear_filters(), "2", "Ctrl+Alt+0"),
)
_COMPARING = (
    _Command("add", "Co&mpare what is chosen", lambda tab: tab.compare_chosen(), "4", "Ctrl+Shift+A"),
    _Command("compare", "Show the com&parison", lambda tab: tab.show_view("compare"), "4", "Ctrl+Alt+3"),
    _Command("export", "&Export what is shown…", lambda tab: tab.save(), "5", "Ctrl+E", "save"),
)
_OWN = (
    _Command(
        "change", "Your figures of this car&d…", lambda tab: tab.about_card().ask_change(), "Your own/1", "Ctrl+Alt+U"
    ),
    _Command("new-card", "&Add a card like this one…", lambda tab: tab.about_card().ask_new(), "Your own/1"),
    _Command("forget", "&Forget your figures or card…", lambda tab: tab.about_card().ask_forget(), "Your own/1"),
    _Command("add-file", "Add cards from a fi&le…", lambda tab: tab.gpus.own.choose_file(), "Your own/2"),
    _Command("export-own", "E&xport your cards…", lambda tab: tab.gpus.own.choose_target(), "Your own/2"),
)


def _column_sets() -> list[_Command]:
    return [
        _Command(f"columns-{name}".replace(" ", "-"), name.capitalize(), partial(_show_set, name), "Columns/1")
        for name in COLUMN_SETS
    ]


def _orders() -> list[_Command]:
    """Return a way to sort by each number, the best first: by keyboard there is no header to click."""
    return [_Command(f"sort-{key}", title, partial(_sort, key), "Sort by/1") for key, title in SORT_TITLES.items()]


def _circuits() -> list[_Command]:
    return [
        _Command(f"circuit-{key}", f"Builds on {circuit.name}", partial(_use_circuit, key), "Power and cooling/1")
        for key, circuit in CIRCUITS.items()
    ]


def _use_circuit(key: str, tab: "CatalogTab") -> None:
    tab.gpus.use_circuit(key)


def _sort(key: str, tab: "CatalogTab") -> None:
    tab.sort_cards(key)


def _show_set(name: str, tab: "CatalogTab") -> None:
    tab.show_columns(name)
