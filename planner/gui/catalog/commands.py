"""Commands of the Catalog tab for the menu, the shortcuts and the command palette."""

from functools import partial
from typing import TYPE_CHECKING, Final

from planner.gui.actions import UnboundAction
from planner.hardware.power import CIRCUITS
from planner.present.catalog.column_sets import COLUMN_SETS, SORT_TITLES

if TYPE_CHECKING:
    from planner.gui.catalog.tab import CatalogTab  # made when it is first shown: the start does not wait for it


def _show_column_set(name: str, tab: "CatalogTab") -> None:
    tab.show_columns(name)


def _sort_cards_by(key: str, tab: "CatalogTab") -> None:
    tab.sort_cards(key)


def _use_circuit(key: str, tab: "CatalogTab") -> None:
    tab.gpus.use_circuit(key)


CATALOG_COMMANDS: Final[tuple[UnboundAction["CatalogTab"], ...]] = (
    UnboundAction(
        "catalog.table", "As a &table", "Catalog/1", lambda tab: tab.show_view("table"), "Ctrl+Alt+1", "table"
    ),
    UnboundAction(
        "catalog.scatter", "As a &scatter plot", "Catalog/1", lambda tab: tab.show_view("scatter"), "Ctrl+Alt+2"
    ),
    UnboundAction(
        "catalog.systems",
        "Switch a&ccelerators or systems",
        "Catalog/1",
        lambda tab: tab.swap_page(),
        "Ctrl+Alt+Y",
        "swap",
    ),
    UnboundAction(
        "catalog.saved", "Saved &filters…", "Catalog/2", lambda tab: tab.open_saved(), "Ctrl+Alt+F", "filter"
    ),
    UnboundAction("catalog.save-filter", "Sa&ve these filters…", "Catalog/2", lambda tab: tab.saved.ask_name()),
    UnboundAction("catalog.clear", "Clear &all filters", "Catalog/2", lambda tab: tab.clear_filters(), "Ctrl+Alt+0"),
    *(
        UnboundAction(
            f"catalog.columns-{name}".replace(" ", "-"),
            name.capitalize(),
            "Catalog/Columns/1",
            partial(_show_column_set, name),
        )
        for name in COLUMN_SETS
    ),
    # The keyboard cannot click a header: each numeric column has a command that sorts by it, best first.
    *(
        UnboundAction(f"catalog.sort-{key}", title, "Catalog/Sort by/1", partial(_sort_cards_by, key))
        for key, title in SORT_TITLES.items()
    ),
    UnboundAction(
        "catalog.add", "Co&mpare the selection", "Catalog/4", lambda tab: tab.compare_chosen(), "Ctrl+Shift+A"
    ),
    UnboundAction(
        "catalog.compare", "Show the com&parison", "Catalog/4", lambda tab: tab.show_view("compare"), "Ctrl+Alt+3"
    ),
    UnboundAction("catalog.export", "&Export this view…", "Catalog/5", lambda tab: tab.save(), "Ctrl+E", "save"),
    *(
        UnboundAction(
            f"catalog.circuit-{key}",
            f"Circuit of {circuit.name}",
            "Catalog/Power and cooling/1",
            partial(_use_circuit, key),
        )
        for key, circuit in CIRCUITS.items()
    ),
    UnboundAction(
        "catalog.change",
        "Your figures for this &GPU…",
        "Catalog/Your own/1",
        lambda tab: tab.about_card().ask_change(),
        "Ctrl+Alt+U",
    ),
    UnboundAction(
        "catalog.new-card",
        "&Add a GPU like this one…",
        "Catalog/Your own/1",
        lambda tab: tab.about_card().ask_new(),
    ),
    UnboundAction(
        "catalog.forget",
        "D&elete your figures or GPU…",
        "Catalog/Your own/1",
        lambda tab: tab.about_card().ask_forget(),
    ),
    UnboundAction(
        "catalog.add-file",
        "Add GPUs from a fi&le…",
        "Catalog/Your own/2",
        lambda tab: tab.gpus.own.choose_file(),
    ),
    UnboundAction(
        "catalog.export-own",
        "E&xport your GPUs…",
        "Catalog/Your own/2",
        lambda tab: tab.gpus.own.choose_target(),
    ),
)
