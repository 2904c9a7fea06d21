"""Questions that a scatter plot answers at a glance."""

from typing import Final

from planner.gui.catalog.settings import PlotChoice

PRESETS: Final[dict[str, dict[str, PlotChoice]]] = {
    "accelerators": {
        "Bandwidth against price": PlotChoice(x="price", y="bandwidth", size="memory", color="vendor"),
        "Dense BF16 against power": PlotChoice(x="power", y="bf16", size="memory", color="segment"),
        "Memory against price": PlotChoice(x="price", y="memory", size="bandwidth", color="segment"),
        "Bandwidth over the years": PlotChoice(x="year", y="bandwidth", color="segment", log_x=False),
        "Dense BF16 over the years": PlotChoice(x="year", y="bf16", color="segment", log_x=False),
        "Price of memory over the years": PlotChoice(x="year", y="usd_per_gib", color="segment", log_x=False),
    },
    "systems": {
        "Dense BF16 against power": PlotChoice(x="power", y="bf16", size="memory", color="vendor"),
        "Bandwidth against price": PlotChoice(x="price", y="bandwidth", size="memory", color="vendor"),
        "Memory against power": PlotChoice(x="power", y="memory"),
        "Memory against price": PlotChoice(x="price", y="memory"),
        "Memory over the years": PlotChoice(x="year", y="memory", log_x=False),
    },
}
"""By page; the first is what one begins with."""


def usual_plot(page: str) -> PlotChoice:
    """Return what the plot of `page` shows at first."""
    return next(iter(PRESETS[page].values()))
