"""What the plots remember between runs."""

from typing import Final

from pydantic import Field

from planner.base import Spec

MOST_COLUMNS: Final = 3


class PlotSettings(Spec):
    """Which plots are shown in which order, by their keys, so that it outlives plots that are added or go away."""

    order: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ("sm_occupancy", "memory_temperature")
    columns: int | None = Field(default=None, ge=1, le=MOST_COLUMNS, description="None: as many as there is room for")
