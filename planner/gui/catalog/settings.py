"""Settings of the Catalog tab, in a module without widgets so that reading the settings stays fast."""

from typing import Any, Literal

from pydantic import Field

from planner.base import Spec

View = Literal["table", "scatter", "compare"]


class PlotChoice(Spec):
    """Keys of the columns that a scatter plot shows; the keys `size` and `color` may be empty."""

    x: str = "buy"
    y: str = "bandwidth"
    size: str = ""
    color: str = "vendor"
    log_x: bool = True
    log_y: bool = True
    pareto: bool = True


class CatalogSettings(Spec):
    """Stored state of the Catalog tab; saved filters stay raw JSON, which is validated when a filter is applied."""

    view: View = "table"
    plots: dict[str, PlotChoice] = Field(default_factory=dict, description="by page")
    filters: dict[str, dict[str, Any]] = Field(default_factory=dict, description="saved filters by name")
    system_filters: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="saved filters of systems by name"
    )
    compared: tuple[str, ...] = Field(default=(), description="ids of the compared cards and systems")
    only_differences: bool = False
    circuit: str = Field(
        default="120V-15A", description="electrical circuit of the builds, a key of `planner.hardware.power.CIRCUITS`"
    )
