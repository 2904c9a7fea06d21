"""What the Catalog tab remembers; apart from its widgets, so that reading the settings does not load them."""

from typing import Any, Literal

from pydantic import Field

from planner.base import Spec

View = Literal["table", "scatter", "compare"]


class PlotChoice(Spec):
    """What a scatter plot shows, by column keys; size and colour may be none."""

    x: str = "price"
    y: str = "bandwidth"
    size: str = ""
    color: str = "vendor"
    log_x: bool = True
    log_y: bool = True
    pareto: bool = True


class CatalogSettings(Spec):
    """The views as they were left. A saved filter is kept as it was written, and read when it is applied."""

    view: View = "table"
    plots: dict[str, PlotChoice] = Field(default_factory=dict, description="by page")
    filters: dict[str, dict[str, Any]] = Field(default_factory=dict, description="saved filters by name")
    system_filters: dict[str, dict[str, Any]] = Field(default_factory=dict, description="those of systems")
    compared: tuple[str, ...] = Field(default=(), description="ids of cards and systems side by side")
    only_differences: bool = False
    circuit: str = Field(
        default="120V-15A", description="what builds hang on, a key of `planner.hardware.power.CIRCUITS`"
    )
