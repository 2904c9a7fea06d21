"""Latency of the Catalog tab up to the repaint, with 3,000 synthetic accelerators and 20,000 synthetic offers.

    python benchmarks/catalog_speed.py [--runs N]

Each figure is the median CPU time, measured alongside a loop of 10,000 additions in the same run; only the ratio can
be compared between machines. The names beside the points come a moment later, and are counted by themselves.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from speed import ROWS, Input, beside_loop, print_beside, repeated, write_printed
from tables import add_table_option

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from planner.gui.catalog.tab import CatalogTab
    from planner.plan.catalog import Catalog

OFFERS = 20_000
AIM = "≤ 16 ms"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="repaints of each kind (default 40)")
    add_table_option(parser)
    arguments = parser.parse_args()
    runs = arguments.runs
    print(f"{'what':52} {'median':>10} {'reference':>10} {'ratio':>7} {'aim':>8}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        app, tab = opened(crowded())
        print_table(app, tab, runs)
        print_plot(app, tab, runs)
        tab.tasks.shutdown()
    if arguments.table:
        write_printed("catalog-speed")


def crowded() -> "Catalog":
    """Return the bundled catalog with its accelerators and its offers repeated under other names."""
    from planner.cost.catalog import CostCatalog
    from planner.plan.catalog import load_catalog

    catalog = repeated(load_catalog())
    known, cards = catalog.offers, catalog.hardware.gpus
    offers = tuple(
        offer.evolve(id=f"{offer.id}-{number}", gpu=cards[number * 7 % len(cards)].id, candidates=())
        for number, offer in enumerate(islice(cycle(known), OFFERS))
    )
    made = replace(catalog)
    made.__dict__["cost"] = CostCatalog(catalog.folder, given_offers=offers)  # in place of what is read on first use
    return made


def opened(catalog: "Catalog") -> "tuple[QApplication, CatalogTab]":
    """Return the tab, shown, once it has every price."""
    from PySide6.QtWidgets import QApplication

    from planner.gui.catalog.tab import CatalogTab
    from planner.gui.settings import SettingsStore
    from planner.gui.tasks import TaskRunner
    from planner.gui.theme import Theme
    from planner.gui.workspace import Workspace
    from planner.paths import state_dir

    app = QApplication([])
    settings = SettingsStore(state_dir() / "settings.json", app)
    theme = Theme(app, settings.current.scheme)
    theme.apply_style_sheet(app)
    tab = CatalogTab(Workspace(catalog, settings, parent=app), theme, TaskRunner())
    tab.resize(1280, 700)
    tab.show()
    while tab.tasks.busy:
        app.processEvents()
    return app, tab


def print_table(app: "QApplication", tab: "CatalogTab", runs: int) -> None:
    """Print sorting and each kind of filter, with the table in view."""
    from planner.gui.catalog.filters import CatalogFilter

    page, nothing = tab.gpus, CatalogFilter()
    sorts = ("memory", "bandwidth", "street", "usd_per_gib", "name")
    bounds = [nothing.with_bounds("memory", float(size), None) for size in range(8, 80, 8)]
    prices = [nothing.with_bounds("rent", None, float(usd)) for usd in range(1, 9)]
    vendors = [nothing.with_query(vendors=(vendor,)) for vendor in ("NVIDIA", "AMD", "Intel")]
    asked = [nothing.with_query(text=f"at least {size} GiB under {size}00 USD") for size in range(12, 48, 4)]
    painted(app, "sort", page.table.sort_by, taken(sorts, runs))
    painted(app, "range of memory", page.narrow, taken(bounds, runs))
    painted(app, "range of rents", page.narrow, taken(prices, runs))
    painted(app, "facet", page.narrow, taken(vendors, runs))
    painted(app, "bounds typed into the search", page.narrow, taken(asked, runs))
    page.narrow(nothing)
    app.processEvents()
    taken_seconds, loop = beside_loop(lambda _: page.count_facets(), range(runs))
    print_beside("counts of facets / a loop, ms", taken_seconds * 1e3, loop * 1e3, AIM)


def print_plot(app: "QApplication", tab: "CatalogTab", runs: int) -> None:
    """Print a change of the filter and of what is drawn, with the plot in view."""
    from planner.gui.catalog.filters import CatalogFilter
    from planner.gui.catalog.scatter_panel import PRESETS

    tab.show_view("scatter")
    app.processEvents()
    page, nothing = tab.gpus, CatalogFilter()
    everything = [nothing.with_bounds("year", float(year), None) for year in range(2010, 2016)]
    half = [nothing.with_bounds("memory", float(size), None) for size in range(8, 48, 4)]
    painted(app, "scatter of nearly all rows, filtered", page.narrow, taken(everything, runs))
    painted(app, "scatter of some rows, filtered", page.narrow, taken(half, runs))
    page.narrow(nothing)
    painted(app, "scatter, other axes", page.scatter.choose, taken(list(PRESETS["accelerators"].values()), runs))
    plot = page.scatter.plot
    if plot is not None:
        painted(app, "names beside the points", lambda _: plot.place_names(), range(runs))


def taken(values: Iterable[Input], number: int) -> list[Input]:
    """Return `number` inputs, which repeat `values` cyclically."""
    return list(islice(cycle(values), number))


def painted(app: "QApplication", title: str, action: Callable[[Input], object], inputs: Iterable[Input]) -> None:
    """Print the time of one kind of change up to the repaint."""

    def change(value: Input) -> None:
        action(value)
        app.processEvents()

    median_seconds, loop = beside_loop(change, list(inputs))
    print_beside(f"{title}, {ROWS:,} rows / a loop, ms", median_seconds * 1e3, loop * 1e3, AIM)


if __name__ == "__main__":
    main()
