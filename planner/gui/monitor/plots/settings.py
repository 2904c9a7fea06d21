"""What the plots remember between runs."""

from planner.base import Spec


class PlotSettings(Spec):
    """Which plots are shown in which order, by their keys, so that it outlives plots that are added or go away."""

    order: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ("sm_occupancy", "memory_temperature")
